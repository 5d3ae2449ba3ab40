//! What discovery tells.

use super::manage::Unmanageable;
use consort_core::ThreadId;
use std::sync::Arc;

/// A change in the set of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// A thread is there.
    Appeared {
        /// The thread.
        id: ThreadId,
        /// Its name.
        name: Arc<str>,
        /// Kernel thread id of the thread that started it, when that was seen.
        parent: Option<u32>,
        /// Why it must be let alone, if it must.
        unmanageable: Option<Unmanageable>,
    },
    /// A thread has another name.
    Renamed {
        /// The thread.
        id: ThreadId,
        /// Its new name.
        name: Arc<str>,
    },
    /// A thread has ended.
    Exited {
        /// The thread.
        id: ThreadId,
    },
}
