//! Load of the studies that set policies of every kind side by side: X1 and X3.

use crate::simulate::programs::{instance, join_entries};
use crate::study::StudyError;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::Workload;
use serde::Deserialize;
use std::sync::Arc;

/// So many copies of a program with so many threads each.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ProgramLoad(pub usize, pub String, pub u32);

/// The workload in which all of them start at once; `program` gives the program of a name.
///
/// # Errors
/// Those of `program`.
pub(super) fn workload(
    load: &[ProgramLoad],
    program: impl Fn(&str) -> Result<ProgramSpec, StudyError>,
) -> Result<Workload, StudyError> {
    let mut entries = Vec::new();
    for &ProgramLoad(copies, ref name, threads) in load {
        let program = Arc::new(program(name)?);
        let copy = |number| instance(format!("{name}#{number}"), &program, threads);
        entries.extend((1..=copies).map(copy));
    }
    Ok(join_entries(entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_sim::program::presets;

    #[test]
    fn copies_are_numbered_and_share_their_program() {
        let load = [(2, "hmmer", 1), (1, "canneal", 4)];
        let load =
            load.map(|(copies, name, threads)| ProgramLoad(copies, name.to_owned(), threads));
        let made = workload(&load, |name| Ok(presets::find(name).unwrap())).unwrap();
        assert_eq!(made.text, "hmmer#1+hmmer#2+canneal#1");
        let [one, two, three] = &made.entries[..] else {
            panic!("{} entries", made.entries.len())
        };
        assert!(Arc::ptr_eq(&one.program, &two.program));
        assert_eq!((one.threads, three.threads), (1, 4));
    }
}
