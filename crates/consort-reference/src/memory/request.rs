//! Requests that travel through the levels.

use crate::time::Femtos;

/// Origin of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DataOrigin {
    /// The L1 itself.
    L1,
    /// The L2.
    L2,
    /// The LLC, or that of another domain.
    Llc,
    /// Memory.
    Memory,
}

/// Waiter for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// Nobody: a prefetch or a line written back.
    Nobody,
    /// A load of a thread, by its sequence number.
    Load {
        /// Index of the thread.
        thread: usize,
        /// Sequence number.
        seq: u64,
    },
    /// Fetch of a thread.
    Fetch {
        /// Index of the thread.
        thread: usize,
    },
    /// A store of a thread, by its sequence number.
    Store {
        /// Index of the thread.
        thread: usize,
        /// Sequence number.
        seq: u64,
    },
    /// A level before, by its index, for the line.
    Level(usize),
}

/// A line that somebody wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRequest {
    /// Number of the line.
    pub(crate) line: u64,
    /// Thread on whose account it travels.
    pub(crate) thread: usize,
    /// Waiter for it.
    pub(crate) waiter: Waiter,
    /// True where it is to be written to, in the level that it is first asked of.
    pub(crate) write: bool,
    /// True where no operation has asked for it yet.
    pub(crate) prefetch: bool,
    /// True for a line on its way to memory.
    pub(crate) write_back: bool,
    /// Part of the load-to-use latency that has passed.
    pub(crate) passed: Femtos,
}

/// Something that was waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineReply {
    /// Waiter that it was for.
    pub(crate) waiter: Waiter,
    /// Time at which it is there.
    pub(crate) time: Femtos,
    /// Origin of the data.
    pub(crate) origin: DataOrigin,
}
