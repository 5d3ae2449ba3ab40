//! Ground of the studies of symbiotic scheduling: the model's training, the drawn workloads, their
//! runs under each policy, tables and figures.
//!
//! S1 to S3 stand on one [`training`], S4 to S6 on one experiment; each is made once for a set of
//! studies. S7 runs workloads of the same
//! drawing with a watch on the cores, S8 on two machines ([`asymmetry`]).
//!
//! Pitfalls: the policy predicts with the model that comes with the program, not with that of S1 to
//! S3. In rows `symbiotic` is the paper's scheduler, which pairs over the whole chip
//! (`symbiotic:numa=false`); `symbiotic-in-node`, ours, leaves threads on the node where they were
//! first and pairs inside nodes.

pub(super) mod asymmetry;
mod causes;
mod chips;
pub(super) mod errors;
mod frames;
mod heard;
mod longer;
pub(super) mod mixes;
pub(super) mod outcome;
pub(super) mod phases;
mod prepare;
mod programs;
pub(super) mod training;

pub(super) use causes::changes;
pub(super) use chips::{NEAR_FIRST_HALF, chip_with_memory};
use chips::{chip, chip_with_causes};
pub(super) use frames::{even, near};
pub(super) use longer::table as time_alone;
pub(super) use prepare::PreparedMix;

pub(super) use crate::simulate::part_error;
use std::time::Duration;

/// The seed of the studies.
#[cfg(test)]
pub(super) const SEED: u64 = 8;

/// Length of a quantum (section 4.2 of the paper).
pub(super) const QUANTUM: Duration = Duration::from_millis(100);
