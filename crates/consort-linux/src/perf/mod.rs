//! The perf_event system call: opening events, reading groups, ring buffers.

pub(crate) mod attr;
mod group;
mod open;
pub mod record;
mod ring;
mod tracepoint;
mod walk;

pub use group::{CounterGroup, GroupDelta, PerfEventSpec};
pub(crate) use open::max_sample_rate_hz;
pub use open::{PerfError, PerfTarget, open, paranoid_level};
pub use ring::Ring;
pub(crate) use ring::page_bytes;
pub use tracepoint::{TracepointError, tracepoint};
pub use walk::{WalkSummary, walk};
