//! The programs that workloads are drawn from, and those that train the model.

use crate::simulate::programs::find;
use crate::study::StudyError;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The suite of all of them, from which those of training are taken, too.
pub(super) const SUITE: &str = "spec2006";

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

#[cfg(test)]
mod tests {
    use super::*;
    use consort_sim::program::presets;

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
}
