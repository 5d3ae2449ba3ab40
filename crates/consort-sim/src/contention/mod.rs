//! Contention: rates of all running threads, given the CPU that each is on.
//!
//! [`Solver::solve`] takes the threads that are on CPUs and gives each its rate and its cycle
//! stack, by a damped fixed point over the shared structures. The answer depends on the argument
//! alone, not on earlier calls, so that it can be kept for reuse.

mod branches;
mod buffers;
mod caches;
mod chain;
mod claims;
pub(crate) mod core_model;
mod dispatch;
mod in_order;
mod layout;
mod limits;
mod misses;
mod needs;
mod pipeline;
mod solve;
mod stations;
mod supply;
mod thread_setting;
mod turns;
mod twins;
mod types;

pub(crate) use caches::time_to_fill;
pub use solve::Solver;
pub(crate) use thread_setting::KnownPhases;
pub use types::{
    CpiStack, Demand, InstructionActivity, LockQueue, RunningThread, Solution, ThreadRates,
};
