//! Looks at managed threads: each is as it was left, was moved by the kernel, or was changed by
//! somebody else.

use super::affinity;
use super::enactor::{Enactor, ManagedThread};
use super::host::{AllowedPuSet, AllowedPusCache};
use super::original_mask::effective_mask;
use crate::proc::ProcError;
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;

/// Number of readings after which a mask and a cpuset that keep changing are taken as they are.
const MOST_READINGS: usize = 8;

/// Result of a look at a thread before it is written.
pub(super) enum MaskCheck {
    /// The thread is as it was left.
    Steady,
    /// The mask differs, but by nobody's choice: a cpuset or the PUs that are online have changed,
    /// or the thread became its process's leader by `exec` and brought a mask of Consort's with it.
    Shifted {
        /// The mask of the thread now.
        now: PuSet,
        /// PUs that the cpuset allows now.
        allowed: AllowedPuSet,
    },
    /// Somebody else wrote this mask.
    Changed(PuSet),
    /// The thread has exited.
    Gone,
    /// The thread cannot be looked up for the moment.
    Unseen(ProcError),
}

impl Enactor {
    /// Tells the kernel's own changes of a mask from those of somebody else.
    pub(super) fn check_mask(&self, thread: ThreadId, managed: &ManagedThread) -> MaskCheck {
        let now = match affinity::get(thread.tid) {
            Ok(now) if now == managed.seen => return MaskCheck::Steady,
            Ok(now) => now,
            Err(Errno::ESRCH) => return MaskCheck::Gone,
            Err(errno) => return MaskCheck::Unseen(ProcError::from_mask_errno(thread.tid, errno)),
        };
        let stat = match self.host.stat_if_same(thread) {
            Ok(Some(stat)) => stat,
            Ok(None) => return MaskCheck::Gone,
            Err(error) => return MaskCheck::Unseen(error),
        };
        let (now, allowed) = match self.read_settled_mask(thread, now) {
            Ok(settled) => settled,
            Err(ProcError::Gone) => return MaskCheck::Gone,
            Err(error) => return MaskCheck::Unseen(error),
        };
        let executed = stat.start_stack != managed.start_stack;
        let by_nobody = is_shift(managed, &now, &allowed)
            || (executed && self.is_from_exec(thread, &now, &allowed.pus));
        if by_nobody {
            MaskCheck::Shifted { now, allowed }
        } else {
            MaskCheck::Changed(now)
        }
    }

    /// Reads a mask and the cpuset that it goes with, until two readings agree, as a cpuset may
    /// change between them.
    fn read_settled_mask(
        &self,
        thread: ThreadId,
        mut now: PuSet,
    ) -> Result<(PuSet, AllowedPuSet), ProcError> {
        let allowed = || AllowedPusCache::new(&self.host).read(&self.host, thread.pid, thread.tid);
        let mut cpuset = allowed()?;
        for _ in 0..MOST_READINGS {
            let mask = affinity::get(thread.tid);
            let mask = mask.map_err(|errno| ProcError::from_mask_errno(thread.tid, errno))?;
            let again = (mask, allowed()?);
            if again == (now.clone(), cpuset.clone()) {
                break;
            }
            (now, cpuset) = again;
        }
        Ok((now, cpuset))
    }

    /// Returns true if another thread of the process, whose `exec` ended all others and made it the
    /// leader, had this mask from Consort.
    fn is_from_exec(&self, leader: ThreadId, now: &PuSet, allowed: &PuSet) -> bool {
        let last = self.narrowed_last.get(&leader.pid);
        let others = self.threads.iter().filter(|(id, _)| {
            id.pid == leader.pid && id.tid != leader.pid && self.host.is_gone(**id)
        });
        let mut masks = others
            .filter_map(|(_, other)| other.wanted.as_ref())
            .chain(last);
        masks.any(|mask| effective_mask(mask, allowed) == *now)
    }
}

/// Returns true if the kernel alone can have made this mask of the one left behind: it intersects
/// the mask that was asked for with a new cpuset (since Linux 6.2), or gives the whole cpuset
/// (before, and where nothing is common). Before 6.2 it does so as well where a cgroup gets a
/// cpuset of its own although that allows the same PUs, as all siblings of a cgroup do when the
/// first of them is limited.
fn is_shift(managed: &ManagedThread, now: &PuSet, allowed: &AllowedPuSet) -> bool {
    let kept = match &managed.wanted {
        Some(wanted) => effective_mask(wanted, &allowed.pus),
        None => managed.original.effective_pus(&allowed.pus),
    };
    *now == kept || (*allowed != managed.allowed && *now == allowed.pus)
}

#[cfg(test)]
mod tests {
    use super::super::apply::tests::{managed, set};
    use super::*;

    #[test]
    fn the_kernels_own_changes_are_told_from_others() {
        let thread = managed("0-3", "0-3", Some("0-1"));
        let allowed = |pus: &str, by: Option<&str>| AllowedPuSet {
            pus: set(pus),
            by: by.map(Into::into),
            exclusive: false,
        };
        assert!(is_shift(&thread, &set("0"), &allowed("0,2", None)));
        assert!(is_shift(&thread, &set("0,2"), &allowed("0,2", None)));
        assert!(!is_shift(&thread, &set("2"), &allowed("0,2", None)));
        assert!(!is_shift(&thread, &set("0-3"), &allowed("0-3", None)));
        assert!(is_shift(&thread, &set("0-3"), &allowed("0-3", Some("/b"))));
        assert!(!is_shift(&thread, &set("2"), &allowed("0-3", Some("/b"))));
        let free = managed("0-1", "0-3", None);
        assert!(is_shift(&free, &set("1"), &allowed("1-3", None)));
        assert!(!is_shift(&free, &set("2"), &allowed("1-3", None)));
    }
}
