//! Groups of PUs that share a core, a level 2 cache or an LLC domain, told from measurements.
//!
//! Purpose: hypervisors may hide what PUs share. The slowdown that kernels cause each other, and
//! the time that a cache line takes between two PUs, give it away. Usage: [`infer()`] turns the
//! evidence of pairs into groups; [`differences`] sets them beside a topology; [`SharingMap`] is
//! what a file tells instead of the kernel, and changes a topology accordingly.
//!
//! Pitfalls: where an interval lies on both sides of a threshold nothing is told ([`SharingAnswer::Unclear`]),
//! and a PU is said to be alone only when it was compared with every other. A machine whose
//! hypervisor moves PUs about has no fixed answer.

mod compare;
mod evidence;
mod file;
mod groups;
mod infer;
mod map;
#[cfg(test)]
mod tests;
mod threshold_side;
mod transfers;

pub use compare::differences;
pub use evidence::{
    PairEvidence, PairVerdict, SharingAnswer, SharingVerdict, Stress, StressEffect,
};
pub use groups::{SharingGroup, SharingLevel};
pub use infer::{Inference, SLOWED, infer};
pub use map::{SharingError, SharingMap};
pub use transfers::FARTHER;
