//! Ground of the studies of co-scheduling: the machine and its programs, the schedulers, the rounds
//! that each finds and their measures.
//!
//! H1 stands on every program alone with every number of cores ([`alone`]), H2 to H6 on one
//! [`grid`] of rounds; both are made once for all studies that share them. A scheduler is run as it
//! is live: it asks for trials of a quantum and is told their outcome ([`choose`]); the round that
//! it ends with is then measured with another seed ([`grid`]).
//!
//! Pitfall: everything is relative to the gang of the same run, measured with the same seed.

pub(super) mod alone;
pub(super) mod choose;
pub(super) mod entrants;
pub(super) mod figures;
pub(super) mod grid;
pub(super) mod notes;
pub(super) mod published;
pub(super) mod views;
pub(super) mod whole;

use crate::simulate::chips::chip;
pub(super) use crate::simulate::part_error;
use crate::simulate::programs::{find, instance};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::slots::{Suite, TrialLengths};
use consort_sim::workload::Workload;

/// The seed of the studies.
#[cfg(test)]
pub(super) const SEED: u64 = 2010;

/// The machine: eight cores, the last-level cache shared by two.
const MACHINE: &str = "xeon-e5320";

/// Runs, at the quick and the full scale.
const RUNS: [usize; 2] = [2, 3];

/// Time for which slots are tried and measured.
pub(super) fn quantum(context: &ExperimentContext<'_>) -> TrialLengths {
    TrialLengths {
        warm_s: context.by_scale(0.1, 0.3),
        length_s: context.by_scale(0.4, 1.0),
    }
}

/// Runs that differ in their seed.
pub(super) fn runs(context: &ExperimentContext<'_>) -> usize {
    context.by_scale(RUNS[0], RUNS[1])
}

/// The twelve programs with as many threads as there are cores.
pub(super) fn suite() -> Result<Suite, StudyError> {
    suite_of("PARSEC", &published::PUBLISHED.map(|program| program.name))
}

/// Programs of these names on the same machine, with as many threads as there are cores.
pub(super) fn suite_of(text: &str, names: &[&str]) -> Result<Suite, StudyError> {
    let chip = chip(MACHINE)?;
    let threads = chip.domains().cores as u32;
    let entry = |name: &&str| Ok(instance((*name).to_owned(), &find(name)?, threads));
    let entries = names.iter().map(entry);
    let workload = Workload {
        text: text.to_owned(),
        entries: entries.collect::<Result<_, StudyError>>()?,
    };
    Ok(Suite::new(&chip, &workload))
}
