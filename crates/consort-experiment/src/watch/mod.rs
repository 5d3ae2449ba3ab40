//! Observers that watch a run for what its result does not tell.
//!
//! Usage: give a clone to [`Experiment::run`](crate::Experiment::run), and read the one that was
//! kept when the run has ended. They are called once for every thread between two events, so they
//! are part of the simulator's speed.

mod away;
mod beside;
mod core_kind;
mod fpu;
mod large_cores;
mod returns;

pub use away::Away;
pub use beside::Beside;
pub use core_kind::CoreKind;
pub use fpu::{FpuUse, FpuWatch};
pub use large_cores::LargeCores;
pub use returns::{ReturnTally, Returns};
