//! Nudges: the mask of a thread is narrowed and widened again at once, which moves it and leaves no
//! trace.
//!
//! Narrowing makes the kernel move a thread that is on a PU outside of the mask, or that waits
//! for one, before the call returns (`sched_setaffinity(2)`; `affine_move_task` in
//! `kernel/sched/core.c`). Widening moves nobody: the thread stays where the scheduler keeps it.
//! A thread that sleeps is not moved by either.
//!
//! Call it on the PU of the thread ([`CallerPlacement`](super::caller_placement::CallerPlacement)): then there are two system
//! calls between the moment when a program can see the narrow mask and the moment when it no longer
//! can, and nothing that waits.

use super::affinity::{self, Mask, MaskWords};
use super::checked_write::restore_inherited_mask;
use super::host::{AllowedPusCache, Host};
use super::stat_file_cache::LiveThreadStat;
use crate::proc::ProcError;
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;
use std::time::{Duration, Instant};

/// Time for narrowing beyond which the mask is read before it is widened. In less time no thread can
/// have started on another PU and written a mask of its own there.
const AT_ONCE: Duration = Duration::from_micros(20);

/// Outcome of one nudge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NudgeOutcome {
    /// The mask was narrowed and widened.
    Done {
        /// The mask that the thread has now.
        now: PuSet,
        /// The thread after the nudge.
        there: LiveThreadStat,
        /// Upper bound of the time for which the mask was narrow.
        narrow: Duration,
    },
    /// The thread had another mask than the one seen last. Nothing was written.
    Overtaken,
    /// The thread has exited, or has become its process's leader by `exec`; in the second case it
    /// may have been narrowed before.
    Gone,
    /// Another program has written this mask meanwhile; it was left as it is.
    Changed(PuSet),
    /// The kernel refused to narrow the mask.
    Refused(Errno),
    /// The mask is narrowed, and the kernel refused to widen it.
    Stuck(Errno),
}

/// A nudge that is prepared, so that little time passes between the last look and the writes.
#[derive(Debug)]
pub(crate) struct Nudge {
    thread: ThreadId,
    /// The PUs to move to, a part of those that the thread's cpuset allows.
    pub(crate) pus: PuSet,
    /// The mask that the thread had when it was last looked at.
    seen: PuSet,
    narrow: MaskWords,
    wide: MaskWords,
}

impl Nudge {
    pub(crate) fn new(thread: ThreadId, pus: PuSet, seen: PuSet, original: &Mask) -> Self {
        Self {
            thread,
            narrow: MaskWords::from_mask(&Mask::Only(pus.clone())),
            wide: MaskWords::from_mask(original),
            pus,
            seen,
        }
    }

    /// Moves the thread, which was just seen alive as `before`, and gives it its original mask.
    /// `there` returns `None` once the tid is another thread's.
    pub(crate) fn move_thread(
        &self,
        host: &Host,
        before: LiveThreadStat,
        there: impl FnOnce() -> Result<Option<LiveThreadStat>, ProcError>,
    ) -> NudgeOutcome {
        let (thread, pus) = (self.thread, &self.pus);
        match affinity::get(thread.tid) {
            Ok(now) if now == self.seen => {}
            Ok(_) => return NudgeOutcome::Overtaken,
            Err(Errno::ESRCH) => return NudgeOutcome::Gone,
            Err(errno) => return NudgeOutcome::Refused(errno),
        }
        let start = Instant::now();
        match affinity::set_words(thread.tid, &self.narrow) {
            Err(Errno::ESRCH) => return NudgeOutcome::Gone,
            Err(errno) => return NudgeOutcome::Refused(errno),
            Ok(()) => {}
        }
        if start.elapsed() > AT_ONCE
            && let Ok(now) = affinity::get(thread.tid)
            && !is_ours(host, thread, &now, pus)
        {
            return NudgeOutcome::Changed(now);
        }
        let widened = match affinity::set_words(thread.tid, &self.wide) {
            // The cpuset has lost all PUs of the original mask meanwhile.
            Err(Errno::EINVAL) => affinity::set(thread.tid, &Mask::Open),
            other => other,
        };
        let narrow = start.elapsed();
        // One that cannot be looked up for the moment was there a moment ago.
        let Some(there) = there().unwrap_or(Some(before)) else {
            if widened.is_ok() {
                restore_inherited_mask(host, thread.tid);
            }
            return NudgeOutcome::Gone;
        };
        match widened.and_then(|()| affinity::get(thread.tid)) {
            Ok(now) => NudgeOutcome::Done { now, there, narrow },
            Err(Errno::ESRCH) => NudgeOutcome::Gone,
            Err(errno) => NudgeOutcome::Stuck(errno),
        }
    }
}

/// Returns true if the mask read after narrowing goes back to the one written: the kernel may have
/// cut it by a cpuset that has just shrunk, or given the whole cpuset where nothing was left.
fn is_ours(host: &Host, thread: ThreadId, now: &PuSet, pus: &PuSet) -> bool {
    // Without a look at the cpuset nothing speaks for another's choice.
    let is_allowed = |allowed: PuSet| *now == allowed;
    let allowed = || AllowedPusCache::new(host).read_pus(host, thread.pid, thread.tid);
    now.is_subset(pus) || allowed().map_or(true, is_allowed)
}
