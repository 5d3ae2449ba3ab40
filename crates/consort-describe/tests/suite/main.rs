//! Promises of descriptions: what ships is right, what is wrong is told with file, line and key.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod describe;
mod machines;
mod programs;
mod workload;
