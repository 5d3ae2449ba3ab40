//! Changes in the set of threads, as discovery reports them.

use super::manage::UnmanageableReason;
use consort_core::ThreadId;
use std::sync::Arc;

/// A change in the set of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// A thread was found.
    Appeared {
        /// The thread.
        id: ThreadId,
        /// Name of the thread.
        name: Arc<str>,
        /// Kernel thread id of the thread that started it; none when no record told of its start.
        parent: Option<u32>,
        /// Reason for which the thread must be left alone, if it must.
        unmanageable: Option<UnmanageableReason>,
    },
    /// A thread has another name.
    Renamed {
        /// The thread.
        id: ThreadId,
        /// New name of the thread.
        name: Arc<str>,
    },
    /// A thread has ended.
    Exited {
        /// The thread.
        id: ThreadId,
    },
}
