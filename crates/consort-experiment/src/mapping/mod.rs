//! Workloads under thread mappings, measured.
//!
//! Source: Wang et al., "Performance Analysis of Thread Mappings with a Holistic View of the
//! Hardware Resources" (ISPASS 2012). The method is the source's: each workload runs until the
//! program that is last has done its work three times.
//!
//! Usage: a [`MappingSweep`] of workloads and [`NamedMapping`] mappings gives [`SweepResults`], of which
//! [`SweepResults::table`] is what [`consort_core::mapping::analysis`] works on. Pitfall: a program's
//! work is what it does alone in a set time, so that all programs of a workload are about equally
//! long; the source's have their own lengths.

mod alone;
mod named_mapping;
mod sweep;
mod usage;

pub use alone::{CharacterisedProgram, characterise, characterise_with_runs};
pub use named_mapping::{NamedMapping, OS};
pub use sweep::{MappingSweep, RUNS_OF_LONGEST, SweepResults};
pub use usage::usage;
