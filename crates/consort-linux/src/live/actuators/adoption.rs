//! Threads that the hands take, leave alone or let go.

use super::Actuators;
use crate::enact::{AdoptError, ChildStatus, ThreadWish, current_mask};
use crate::live::thread_table::ThreadTable;
use crate::live::warnings::Warnings;
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;

pub(in crate::live) enum AdoptionOutcome {
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

impl Actuators {
    /// Returns true for this run's own process and its guardian's.
    pub(in crate::live) fn is_own(&self, pid: u32) -> bool {
        [std::process::id(), self.guardian_pid()].contains(&pid)
    }

    /// Takes a thread under management. One that a managed thread has started may have inherited a
    /// mask that Consort wrote, which the enactor can tell.
    pub(in crate::live) fn adopt_thread(
        &mut self,
        id: ThreadId,
        parent: Option<ThreadId>,
        warnings: &mut Warnings,
    ) -> AdoptionOutcome {
        let adopted = match parent {
            Some(parent) => self.enactor.adopt_child(id, parent),
            None => self.adopt_root(id),
        };
        match adopted {
            Ok(ChildStatus::Foreign(mask)) => self.adopt_foreign(id, mask, warnings),
            Ok(_) => {
                let original = self.enactor.original(id).unwrap_or_default();
                self.clear_cookie(id, warnings);
                warnings.extend(self.in_kernel.manage_thread(id));
                AdoptionOutcome::Managed(original)
            }
            Err(AdoptError::Gone(_)) => AdoptionOutcome::Gone,
            Err(error @ AdoptError::Unseen(..)) => match current_mask(id) {
                Ok(mask) => AdoptionOutcome::Unseen(mask, error.to_string()),
                Err(Errno::ESRCH) => AdoptionOutcome::Gone,
                Err(_) => AdoptionOutcome::LetAlone(error.to_string()),
            },
            Err(error) => AdoptionOutcome::LetAlone(error.to_string()),
        }
    }

    /// Leaves a thread alone, but for a cookie that it has inherited; returns its mask.
    pub(in crate::live) fn leave_unmanaged(
        &mut self,
        id: ThreadId,
        warnings: &mut Warnings,
    ) -> PuSet {
        let mask = current_mask(id).unwrap_or_default();
        self.clear_cookie(id, warnings);
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
    fn adopt_foreign(
        &mut self,
        id: ThreadId,
        mask: PuSet,
        warnings: &mut Warnings,
    ) -> AdoptionOutcome {
        let is_taken = self.override_affinity && self.enactor.adopt(id, mask.clone()).is_ok();
        self.enforcement.note_own_mask(id);
        self.clear_cookie(id, warnings);
        if is_taken {
            AdoptionOutcome::Managed(mask)
        } else {
            AdoptionOutcome::SelfPlaced(mask)
        }
    }

    fn clear_cookie(&mut self, id: ThreadId, warnings: &mut Warnings) {
        warnings.extend(self.cookies.take_away(&[id], &self.enactor));
    }

    /// Puts threads back to their original masks; returns warnings.
    pub(in crate::live) fn restore_masks(
        &mut self,
        threads: &[ThreadId],
        table: &ThreadTable,
    ) -> Vec<String> {
        let mut warnings = self.cookies.take_away(threads, &self.enactor);
        let managed = threads.iter().filter(|id| table.may_place(**id));
        let free: Vec<_> = managed.map(|&id| (id, ThreadWish::Unrestricted)).collect();
        let report = self.enactor.apply(&free);
        let refused = report.refused.iter();
        warnings.extend(
            refused.map(|(id, refusal)| format!("thread {id} was not put back: {refusal}")),
        );
        warnings
    }

    /// Stops managing a thread that was put back. It may be taken again.
    pub(in crate::live) fn stop_managing(&mut self, id: ThreadId) {
        self.enactor.stop_managing(id);
        self.enforcement.forget(id);
        self.in_kernel.release_thread(id);
    }

    /// Forgets a thread that has exited or was put back.
    pub(in crate::live) fn forget(&mut self, id: ThreadId) {
        self.enactor.forget(id);
    }
}
