//! How a managed thread is found at a look: as it was left, moved by the kernel, or changed by
//! somebody else.

use super::affinity;
use super::enactor::{Enactor, Managed};
use super::host::AllowedPus;
use super::original::effective;
use consort_core::{PuSet, ThreadId};

/// How a thread is found before it is written.
pub(super) enum Look {
    /// As it was left.
    Steady,
    /// Its mask differs, but by nobody's choice: a cpuset or the PUs that are online have changed,
    /// or it became its process's leader by `exec` and brought a mask of Consort's with it.
    Shifted {
        /// PUs that the cpuset allows now.
        allowed: PuSet,
    },
    /// Somebody else wrote this mask.
    Changed(PuSet),
    /// It has exited.
    Gone,
}

impl Enactor {
    /// Tells the kernel's own changes of a mask from those of somebody else.
    pub(super) fn look(&self, thread: ThreadId, managed: &Managed) -> Look {
        let now = match affinity::get(thread.tid) {
            Ok(now) if now == managed.seen => return Look::Steady,
            Ok(now) => now,
            Err(_) => return Look::Gone,
        };
        let Some(stat) = self.host.same(thread) else {
            return Look::Gone;
        };
        let allowed = AllowedPus::new(&self.host).of(thread.pid, thread.tid);
        let moved_cpuset = allowed != managed.allowed && is_shift(managed, &now, &allowed);
        let executed = stat.start_stack != managed.start_stack;
        if moved_cpuset || (executed && self.came_by_exec(thread, &now, &allowed)) {
            Look::Shifted { allowed }
        } else {
            Look::Changed(now)
        }
    }

    /// Whether another thread of the process, whose `exec` ended all others and made it the
    /// leader, had this mask from Consort.
    fn came_by_exec(&self, leader: ThreadId, now: &PuSet, allowed: &PuSet) -> bool {
        let last = self.narrowed_last.get(&leader.pid);
        let others = self.threads.iter().filter(|(id, _)| {
            id.pid == leader.pid && id.tid != leader.pid && self.host.same(**id).is_none()
        });
        let mut masks = others
            .filter_map(|(_, other)| other.wanted.as_ref())
            .chain(last);
        masks.any(|mask| effective(mask, allowed) == *now)
    }
}

/// Whether the kernel alone can have made this mask of the one left behind:
/// it intersects with a new cpuset what was asked for (since Linux 6.2), or
/// gives the whole cpuset (before, and where nothing is common).
fn is_shift(managed: &Managed, now: &PuSet, allowed: &PuSet) -> bool {
    let kept = match &managed.wanted {
        Some(wanted) => effective(wanted, allowed),
        None => managed.original.target(allowed),
    };
    *now == kept || now == allowed
}

#[cfg(test)]
mod tests {
    use super::super::apply::tests::{managed, set};
    use super::*;

    #[test]
    fn the_kernels_own_changes_are_told_from_others() {
        let thread = managed("0-3", "0-3", Some("0-1"));
        assert!(is_shift(&thread, &set("0"), &set("0,2")));
        assert!(is_shift(&thread, &set("0,2"), &set("0,2")));
        assert!(!is_shift(&thread, &set("2"), &set("0,2")));
        let free = managed("0-1", "0-3", None);
        assert!(is_shift(&free, &set("1"), &set("1-3")));
        assert!(!is_shift(&free, &set("2"), &set("1-3")));
    }
}
