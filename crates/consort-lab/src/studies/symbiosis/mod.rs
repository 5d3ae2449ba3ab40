//! What the studies of symbiotic scheduling share: the model's training, the drawn workloads, their
//! runs under each policy, tables and figures.
//!
//! S1 to S3 stand on one [`training`], S4 to S6 on one [`grid`] of runs; each is made once per
//! process and kept for the studies that come after (see [`memo`]). S7 runs workloads of the same
//! drawing with a watch on the cores, S8 on two machines ([`asymmetry`]).
//!
//! Pitfalls: the policy predicts with the model that comes with the program, not with what S1 to S3
//! train. In rows `symbiotic` is the paper's scheduler, which pairs over the whole chip
//! (`symbiotic:numa=false`); `symbiotic-in-node`, ours, leaves threads on the node where they were
//! first and pairs inside nodes.

pub(super) mod asymmetry;
mod away;
pub(super) mod beside;
mod bins;
pub(super) mod causes;
pub(super) mod cells;
mod chips;
pub(super) mod errors;
pub(super) mod grid;
pub(super) mod headline;
mod heard;
pub(super) mod longer;
pub(super) mod memo;
pub(super) mod mixes;
pub(super) mod phases;
mod prepare;
mod programs;
pub(super) mod training;

pub(super) use chips::{NEAR_FIRST_HALF, chip_with_memory};
use chips::{chip, chip_with_causes};
pub(super) use prepare::Prepared;
pub(super) use programs::PROGRAMS;

use crate::study::StudyError;
use std::time::Duration;

/// The published work.
pub(super) const SOURCE: &str = "Feliu, Eyerman, Sahuquillo, Petit, \"Symbiotic Job Scheduling on \
    the IBM POWER8\", HPCA 2016";

/// What the studies of the model do otherwise.
pub(super) const DIFFERS_MODEL: &str = "The machine, its programs and its counters (five events in \
    turns of four counters, 0.5 percent read noise) are simulated. All 29 programs of SPEC CPU2006 \
    train the model: each alone in 2 slots and all 435 pairs, those of a program with itself \
    included, 10 s each in quanta of 100 ms (8 programs and 3 s at the quick scale). The stack is \
    the top level of the chip's, five events. Held out means whole programs, in five folds.";

/// The same seed for all that share their runs.
pub(super) const SEED: u64 = 8;

/// Length of a quantum (section 4.2 of the paper).
pub(super) const QUANTUM: Duration = Duration::from_millis(100);

/// Names what part of a study failed.
pub(super) fn failed<E>(part: &str) -> impl Fn(E) -> StudyError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let part = part.to_owned();
    move |error| StudyError::part(part.as_str(), error)
}
