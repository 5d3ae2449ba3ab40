//! Taking threads under management.

use super::affinity::{OriginalMask, effective_mask};
use super::checked_write::{MaskWriteOutcome, write_mask};
use super::enactor::{Enactor, ManagedThread, ThreadState, UnmanagedReason};
use super::host::{AllowedPuSet, AllowedPusCache};
use super::journal::JournalError;
use super::other_runs::HostSnapshot;
use super::record::{JournalRecord, ManagedProgram};
use super::{affinity, other_runs};
use crate::proc::{ProcError, Stat, now_ticks};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;
use std::path::PathBuf;
use std::time::Instant;
use thiserror::Error;

/// Reason for which a thread was not taken in.
#[derive(Debug, Error)]
pub enum AdoptError {
    /// The thread has exited.
    #[error("thread {0} has exited")]
    Gone(ThreadId),
    /// Another program changed the thread's mask earlier, and Consort let it go for good.
    #[error("thread {0} was released because another program changed its affinity")]
    Released(ThreadId),
    /// Another run of Consort manages the thread's program.
    #[error("program {pid} is managed by another consort, process {owner}")]
    ManagedElsewhere {
        /// The program.
        pid: u32,
        /// The process that runs the other Consort.
        owner: u32,
    },
    /// The thread's cpuset is exclusive, and [`Enactor::allow_exclusive_cpusets`] was not called.
    #[error(
        "its cpuset {} is exclusive, so that another program assigns these CPUs \
         (--override manages it all the same)",
        .0.display()
    )]
    Exclusive(PathBuf),
    /// The parent of a child is not known.
    #[error("the parent {0} of the new thread is not managed")]
    NoParent(ThreadId),
    /// The original mask that was given is empty.
    #[error("the original mask of thread {0} is empty; give the CPUs that it may run on")]
    EmptyMask(ThreadId),
    /// The program cannot be journalled.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The thread cannot be looked up for the moment; try again later.
    #[error("cannot look up thread {0}: {1}")]
    Unseen(ThreadId, ProcError),
    /// The kernel refused.
    #[error("cannot read or write the affinity of thread {0}: {1}")]
    Kernel(ThreadId, Errno),
}

/// Outcome for a new thread of a managed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildStatus {
    /// The thread has the original mask of its parent or program, and is managed.
    Adopted,
    /// The thread had inherited a mask that Consort wrote; it was put back to the original at once,
    /// and is managed.
    Reset,
    /// Another program gave the thread this mask on purpose, so it is not managed.
    Foreign(PuSet),
    /// The thread was known already, in this state.
    Known(ThreadState),
}

/// Facts about a thread, read before it is judged.
struct AdoptionFacts {
    now: PuSet,
    allowed: AllowedPuSet,
    stat: Stat,
}

impl Enactor {
    /// Takes a thread under management with the mask to restore in the end, which is usually the
    /// one that it has. For a foreign thread this is the override.
    ///
    /// # Errors
    /// When the thread is gone, was let go earlier or is managed by another run, when its cpuset is
    /// exclusive, its program cannot be journalled, or the mask is empty.
    pub fn adopt(&mut self, thread: ThreadId, original: PuSet) -> Result<(), AdoptError> {
        if original.is_empty() {
            return Err(AdoptError::EmptyMask(thread));
        }
        if self.left.get(&thread) == Some(&UnmanagedReason::Released) {
            return Err(AdoptError::Released(thread));
        }
        self.snapshot = None;
        let facts = self.read_facts(thread)?;
        let original = OriginalMask::new(original, &facts.allowed.pus);
        self.ensure_program(thread, thread.pid, &original, &facts)?;
        // The record of the override takes back that of the leave.
        if self.left.contains_key(&thread) {
            self.record(&[JournalRecord::Thread(thread, original.clone())])?;
            self.left.remove(&thread);
        }
        self.insert_managed(thread, original, facts);
        Ok(())
    }

    /// Takes in a thread that a managed thread has created: a thread of the same program, or the
    /// first one of a new program. A mask that it inherited while Consort had it in force is
    /// undone; a mask that it was given on purpose is respected.
    ///
    /// # Errors
    /// As for [`Enactor::adopt`]; also when the parent was never managed.
    pub fn adopt_child(
        &mut self,
        child: ThreadId,
        parent: ThreadId,
    ) -> Result<ChildStatus, AdoptError> {
        match self.state(child) {
            ThreadState::Unmanaged => {}
            known => return Ok(ChildStatus::Known(known)),
        }
        let program = self.ledger.programs.get(&parent.pid);
        let program = program.ok_or(AdoptError::NoParent(parent))?;
        let managed = self.threads.get(&parent).map(|m| &m.original);
        let journalled = || self.ledger.threads.get(&parent);
        let of_parent = managed.or_else(journalled).unwrap_or(&program.original);
        let root = program.root;
        let originals = [of_parent.clone(), program.original.clone()];
        let facts = self.read_facts(child)?;
        let [of_parent, of_program] = &originals;
        self.ensure_program(child, root, of_program, &facts)?;
        // First, because a thread with an original mask needs no write, whatever gave it that mask.
        let same = originals
            .iter()
            .find(|o| o.effective_pus(&facts.allowed.pus) == facts.now);
        if let Some(original) = same {
            self.insert_managed(child, original.clone(), facts);
            return Ok(ChildStatus::Adopted);
        }
        let (born, now) = (child.start_ticks, now_ticks());
        if (self.mask_history).covers(root, &facts.now, &facts.allowed.pus, born) {
            // Threads that it started in turn may have inherited the same.
            self.mask_history
                .add_past_holder(root, &facts.now, born, now);
            return self.reset_child(child, of_parent.clone(), facts);
        }
        // Journalled, so that the guardian leaves the thread alone as well.
        self.record(&[JournalRecord::Leave(child)])?;
        self.left.insert(child, UnmanagedReason::Foreign);
        Ok(ChildStatus::Foreign(facts.now))
    }

