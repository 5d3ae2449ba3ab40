//! The physics of the contention engine: known forms (`forms`) and laws that hold for every
//! machine, program and placement (`laws`).

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod branches;
mod build;
mod copies;
mod dividers;
mod forms;
mod laws;
mod lines;
mod miss_queues;
#[path = "../small/possible.rs"]
mod possible;
mod prefetch;
mod random;
mod siblings;
mod stretches;
mod windows;
