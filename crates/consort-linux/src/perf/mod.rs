//! The perf_event system call: opening events, reading groups, ring buffers.

mod group;
mod open;
mod tracepoint;

pub use group::{CounterGroup, EventSpec, GroupDelta};
pub use open::{PerfError, Target, open, paranoid};
pub use tracepoint::{TracepointError, tracepoint};
