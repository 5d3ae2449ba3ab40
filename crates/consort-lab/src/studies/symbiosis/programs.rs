//! The programs that workloads are drawn from, and those that train the model.

use super::failed;
use crate::study::StudyError;
use consort_sim::program::{ProgramSpec, presets};
use std::sync::Arc;

/// The suite of all of them.
const SUITE: &str = "spec2006";

/// The 21 programs of workloads. The paper says how many there are; which, this rule says, made
/// without a look at any result: all twelve of CINT2006, and of the seventeen of CFP2006 every
/// other one in the order of the alphabet, from the first.
pub(super) const PROGRAMS: [&str; 21] = [
    "perlbench",
    "bzip2",
    "gcc",
    "mcf",
    "gobmk",
    "hmmer",
    "sjeng",
    "libquantum",
    "h264ref",
    "omnetpp",
    "astar",
    "xalancbmk",
    "bwaves",
    "calculix",
    "gamess",
    "gromacs",
    "leslie3d",
    "namd",
    "soplex",
    "tonto",
    "zeusmp",
];

/// The programs of workloads, in the order of [`PROGRAMS`].
pub(super) fn of_workloads() -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    PROGRAMS.into_iter().map(find).collect()
}

/// At most so many programs of the suite, evenly over its alphabet.
pub(super) fn of_training(most: usize) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    let suites = presets::suites().map_err(failed("programs"))?;
    let names = suites.get(SUITE).map_or(&[][..], Vec::as_slice);
    let count = most.min(names.len());
    (0..count)
        .map(|n| find(names[n * names.len() / count]))
        .collect()
}

fn find(name: &str) -> Result<Arc<ProgramSpec>, StudyError> {
    Ok(Arc::new(presets::find(name).map_err(failed(name))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_gives_these_programs() {
        let suites = presets::suites().unwrap();
        let integer = &PROGRAMS[..12];
        let mut floating: Vec<&str> = suites[SUITE].clone();
        floating.retain(|name| !integer.contains(name));
        assert_eq!(floating.len(), 17);
        floating.sort_by_key(|name| name.to_lowercase());
        let every_other: Vec<&str> = floating.into_iter().step_by(2).collect();
        assert_eq!(every_other, PROGRAMS[12..]);
        assert_eq!(of_workloads().unwrap().len(), 21);
    }

    #[test]
    fn training_takes_all_or_a_few_different_ones() {
        assert_eq!(of_training(99).unwrap().len(), 29);
        let few = of_training(8).unwrap();
        let mut names: Vec<&str> = few.iter().map(|p| p.name.as_str()).collect();
        names.dedup();
        assert_eq!(names.len(), 8);
    }
}
