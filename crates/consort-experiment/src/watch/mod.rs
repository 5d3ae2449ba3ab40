//! Observers that watch a run for what its result does not tell.
//!
//! Usage: give a clone to [`Experiment::run`](crate::Experiment::run), and read the one that was
//! kept when the run has ended. They are called once for every thread between two events, so they
//! are part of the simulator's speed.

mod co_runners;
mod core_kind;
mod fpu;
mod large_cores;
mod remote_memory;
mod returns;

pub use co_runners::CoRunnerWatch;
pub use core_kind::CoreKind;
pub use fpu::{FpuUse, FpuWatch};
pub use large_cores::LargeCoreWatch;
pub use remote_memory::RemoteMemoryWatch;
pub use returns::{ReturnTally, ReturnWatch};
