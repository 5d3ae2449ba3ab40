//! The perf_event system call: opening events, reading groups, ring buffers.

mod group;
mod open;
pub mod record;
mod ring;

pub use group::{CounterGroup, GroupDelta, PerfEventSpec, TracepointError, tracepoint};
pub(crate) use open::{FollowMode, Sideband, cpu_clock, max_sample_rate_hz};
pub use open::{PerfError, PerfTarget, open, paranoid_level};
pub(crate) use ring::page_bytes;
pub use ring::{Ring, WalkSummary, walk};
