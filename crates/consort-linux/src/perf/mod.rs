//! The perf_event system call: opening events, reading groups, ring buffers.

mod open;

pub use open::{PerfError, Target, open, paranoid};
