//! Workloads under thread mappings, measured.
//!
//! Source: Wang et al., "Performance Analysis of Thread Mappings with a Holistic View of the
//! Hardware Resources" (ISPASS 2012). The method is the source's: each workload runs until the
//! program that is last has done its work three times.
//!
//! Usage: a [`Sweep`] of workloads and [`Held`] mappings gives [`Measured`], of which
//! [`Measured::table`] is what [`consort_core::mapping::analysis`] works on. Pitfall: a program's
//! work is what it does alone in a set time, so that all programs of a workload are about equally
//! long; the source's have their own lengths.

mod alone;
mod held;
mod sweep;
mod usage;

pub use alone::{Characterised, characterise, characterised};
pub use held::{Held, OS};
pub use sweep::{Measured, RUNS_OF_LONGEST, Sweep};
pub use usage::usage;
