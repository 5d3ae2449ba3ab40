//! Promises of the simulated machine, in one program: each of several would compile the machine's
//! generic code anew.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod describe;
mod energy;
mod engine;
mod fuzzed;
mod machines;
mod physics;
mod pmu;
mod programs;
mod small;
mod timeline;
mod workload;