    fn reset_child(
        &mut self,
        child: ThreadId,
        original: OriginalMask,
        facts: AdoptionFacts,
    ) -> Result<ChildStatus, AdoptError> {
        match write_mask(&self.host, child, &original.mask()) {
            MaskWriteOutcome::Done(now, stat) => {
                self.insert_managed(child, original, AdoptionFacts { now, stat, ..facts });
                Ok(ChildStatus::Reset)
            }
            MaskWriteOutcome::Gone => Err(AdoptError::Gone(child)),
            MaskWriteOutcome::Failed(errno) => Err(AdoptError::Kernel(child, errno)),
        }
    }

    fn insert_managed(&mut self, thread: ThreadId, original: OriginalMask, facts: AdoptionFacts) {
        let managed = ManagedThread {
            original,
            wanted: None,
            seen: facts.now,
            allowed: facts.allowed,
            start_stack: facts.stat.start_stack,
            looked: Instant::now(),
        };
        self.threads.insert(thread, managed);
    }

    fn read_facts(&mut self, thread: ThreadId) -> Result<AdoptionFacts, AdoptError> {
        let unseen = |error| AdoptError::Unseen(thread, error);
        let now = match affinity::get(thread.tid) {
            Err(Errno::ESRCH) => return Err(AdoptError::Gone(thread)),
            Err(errno) => return Err(AdoptError::Kernel(thread, errno)),
            Ok(now) => now,
        };
        let snapshot = HostSnapshot::get_or_refresh(
            &mut self.snapshot,
            &self.host,
            (&self.runtime_dirs, &self.journal.path()),
        );
        let allowed = (snapshot.allowed)
            .read(&self.host, thread.pid, thread.tid)
            .map_err(unseen)?;
        if let Some(by) = self.forbidding_cgroup(&allowed).map_err(unseen)? {
            return Err(AdoptError::Exclusive(by));
        }
        let stat = self.host.stat_if_same(thread).map_err(unseen)?;
        let stat = stat.ok_or(AdoptError::Gone(thread))?;
        Ok(AdoptionFacts { now, allowed, stat })
    }

    /// Journals the thread's program under the tree of `root` unless it is known.
    fn ensure_program(
        &mut self,
        thread: ThreadId,
        root: u32,
        original: &OriginalMask,
        facts: &AdoptionFacts,
    ) -> Result<(), AdoptError> {
        let pid = thread.pid;
        // A program is identified by the start of its first thread.
        let stat = match thread.tid == pid {
            true => facts.stat.clone(),
            false => {
                let stat = self.host.stat(pid, pid);
                let stat = stat.map_err(|error| AdoptError::Unseen(thread, error))?;
                stat.ok_or(AdoptError::Gone(thread))?
            }
        };
        let known = self.ledger.programs.get(&pid);
        if known.is_some_and(|program| program.start_ticks == stat.start_ticks) {
            return Ok(());
        }
        let start_ticks = stat.start_ticks;
        let journals = (self.runtime_dirs.as_slice(), &*self.journal.path());
        let others =
            &HostSnapshot::get_or_refresh(&mut self.snapshot, &self.host, journals).other_journals;
        // Two runs on one program would take each other's masks for original ones.
        let other = (others.clone())
            .and_then(|others| other_runs::find_owner_pid(&self.host, &others, (pid, start_ticks)))
            .map_err(|error| AdoptError::Unseen(thread, error))?;
        if let Some(owner) = other {
            return Err(AdoptError::ManagedElsewhere { pid, owner });
        }
        let program = ManagedProgram {
            pid,
            start_ticks,
            root,
            pgrp: stat.group,
            session: stat.session,
            original: original.clone(),
        };
        Ok(self.record(&[JournalRecord::Program(program)])?)
    }
}

/// Number of readings after which a mask and a cpuset that keep changing are taken as they are.
const MOST_READINGS: usize = 8;

/// Result of a look at a thread before it is written.
pub(super) enum MaskCheck {
    /// The thread is as it was left.
    Steady,
    /// The mask differs without anybody's choice: a cpuset or the CPUs that are online have
    /// changed, or the thread became its process's leader by `exec` and brought a mask of Consort's
    /// with it.
    Shifted {
        /// The mask of the thread now.
        now: PuSet,
        /// CPUs that the cpuset allows now.
        allowed: AllowedPuSet,
    },
    /// Another program wrote this mask.
    Changed(PuSet),
    /// The thread has exited.
    Gone,
    /// The thread cannot be looked up for the moment.
    Unseen(ProcError),
}

impl Enactor {
    /// Looks at the mask of a thread, and distinguishes changes by the kernel from changes by other
    /// programs.
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
        // An exec gives the process a new stack. The thread that called it becomes the leader, with
        // its own mask.
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
        let last = self.last_pins.get(&leader.pid);
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
/// the requested mask with a new cpuset (since Linux 6.2), or gives the whole cpuset
/// (before, and where nothing is common). Before 6.2 it does so as well where a cgroup gets a
/// cpuset of its own although that allows the same CPUs, as all siblings of a cgroup do when the
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
