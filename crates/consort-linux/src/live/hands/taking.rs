//! Threads that the hands take, leave alone or let go.

use super::Hands;
use crate::enact::{AdoptError, ChildStatus, Wanted, current_mask};
use crate::live::roster::Roster;
use crate::live::warnings::Warnings;
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;

/// Outcome of the attempt to take a thread.
pub(in crate::live) enum Taken {
    /// The thread may be placed; these are the PUs that it may run on without Consort.
    Managed(PuSet),
    /// The thread keeps the affinity that somebody has set on purpose.
    SelfPlaced(PuSet),
    /// The thread is to be left alone, for this reason.
    LetAlone(String),
    /// The thread cannot be looked up for the moment, for this reason; this is its mask.
    Unseen(PuSet, String),
    /// The thread has ended.
    Gone,
}

impl Hands {
    /// Returns true for this run's own process and its guardian's.
    pub(in crate::live) fn is_own(&self, pid: u32) -> bool {
        [std::process::id(), self.guardian_pid()].contains(&pid)
    }

    /// Takes a thread under management. One that a managed thread has started may have inherited a
    /// mask that Consort wrote, which the enactor can tell.
    pub(in crate::live) fn take(
        &mut self,
        id: ThreadId,
        parent: Option<ThreadId>,
        warnings: &mut Warnings,
    ) -> Taken {
        let adopted = match parent {
            Some(parent) => self.enactor.adopt_child(id, parent),
            None => self.adopt_root(id),
        };
        match adopted {
            Ok(ChildStatus::Foreign(mask)) => self.meet_foreign(id, mask, warnings),
            Ok(_) => {
                let original = self.enactor.original(id).unwrap_or_default();
                self.take_cookie(id, warnings);
                warnings.extend(self.in_kernel.take(id));
                Taken::Managed(original)
            }
            Err(AdoptError::Gone(_)) => Taken::Gone,
            Err(error @ AdoptError::Unseen(..)) => match current_mask(id) {
                Ok(mask) => Taken::Unseen(mask, error.to_string()),
                Err(Errno::ESRCH) => Taken::Gone,
                Err(_) => Taken::LetAlone(error.to_string()),
            },
            Err(error) => Taken::LetAlone(error.to_string()),
        }
    }

    /// Leaves a thread alone, but for a cookie that it has inherited; returns its mask.
    pub(in crate::live) fn let_alone(&mut self, id: ThreadId, warnings: &mut Warnings) -> PuSet {
        let mask = current_mask(id).unwrap_or_default();
        self.take_cookie(id, warnings);
        mask
    }

    fn adopt_root(&mut self, id: ThreadId) -> Result<ChildStatus, AdoptError> {
        let mask = current_mask(id).map_err(|errno| match errno {
            Errno::ESRCH => AdoptError::Gone(id),
            errno => AdoptError::Kernel(id, errno),
        })?;
        self.enactor.adopt(id, mask)?;
        Ok(ChildStatus::Adopted)
    }

    /// Takes a thread whose affinity somebody has set on purpose only if the user overrides.
    fn meet_foreign(&mut self, id: ThreadId, mask: PuSet, warnings: &mut Warnings) -> Taken {
        let is_taken = self.override_affinity && self.enactor.adopt(id, mask.clone()).is_ok();
        self.enforcement.chose_mask(id);
        self.take_cookie(id, warnings);
        if is_taken {
            Taken::Managed(mask)
        } else {
            Taken::SelfPlaced(mask)
        }
    }

    fn take_cookie(&mut self, id: ThreadId, warnings: &mut Warnings) {
        warnings.extend(self.cookies.take_away(&[id], &self.enactor));
    }

    /// Puts threads back to their original masks; returns warnings.
    pub(in crate::live) fn free(&mut self, threads: &[ThreadId], roster: &Roster) -> Vec<String> {
        let mut warnings = self.cookies.take_away(threads, &self.enactor);
        let managed = threads.iter().filter(|id| roster.may_place(**id));
        let free: Vec<_> = managed.map(|&id| (id, Wanted::Unrestricted)).collect();
        let report = self.enactor.apply(&free);
        let refused = report.refused.iter();
        warnings.extend(
            refused.map(|(id, refusal)| format!("thread {id} was not put back: {refusal}")),
        );
        warnings
    }

    /// Stops managing a thread that was put back. It may be taken again.
    pub(in crate::live) fn leave(&mut self, id: ThreadId) {
        self.enactor.leave(id);
        self.enforcement.forget(id);
        self.in_kernel.give_back(id);
    }

    /// Forgets a thread that has exited or was put back.
    pub(in crate::live) fn forget(&mut self, id: ThreadId) {
        self.enactor.forget(id);
    }
}
