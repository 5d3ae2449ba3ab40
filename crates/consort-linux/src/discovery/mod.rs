//! Discovery of the threads that there are, with their names, owners and parents.
//!
//! Threads are found by the FORK, EXIT and COMM records of the sampling rings; a `/proc` scan finds
//! threads whose records were lost in a full ring, and serves hosts without perf. [`ThreadTracker`]
//! turns both into [`ThreadEvent`]s; [`ProcReader`] reads the consumption of a known thread. All
//! readers take the host's root directory, so that tests and containers can put another in its
//! place.
//!
//! Pitfalls: tids are those of the PID namespace that Consort and the mounted `/proc` are in.
//! Kernels reuse tids; a [`consort_core::ThreadId`] has the start time, and every reader checks it.

mod manage;
mod process_times;
mod reader;
mod tracker;

pub use crate::proc::{ProcError, RunState, Stat, StatError, process_tree, threads_of};
pub use manage::{CallerCredentials, UnmanageableReason};
pub(crate) use manage::{may_be_real_time, real_time_policy};
pub use process_times::ProcessTimes;
pub use reader::{ProcReader, ProcSample};
pub use tracker::{ThreadEvent, ThreadTracker};
