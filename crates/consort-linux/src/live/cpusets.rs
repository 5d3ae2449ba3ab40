//! Cpusets of managed threads that change: plans go by what threads may run on now.

use super::Live;
use consort_core::ThreadId;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads whose cpuset is read again at a time: this takes about half a millisecond.
const AT_A_TIME: usize = 64;

/// How often: together a thousandth of a PU.
pub(super) const RECHECK_EVERY: Duration = Duration::from_millis(500);

impl Live {
    /// Looks at some threads in turn, when it is time.
    pub(super) fn follow_cpusets(&mut self, now: Instant) {
        if now < self.clock.next_recheck {
            return;
        }
        self.clock.next_recheck = now + RECHECK_EVERY;
        let looked = self.next_threads();
        self.recheck(&looked);
        self.clock.rechecked = looked.last().copied().unwrap_or(NOBODY);
    }

    /// Learns where threads may run now.
    pub(super) fn recheck(&mut self, threads: &[ThreadId]) {
        for (id, pus) in self.enactor.recheck(threads) {
            let thread = self.threads.get_mut(&id);
            if let Some(thread) = thread.filter(|thread| *thread.original != pus) {
                thread.original = Arc::new(pus);
            }
        }
    }

    /// Managed threads after the last that was looked at; from the first again where few follow.
    fn next_threads(&self) -> Vec<ThreadId> {
        let after = (Bound::Excluded(self.clock.rechecked), Bound::Unbounded);
        let managed = self.threads.range(after).filter(|(_, t)| t.managed);
        managed.map(|(&id, _)| id).take(AT_A_TIME).collect()
    }
}

/// Before every thread.
pub(super) const NOBODY: ThreadId = ThreadId {
    pid: 0,
    tid: 0,
    start_ticks: 0,
};
