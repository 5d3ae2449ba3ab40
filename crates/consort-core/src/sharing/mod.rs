//! Groups of CPUs that share a core, a level 2 cache or an LLC domain, inferred from measurements.
//!
//! Hypervisors may hide which parts CPUs share. The slowdown that kernels cause each other, and the
//! time that a cache line takes between two CPUs, reveal it. [`infer()`] turns evidence about pairs
//! into groups, [`differences`] compares them with a topology, and [`SharingMap`] replaces the
//! kernel's description and changes a topology accordingly.
//!
//! If an interval crosses a threshold, nothing is decided ([`SharingAnswer::Unclear`]), and a CPU
//! counts as alone only if it was compared with every other. A machine whose hypervisor moves CPUs
//! has no fixed answer.

mod evidence;
mod groups;
mod infer;
mod map;
#[cfg(test)]
mod tests;

pub use evidence::{
    PairEvidence, PairVerdict, SharingAnswer, SharingVerdict, Stress, StressEffect,
};
pub use groups::{SharingGroup, SharingLevel};
pub use infer::{FARTHER, Inference, SLOWED, infer};
pub use map::{SharingError, SharingMap, differences};
