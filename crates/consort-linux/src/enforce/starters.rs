//! Threads that start others, become other programs, or set masks, and the workers, which do none
//! of it.
//!
//! A new thread inherits the mask of the one that starts it, and a thread may look at its mask to
//! decide how many to start: such a thread is never pinned. A *worker* is a thread that has not
//! cloned, forked or executed anything for a time, in a process that is older than that.

use consort_core::ThreadId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time for which a worker must have started nothing, and its process have lived. Pools that grow
/// with the load do so within seconds.
pub(crate) const QUIET: Duration = Duration::from_secs(30);

/// Times at which threads last started others, or became other programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Starters {
    cloned: BTreeMap<ThreadId, Instant>,
    executed: BTreeMap<ThreadId, Instant>,
    /// Threads that started others while they were pinned: they are never pinned again.
    barred: BTreeSet<ThreadId>,
    /// Processes in which a thread has set its own mask: one that sets the mask that it was just
    /// pinned to cannot be noticed, so none of them is pinned again.
    choosers: BTreeSet<u32>,
}

impl Starters {
    /// Notes that a thread has cloned or forked, and whether it was pinned then.
    pub(crate) fn note_clone(&mut self, thread: ThreadId, pinned: bool, now: Instant) {
        self.cloned.insert(thread, now);
        if pinned {
            self.barred.insert(thread);
        }
    }

    /// Notes that a thread has become another program.
    pub(crate) fn note_exec(&mut self, thread: ThreadId, now: Instant) {
        self.executed.insert(thread, now);
    }

    /// Notes that a thread of this process has set its own mask.
    pub(crate) fn note_own_mask(&mut self, pid: u32) {
        self.choosers.insert(pid);
    }

    /// Returns true if a thread started no others within [`QUIET`], nor ever while it was pinned,
    /// and no thread of its process has set a mask.
    pub(crate) fn starts_none(&self, thread: ThreadId, now: Instant) -> bool {
        !self.barred.contains(&thread)
            && !self.choosers.contains(&thread.pid)
            && !is_recent(self.cloned.get(&thread), now)
    }

    /// Returns true if, besides, the thread did not become another program within [`QUIET`].
    pub(crate) fn is_worker(&self, thread: ThreadId, now: Instant) -> bool {
        self.starts_none(thread, now) && !is_recent(self.executed.get(&thread), now)
    }

    /// Forgets a thread that has exited.
    pub(crate) fn forget(&mut self, thread: ThreadId) {
        self.cloned.remove(&thread);
        self.executed.remove(&thread);
        self.barred.remove(&thread);
        if thread.tid == thread.pid {
            self.choosers.remove(&thread.pid);
        }
    }
}

fn is_recent(last: Option<&Instant>, now: Instant) -> bool {
    last.is_some_and(|&last| now.saturating_duration_since(last) < QUIET)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId {
        pid: 1,
        tid: 2,
        start_ticks: 3,
    };

    #[test]
    fn thread_that_cloned_is_no_worker() {
        let (mut starters, start) = (Starters::default(), Instant::now());
        assert!(starters.is_worker(THREAD, start));
        starters.note_clone(THREAD, false, start);
        assert!(!starters.starts_none(THREAD, start + QUIET / 2));
        assert!(starters.is_worker(THREAD, start + QUIET));
        starters.note_clone(THREAD, true, start);
        assert!(!starters.starts_none(THREAD, start + 2 * QUIET));
        starters.forget(THREAD);
        assert!(starters.is_worker(THREAD, start));
    }

    #[test]
    fn process_that_sets_its_own_masks_has_no_workers() {
        let (mut starters, now) = (Starters::default(), Instant::now());
        let other = ThreadId { tid: 3, ..THREAD };
        starters.note_own_mask(THREAD.pid);
        assert!(!starters.is_worker(THREAD, now) && !starters.starts_none(other, now));
        starters.forget(other);
        assert!(!starters.is_worker(THREAD, now + 2 * QUIET));
        starters.forget(ThreadId { tid: 1, ..THREAD });
        assert!(starters.is_worker(THREAD, now));
    }

    #[test]
    fn thread_after_exec_is_temporarily_no_worker() {
        let (mut starters, start) = (Starters::default(), Instant::now());
        starters.note_exec(THREAD, start);
        assert!(starters.starts_none(THREAD, start) && !starters.is_worker(THREAD, start));
        assert!(starters.is_worker(THREAD, start + QUIET));
    }
}
