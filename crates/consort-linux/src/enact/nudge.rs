//! Nudges: the mask of a thread is narrowed and widened again at once, which moves it and leaves no
//! trace.
//!
//! Narrowing makes the kernel move a thread that is on a PU outside of the mask, or that waits
//! for one, before the call returns (`sched_setaffinity(2)`; `affine_move_task` in
//! `kernel/sched/core.c`). Widening moves nobody: the thread stays where the scheduler keeps it.
//! A thread that sleeps is not moved by either.

use super::affinity::{self, Mask};
use super::checked_write::give_back_to_stranger;
use super::grip::There;
use super::host::{AllowedPus, Host};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;

/// Outcome of one nudge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nudged {
    /// The mask was narrowed and widened; the mask that the thread has now.
    Done(PuSet, There),
    /// The thread has exited, or has become its process's leader by `exec`; in the second case it
    /// may have been narrowed before.
    Gone,
    /// Somebody else has written this mask meanwhile; it was left as it is.
    Changed(PuSet),
    /// The kernel refused to narrow the mask.
    Refused(Errno),
    /// The mask is narrowed, and the kernel refused to widen it.
    Stuck(Errno),
}

/// Moves a thread to `pus`, a part of the PUs that its cpuset allows, and gives it `original`.
/// `there` tells whether the tid is still its own.
pub(crate) fn nudge(
    host: &Host,
    thread: ThreadId,
    pus: &PuSet,
    original: &Mask,
    mut there: impl FnMut() -> Option<There>,
) -> Nudged {
    if there().is_none() {
        return Nudged::Gone;
    }
    let narrow = Mask::Only(pus.clone());
    let narrowed = affinity::set(thread.tid, &narrow).and_then(|()| affinity::get(thread.tid));
    match narrowed {
        Err(Errno::ESRCH) => return Nudged::Gone,
        Err(errno) => return Nudged::Refused(errno),
        Ok(now) if !is_ours(host, thread, &now, pus) => return Nudged::Changed(now),
        Ok(_) => {}
    }
    let widened = widen(thread.tid, original);
    let Some(there) = there() else {
        if widened.is_ok() {
            give_back_to_stranger(host, thread.tid);
        }
        return Nudged::Gone;
    };
    match widened {
        Ok(now) => Nudged::Done(now, there),
        Err(Errno::ESRCH) => Nudged::Gone,
        Err(errno) => Nudged::Stuck(errno),
    }
}

fn widen(tid: u32, original: &Mask) -> Result<PuSet, Errno> {
    match affinity::set(tid, original) {
        // The cpuset has lost all PUs of the original mask meanwhile.
        Err(Errno::EINVAL) => affinity::set(tid, &Mask::Open)?,
        other => other?,
    }
    affinity::get(tid)
}

/// Returns true if the mask read after narrowing goes back to the one written: the kernel may have
/// cut it by a cpuset that has just shrunk, or given the whole cpuset where nothing was left.
fn is_ours(host: &Host, thread: ThreadId, now: &PuSet, pus: &PuSet) -> bool {
    now.is_subset(pus) || *now == AllowedPus::new(host).of(host, thread.pid, thread.tid)
}
