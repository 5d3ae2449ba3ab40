//! Threads as `/proc` describes them: names, states, consumption and owners.
//!
//! Discovery and enactment both read these files, and must agree on the identity of a thread. Every
//! reader takes the directory that `/proc` is below.
//!
//! Pitfall: a thread may end between any two reads. [`ProcError::Gone`] is an answer like any
//! other.

mod error;
mod handle;
mod identity;
mod list;
mod stat;
mod status;
mod tick;

#[cfg(test)]
pub(crate) use list::tests::process;
#[cfg(test)]
pub(crate) use stat::tests::line_of;

pub use error::ProcError;
pub(crate) use handle::{ProcessHandle, continue_process};
pub(crate) use identity::{ThreadUsers, name_of};
pub(crate) use list::{
    latest_number, numbers_in, parent_of, read_process, read_stat, thread_dir, unless_gone,
};
pub use list::{process_tree, threads_of};
pub use stat::{RunState, Stat, StatError};
pub(crate) use stat::{STAT_BYTES, read_open};
pub(crate) use status::ProcStatus;
pub(crate) use tick::{now_ticks, tick_ns};
