//! The simulated machine: chips, programs, contention, operating system, energy.
//!
//! Interval simulation: between two events the set of running threads and their places is constant,
//! so every thread's rate is constant. The rates are solved once ([`contention`]), the simulation
//! advances to the next event, and instructions, counters and energy are accounted for exactly.

// Unit tests share builders with integration tests, which know the crate by its name.
#[cfg(test)]
extern crate self as consort_sim;

pub mod chip;
pub mod contention;
pub mod energy;
pub mod engine;
pub mod os;
pub mod phase;
pub mod pmu;
mod sim_machine;

use consort_describe::math;

pub use consort_describe::{describe, machine, program, workload};
pub use sim_machine::{SimError, SimMachine};
