//! The perf_event system call: opening events, reading groups, ring buffers.

pub(crate) mod attr;
mod group;
mod open;
pub mod record;
mod ring;
mod tracepoint;
mod walk;

pub use group::{CounterGroup, EventSpec, GroupDelta};
pub(crate) use open::max_sample_rate_hz;
pub use open::{PerfError, Target, open, paranoid};
pub use ring::Ring;
pub(crate) use ring::page_bytes;
pub use tracepoint::{TracepointError, tracepoint};
pub use walk::{Walked, walk};
