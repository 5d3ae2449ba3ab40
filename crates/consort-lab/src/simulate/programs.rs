//! Programs, and workloads of one program.

use super::part_error;
use crate::study::StudyError;
use consort_sim::program::{PhaseSpec, ProgramSpec, presets};
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

/// A program that comes with Consort.
pub(crate) fn find(name: &str) -> Result<Arc<ProgramSpec>, StudyError> {
    Ok(Arc::new(presets::find(name).map_err(part_error(name))?))
}

/// At most so many programs of a suite, evenly over its alphabet.
pub(crate) fn suite(name: &str, most: usize) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    let suites = presets::suites().map_err(part_error(name))?;
    let names = suites.get(name).map_or(&[][..], Vec::as_slice);
    pick_evenly(names, most).into_iter().map(find).collect()
}

pub(crate) fn pick_evenly<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    let count = most.min(all.len());
    (0..count)
        .map(|n| all[n * all.len() / count].clone())
        .collect()
}

/// Several instances of a program from different phases: instance k of n begins where k/n of a
/// pass through its phases is over.
pub(crate) fn staggered_copies(program: &Arc<ProgramSpec>, n: usize) -> Workload {
    let pass: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
    let begun = |k: usize| match program.phases.len() {
        // All instances of one phase are alike, and share their code.
        1 => Arc::clone(program),
        _ => Arc::new(program_from_offset(program, pass * k as f64 / n as f64)),
    };
    let entry = |k: usize| instance(format!("{}#{}", program.name, k + 1), &begun(k), 1);
    Workload {
        text: format!("{n}*{}", program.name),
        entries: (0..n).map(entry).collect(),
    }
}

/// One program with so many threads.
pub(crate) fn parallel_workload(program: &Arc<ProgramSpec>, threads: u32) -> Workload {
    Workload {
        text: format!("{}@{threads}", program.name),
        entries: vec![instance(program.name.clone(), program, threads)],
    }
}

/// Entry that starts with its workload.
pub(crate) fn instance(name: String, program: &Arc<ProgramSpec>, threads: u32) -> ProgramInstance {
    ProgramInstance {
        name,
        program: Arc::clone(program),
        threads,
        start_ms: 0.0,
    }
}

/// The workload of these entries side by side.
pub(crate) fn join_entries(entries: Vec<ProgramInstance>) -> Workload {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    Workload {
        text: names.join("+"),
        entries,
    }
}

/// The program from an offset on, 10⁹ instructions: its phases in the same circle, from another
/// place on.
fn program_from_offset(program: &ProgramSpec, ginstr: f64) -> ProgramSpec {
    let mut phases = program.phases.clone();
    let mut left = ginstr;
    let mut turn = 0;
    while turn < phases.len() && left >= phases[turn].length_ginstr {
        left -= phases[turn].length_ginstr;
        turn += 1;
    }
    let turn = turn % phases.len();
    phases.rotate_left(turn);
    if left > 0.0 && left < phases[0].length_ginstr {
        let begun = PhaseSpec {
            length_ginstr: left,
            ..phases[0].clone()
        };
        phases[0].length_ginstr -= left;
        phases.push(begun);
    }
    ProgramSpec {
        phases,
        ..program.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pass(program: &ProgramSpec) -> f64 {
        program.phases.iter().map(|p| p.length_ginstr).sum()
    }

    #[test]
    fn suite_is_taken_whole_or_evenly() {
        assert_eq!(suite("spec2006", 99).unwrap().len(), 29);
        let few = suite("spec2006", 6).unwrap();
        let names: std::collections::BTreeSet<&str> = few.iter().map(|p| p.name.as_str()).collect();
        assert_eq!((few.len(), names.len()), (6, 6));
        assert!(suite("no such suite", 6).unwrap().is_empty());
    }

    #[test]
    fn instances_begin_in_different_phases() {
        let bzip2 = find("bzip2").unwrap();
        assert!(bzip2.phases.len() > 1);
        let workload = staggered_copies(&bzip2, 4);
        let first = |k: usize| workload.entries[k].program.phases[0].clone();
        assert_eq!(first(0), bzip2.phases[0]);
        assert_ne!(first(0), first(2));
        assert_eq!(workload.entries[3].name, "bzip2#4");
    }

    proptest! {
        /// Whatever the place, it is the same circle of phases: as long, and the same phase so
        /// many instructions on.
        #[test]
        fn offset_keeps_the_circle_of_phases(share in 0.0f64..1.0, on in 0.0f64..1.0) {
            let program = find("gcc").unwrap();
            let whole = pass(&program);
            let later = program_from_offset(&program, share * whole);
            prop_assert!((pass(&later) / whole - 1.0).abs() < 1e-9);
            let at = |program: &ProgramSpec, place: f64| {
                let mut left = place % whole;
                let phase = program.phases.iter().find(|p| { left -= p.length_ginstr; left < 0.0 });
                (phase.unwrap_or(&program.phases[0]).mix.load, left.abs())
            };
            let (here, there) = (at(&later, on * whole), at(&program, (share + on) * whole));
            // Within rounding of a border either side is right.
            prop_assert!(here.0 == there.0 || here.1 < 1e-6 || there.1 < 1e-6);
        }
    }
}
