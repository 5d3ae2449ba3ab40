//! The perf_event system call: opening events, reading groups, ring buffers.

pub(crate) mod attr;
mod open;
pub mod record;
mod ring;
mod walk;

pub use open::{PerfError, Target, open, paranoid};
pub use ring::Ring;
pub(crate) use ring::page_bytes;
pub use walk::{Walked, walk};
