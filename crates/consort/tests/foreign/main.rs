//! Programs that were not written for Consort run under it as they run without.
//!
//! Each has the same output and exit status both ways, every mask is as before,
//! and the report makes sense. A program that is not installed is skipped by name.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/compiled.rs"]
mod compiled;
mod escapes;
mod jobs;
mod postgres;
mod programs;
mod side_by_side;
