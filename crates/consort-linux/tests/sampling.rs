//! The sampling tier on real programs of many kinds.
//!
//! Each test starts a program of `examples/sampled.rs`, or one written as bytes,
//! and samples it as `consort run` would. Thresholds are far from what is
//! expected, so that a busy host does not matter; no test depends on a duration.

#[path = "sampling_cases/code.rs"]
mod code;
#[path = "sampling_cases/elf.rs"]
mod elf;
#[path = "sampling_cases/harness.rs"]
mod harness;
#[path = "sampling_cases/replaced.rs"]
mod replaced;
#[path = "skip/mod.rs"]
mod skip;
#[path = "sampling_cases/stalls.rs"]
mod stalls;
#[path = "sampling_cases/threads.rs"]
mod threads;
#[path = "sampling_cases/unprivileged.rs"]
mod unprivileged;
