//! A run without a command of its own, which manages processes and control groups on request.
//!
//! Processes are attached with all that they start, control groups with all that enters them
//! ([`super::cgroups`]). The caller attaches them, or clients of a [`super::CommandSource`] do.

use super::EndCondition;
use super::cgroups::ManagedGroups;
use super::{AttachError, LiveMachine};
use crate::proc::{ThreadUsers, name_of, now_ticks, process_tree};
use crate::protocol::Peer;
use consort_core::{Sample, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Processes that are attached to a run without a command; empty for other runs.
#[derive(Default)]
pub(super) struct Attachments {
    until: EndCondition,
    pub(super) groups: ManagedGroups,
    /// Processes whose trees are sampled, by the process that was attached.
    sampled: BTreeSet<u32>,
    /// Time at which each process was attached, in clock ticks since boot.
    pub(super) attached: BTreeMap<u32, u64>,
    /// True once anything was attached.
    was_used: bool,
}

impl Attachments {
    pub(super) fn new(until: EndCondition) -> Self {
        Self {
            until,
            ..Self::default()
        }
    }

    /// Returns true if the run is to end when nothing is left of what was attached. Rules for control
    /// groups count as attached, because groups that match may yet appear.
    pub(super) fn is_over_when_empty(&self) -> bool {
        self.until == EndCondition::Empty && self.was_used && !self.groups.rules.manages()
    }
}

impl LiveMachine {
    /// Manages a process and all that it has started and will start, with a policy of its own if one
    /// is named.
    ///
    /// # Errors
    /// [`AttachError`]; then nothing has changed.
    pub fn attach(&mut self, pid: u32, policy: Option<Arc<str>>) -> Result<(), AttachError> {
        self.attach_for_user(pid, policy, None)
    }

    /// The same; if there is an `asker`, only processes of that user below the named one.
    pub(super) fn attach_for_user(
        &mut self,
        pid: u32,
        policy: Option<Arc<str>>,
        asker: Option<u32>,
    ) -> Result<(), AttachError> {
        self.check(pid)?;
        // Attached already. But a user who detached it, or root, may have more of its threads now.
        if self.table.is_managed(pid) && self.table.trees.root_of(pid) == Some(pid) {
            if self.table.trees.admit(pid, asker) {
                self.find_unmanaged_again(pid);
            }
            return Err(AttachError::Managed(pid));
        }
        let root = self.site.root();
        let name = name_of(root, pid).map_err(|error| AttachError::from_proc_error(pid, error))?;
        let was_managed = self.table.is_managed(pid);
        let below = process_tree(root, &BTreeSet::from([pid]));
        let mut below = below.map_err(|error| AttachError::from_proc_error(pid, error))?;
        if let Some(uid) = asker {
            let is_its = |users: ThreadUsers| users.other_than(uid).is_none();
            below.retain(|&pid| ThreadUsers::from_process(root, pid).is_ok_and(is_its));
        }
        let trees = &mut self.table.trees;
        trees.insert_with_policy(pid, name, policy);
        trees.restrict(pid, asker);
        // Processes that belong to another managed program stay with it.
        for other in below {
            if !self.table.trees.is_managed(other) {
                self.observers.times.enter(other);
                self.table.trees.assign_process(other, pid);
            }
        }
        self.watch_process(pid, was_managed);
        Ok(())
    }

    /// Has the threads of a program that are not managed found again, because it may have more of
    /// them now.
    fn find_unmanaged_again(&mut self, root: u32) {
        let table = &self.table;
        let its = { table.ids() }.filter(|id| table.trees.root_of(id.pid) == Some(root));
        let unmanaged: Vec<ThreadId> = its.filter(|id| !table.may_place(*id)).collect();
        for id in unmanaged {
            self.retire_thread(id, Sample::default());
            // Its process was forgotten with its last thread.
            self.table.trees.assign_process(id.pid, root);
        }
        self.watch_process(root, true);
    }

    /// Restores the masks of a process and of all others of its program and stops managing them;
    /// returns false if it was not managed.
    pub fn detach(&mut self, pid: u32) -> bool {
        match self.table.trees.root_of(pid) {
            Some(root) if self.table.is_managed(pid) => {
                self.release_program(root);
                true
            }
            _ => false,
        }
    }

    /// Restores the masks of one user's threads in the program of a process and stops managing them.
    /// Threads of other users stay managed: what these have attached is not the user's to detach.
    pub(super) fn withdraw(&mut self, pid: u32, uid: u32) {
        let Some(root) = self.table.trees.root_of(pid) else {
            return;
        };
        if !self.table.trees.withdraw(root, uid) {
            return self.release_program(root);
        }
        let threads: Vec<ThreadId> = { self.table.ids() }
            .filter(|id| self.table.trees.root_of(id.pid) == Some(root))
            .collect();
        self.release_excluded(&threads);
    }

    /// Ends the run after this quantum.
    pub fn end(&mut self) {
        self.lifecycle.end();
    }

    /// Programs that are managed now, each with the pid at its root and its name.
    pub fn programs_managed(&self) -> Vec<(u32, String)> {
        let names = self.table.trees.names().into_iter();
        names
            .filter(|(root, _)| self.table.trees.is_managed(*root))
            .collect()
    }

    /// Looks for the threads of a process, and samples them unless they were sampled before with
    /// the program that they belonged to.
    pub(super) fn watch_process(&mut self, pid: u32, was_managed: bool) {
        self.attachments.was_used = true;
        self.attachments.attached.insert(pid, now_ticks());
        let (trees, table) = (&self.table.trees, &self.table);
        let root = trees.root_of(pid);
        let lost = |known| trees.root_of(known) == root && !table.has_process(known);
        self.scan.search(pid, lost);
        if was_managed {
            return;
        }
        self.observers.times.enter(pid);
        let (root, pus) = (self.site.root(), self.site.online_pus());
        if let Some(sampler) = self.observers.sampler_mut() {
            self.attachments.sampled.insert(pid);
            if let Err(error) = sampler.join_tree(root, pid, pus) {
                let text = format!("process {pid} is not sampled: {error}");
                self.warnings.insert(text);
            }
        }
    }

    /// Checks that a process can be managed.
    pub(super) fn check(&self, pid: u32) -> Result<(), AttachError> {
        if self.actuators.is_own(pid) {
            return Err(AttachError::Own(pid));
        }
        if pid == 1 {
            return Err(AttachError::Everything);
        }
        match self.scan.tracker.unmanageable_reason(pid) {
            Err(error) => Err(AttachError::from_proc_error(pid, error)),
            Ok(Some(why)) => Err(AttachError::Unmanageable(pid, why)),
            Ok(None) => Ok(()),
        }
    }

    /// Stops sampling processes that have ended or are no longer managed: each event costs a descriptor.
    pub(super) fn stop_sampling_ended(&mut self) {
        let there: BTreeSet<Option<u32>> = { self.table.ids() }
            .map(|id| self.table.trees.root_of(id.pid))
            .collect();
        let sampled = self.attachments.sampled.iter().copied();
        let ended: Vec<u32> = sampled
            .filter(|&pid| !there.contains(&self.table.trees.root_of(pid)))
            .filter(|&pid| !self.scan.tracker.knows(pid) || !self.table.is_managed(pid))
            .collect();
        for pid in ended {
            self.attachments.sampled.remove(&pid);
            self.scan.tracker.unwatch(pid);
            if let Some(sampler) = self.observers.sampler_mut() {
                sampler.leave_tree(pid);
            }
            // The report of a run with an end names all programs that were there. A daemon writes no
            // report, and its list would grow for ever.
            if self.attachments.until == EndCondition::Requested {
                self.table.trees.remove_program(pid);
            }
        }
    }

    /// Checks that a peer may attach or detach a process: root and the user of this run any that can
    /// be managed, others only processes that act for them alone.
    pub(super) fn check_owner(&self, peer: Peer, pid: u32) -> Result<(), AttachError> {
        let users = ThreadUsers::from_process(self.site.root(), pid);
        let users = users.map_err(|error| AttachError::from_proc_error(pid, error))?;
        match users.other_than(peer.uid) {
            // A process that can become another user may act for that user at any time.
            Some(owner) if !peer.is_master() => Err(AttachError::NotYours {
                pid,
                owner,
                asker: peer.uid,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_foreground_run_ends_when_empty() {
        for (until, ends) in [
            (EndCondition::Requested, false),
            (EndCondition::Empty, true),
        ] {
            let mut attachments = Attachments::new(until);
            assert!(
                !attachments.is_over_when_empty(),
                "nothing was attached yet"
            );
            attachments.was_used = true;
            assert_eq!(attachments.is_over_when_empty(), ends);
        }
    }
}
