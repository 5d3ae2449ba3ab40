//! Promises of the simulated machine, in one program: each of several would compile the machine's
//! generic code anew.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod energy;
mod engine;
mod fuzzed;
mod layouts;
mod physics;
mod pmu;
mod small;
