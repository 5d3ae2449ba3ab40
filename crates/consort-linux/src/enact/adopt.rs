//! Taking threads under management.

use super::affinity;
use super::checked_write::{MaskWriteOutcome, write_mask};
use super::enactor::{Enactor, ManagedThread, ThreadState, UnmanagedReason};
use super::host::AllowedPuSet;
use super::host_snapshot::HostSnapshot;
use super::journal::JournalError;
use super::original_mask::OriginalMask;
use super::other_runs;
use super::record::{JournalRecord, ManagedProgram};
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
    /// Somebody else changed the thread's mask earlier, and it was let go for good.
    #[error("thread {0} was let go because somebody else changed its affinity")]
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
        "its cpuset {} is exclusive, so that whoever made it gives out these PUs \
         (--override manages it all the same)",
        .0.display()
    )]
    Exclusive(PathBuf),
    /// The parent of a child is not known.
    #[error("the parent {0} of the new thread is not managed")]
    NoParent(ThreadId),
    /// The original mask that was given is empty.
    #[error("the original mask of thread {0} is empty; give the PUs that it may run on")]
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
    /// The thread was given this mask on purpose by somebody else, and is not managed.
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
    /// Takes a thread under management with the mask to restore in the end,
    /// which is usually the one that it has. For a foreign thread this is the
    /// override.
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
        self.glance = None;
        let sight = self.read_facts(thread)?;
        let original = OriginalMask::new(original, &sight.allowed.pus);
        self.ensure_program(thread, thread.pid, &original, &sight)?;
        if self.left.contains_key(&thread) {
            self.record(&[JournalRecord::Thread(thread, original.clone())])?;
            self.left.remove(&thread);
        }
        self.insert_managed(thread, original, sight);
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
        let (root, originals) = self.inheritance(parent)?;
        let sight = self.read_facts(child)?;
        let [of_parent, of_program] = &originals;
        self.ensure_program(child, root, of_program, &sight)?;
        let same = originals
            .iter()
            .find(|o| o.effective_pus(&sight.allowed.pus) == sight.now);
        if let Some(original) = same {
            self.insert_managed(child, original.clone(), sight);
            return Ok(ChildStatus::Adopted);
        }
        let (born, now) = (child.start_ticks, now_ticks());
        if (self.narrowings).covers(root, &sight.now, &sight.allowed.pus, born) {
            // Threads that it started in turn may have inherited the same.
            self.narrowings.add_past_holder(root, &sight.now, born, now);
            return self.reset_child(child, of_parent.clone(), sight);
        }
        self.record(&[JournalRecord::Leave(child)])?;
        self.left.insert(child, UnmanagedReason::Foreign);
        Ok(ChildStatus::Foreign(sight.now))
    }

    /// The root of a parent's tree, and the originals of parent and program.
    fn inheritance(&self, parent: ThreadId) -> Result<(u32, [OriginalMask; 2]), AdoptError> {
        let program = self.ledger.programs.get(&parent.pid);
        let program = program.ok_or(AdoptError::NoParent(parent))?;
        let managed = self.threads.get(&parent).map(|m| &m.original);
        let journalled = || self.ledger.threads.get(&parent);
        let of_parent = managed.or_else(journalled).unwrap_or(&program.original);
        Ok((program.root, [of_parent.clone(), program.original.clone()]))
    }

    fn reset_child(
        &mut self,
        child: ThreadId,
        original: OriginalMask,
        sight: AdoptionFacts,
    ) -> Result<ChildStatus, AdoptError> {
        match write_mask(&self.host, child, &original.mask()) {
            MaskWriteOutcome::Done(now, stat) => {
                self.insert_managed(child, original, AdoptionFacts { now, stat, ..sight });
                Ok(ChildStatus::Reset)
            }
            MaskWriteOutcome::Gone => Err(AdoptError::Gone(child)),
            MaskWriteOutcome::Failed(errno) => Err(AdoptError::Kernel(child, errno)),
        }
    }

    fn insert_managed(&mut self, thread: ThreadId, original: OriginalMask, sight: AdoptionFacts) {
        let managed = ManagedThread {
            original,
            wanted: None,
            seen: sight.now,
            allowed: sight.allowed,
            start_stack: sight.stat.start_stack,
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
        let glance = HostSnapshot::get_or_refresh(
            &mut self.glance,
            &self.host,
            (&self.runtime_dirs, &self.journal.path()),
        );
        let allowed = (glance.allowed)
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
        sight: &AdoptionFacts,
    ) -> Result<(), AdoptError> {
        let pid = thread.pid;
        let stat = match thread.tid == pid {
            true => sight.stat.clone(),
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
            &HostSnapshot::get_or_refresh(&mut self.glance, &self.host, journals).other_journals;
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
