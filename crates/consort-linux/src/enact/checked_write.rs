//! Writes of the mask of exactly one thread, although the kernel takes only a tid.
//!
//! A tid can pass to another thread between a check and a write. So the identity is checked before
//! and after, and a stranger that was hit is given the mask that it must have had: it started a
//! moment ago, so it still has its creator's.

use super::affinity::{self, Mask};
use super::host::Host;
use crate::proc::{ProcError, Stat};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;

/// Outcome of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MaskWriteOutcome {
    /// The mask was written; the mask that the thread has now, and its line of `stat`.
    Done(PuSet, Stat),
    /// The thread has exited.
    Gone,
    /// The kernel refused.
    Failed(Errno),
}

/// Writes a mask to a thread, and to no other that has its tid.
pub(crate) fn write_mask(host: &Host, thread: ThreadId, mask: &Mask) -> MaskWriteOutcome {
    write_checking_identity(host, thread.tid, mask, || host.stat_if_same(thread))
}

fn write_checking_identity(
    host: &Host,
    tid: u32,
    mask: &Mask,
    mut same: impl FnMut() -> Result<Option<Stat>, ProcError>,
) -> MaskWriteOutcome {
    let before = match same() {
        Ok(Some(stat)) => stat,
        Ok(None) => return MaskWriteOutcome::Gone,
        Err(error) => return MaskWriteOutcome::Failed(error.errno()),
    };
    let result = affinity::set(tid, mask).and_then(|()| affinity::get(tid));
    let stat = match same() {
        Ok(Some(stat)) => stat,
        Ok(None) => {
            // The write hit a stranger.
            if result.is_ok() {
                restore_inherited_mask(host, tid);
            }
            return MaskWriteOutcome::Gone;
        }
        // It was the same a moment ago, and a mask that was written must be accounted for.
        Err(_) => before,
    };
    match result {
        Ok(now) => MaskWriteOutcome::Done(now, stat),
        Err(Errno::ESRCH) => MaskWriteOutcome::Gone,
        Err(errno) => MaskWriteOutcome::Failed(errno),
    }
}

/// Takes a mask away from a thread that got it through a reused tid.
pub(crate) fn restore_inherited_mask(host: &Host, tid: u32) {
    let Some((group, parent)) = host.group_and_parent(tid) else {
        return;
    };
    // The creator of a process is its parent; of any other thread, as far as is known, the first thread
    // of its process.
    let creator = if group == tid { parent } else { group };
    let inherited = affinity::get(creator).map_or(Mask::Open, Mask::Only);
    if let Err(errno) = affinity::set(tid, &inherited) {
        tracing::warn!(tid, %errno, "a reused tid keeps a mask that was not meant for it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, ThreadId) {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let thread = Host::real().identify(child.id(), child.id()).unwrap();
        (child, thread)
    }

    fn one_of(thread: ThreadId) -> Mask {
        let pus = affinity::get(thread.tid).unwrap();
        Mask::Only(PuSet::from(pus.first().unwrap()))
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn thread_with_another_start_is_untouched() {
        let (child, mut thread) = sleeper();
        let before = affinity::get(thread.tid).unwrap();
        thread.start_ticks += 1;
        let outcome = write_mask(&Host::real(), thread, &one_of(thread));
        assert_eq!(outcome, MaskWriteOutcome::Gone);
        assert_eq!(affinity::get(thread.tid).unwrap(), before);
        end(child);
    }

    #[test]
    fn stranger_gets_its_creators_mask_back() {
        let host = Host::real();
        let (child, thread) = sleeper();
        let before = affinity::get(thread.tid).unwrap();
        let mut answers = [host.stat_if_same(thread), Ok(None)].into_iter();
        let outcome = write_checking_identity(&host, thread.tid, &one_of(thread), || {
            answers.next().unwrap_or(Ok(None))
        });
        assert_eq!(outcome, MaskWriteOutcome::Gone);
        assert_eq!(affinity::get(thread.tid).unwrap(), before);
        end(child);
    }

    #[test]
    fn unreadable_thread_is_not_gone() {
        let host = Host::real();
        let (child, thread) = sleeper();
        let mask = one_of(thread);
        let short = || Err(ProcError::NoFds);
        let outcome = write_checking_identity(&host, thread.tid, &mask, short);
        assert_eq!(outcome, MaskWriteOutcome::Failed(Errno::EMFILE));
        let mut answers = [host.stat_if_same(thread), short()].into_iter();
        let outcome = write_checking_identity(&host, thread.tid, &mask, || {
            answers.next().unwrap_or(Ok(None))
        });
        assert!(
            matches!(outcome, MaskWriteOutcome::Done(now, _) if Mask::Only(now.clone()) == mask)
        );
        end(child);
    }

    #[test]
    fn a_write_reports_what_the_thread_has_then() {
        let (child, thread) = sleeper();
        let mask = one_of(thread);
        let MaskWriteOutcome::Done(now, _) = write_mask(&Host::real(), thread, &mask) else {
            panic!("the write failed");
        };
        assert_eq!(Mask::Only(now), mask);
        end(child);
        assert_eq!(
            write_mask(&Host::real(), thread, &mask),
            MaskWriteOutcome::Gone
        );
    }
}
