//! Threads that are found: taken under management, or left alone with a warning.

use super::LiveMachine;
use super::actuators::AdoptionOutcome;
use super::program_trees::UserExclusion;
use crate::discovery::ThreadEvent;
use crate::proc::{ProcError, ThreadUsers, read_process};
use consort_core::{PuSet, Sample, ThreadId};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

impl LiveMachine {
    /// Takes in the changes that the census has found.
    pub(super) fn apply_thread_events(&mut self, events: Vec<ThreadEvent>) {
        self.note_starters(&events);
        for event in events {
            match event {
                ThreadEvent::Appeared {
                    id,
                    name,
                    parent,
                    unmanageable,
                } => match unmanageable {
                    _ if !self.assign_program(id, parent) => {}
                    Some(why) => {
                        self.leave_unmanaged(id, name, &format!("{why}"));
                        self.set_baseline(id);
                    }
                    None => match self.user_exclusion(id) {
                        None => self.adopt(id, name, parent),
                        Some(why) => self.exclude_by_user(id, name, why),
                    },
                },
                ThreadEvent::Renamed { id, name } => {
                    self.table.rename(id, name);
                    // It may have executed a setuid file.
                    self.release_excluded(&[id]);
                }
                ThreadEvent::Exited { id } => {
                    let seen = self.table.observed_state_mut(id);
                    let sample = self.observers.last_counts(id, seen);
                    self.retire_thread(id, sample);
                }
            }
        }
    }

    /// Forgets a thread that has exited, except for its last sample.
    pub(super) fn retire_thread(&mut self, id: ThreadId, sample: Sample) {
        self.observers.forget(id);
        self.actuators.forget(id);
        self.table.retire_thread(id, sample);
        if !self.table.has_process(id.pid) {
            self.attachments.forget_attached(id.pid);
        }
    }

    /// Reason for which a thread is not managed although its program is: it acts for another user
    /// than its program may have threads of.
    fn user_exclusion(&self, id: ThreadId) -> Option<UserExclusion> {
        let trees = self.table.trees();
        let root = trees
            .root_of(id.pid)
            .filter(|&root| trees.is_restricted(root))?;
        // One that cannot be read is not known to act for another user, and is looked at again soon
        // once it is managed; if it is gone, that is found when it is taken.
        let users = ThreadUsers::from_thread(self.site.root(), id).ok()?;
        trees.exclusion(root, users)
    }

    fn exclude_by_user(&mut self, id: ThreadId, name: Arc<str>, why: UserExclusion) {
        if let UserExclusion::Foreign { user, asker } = why {
            let why = format!("it acts for user {user}, and user {asker} attached its program");
            self.leave_unmanaged(id, name, &why);
        }
    }

    /// Puts back those of these threads that their programs may not have, or no longer, and lets go
    /// of them.
    pub(super) fn release_excluded(&mut self, threads: &[ThreadId]) {
        for &id in threads {
            if !self.table.may_place(id) {
                continue;
            }
            if let Some(why) = self.user_exclusion(id) {
                let name = Arc::from(self.table.name(id));
                self.release_threads(|of| *of == id);
                self.exclude_by_user(id, name, why);
            }
        }
    }

    fn leave_unmanaged(&mut self, id: ThreadId, name: Arc<str>, why: &str) {
        self.warnings
            .insert(format!("thread {id} ({name}) is let alone: {why}"));
        let mask = self.actuators.leave_unmanaged(id, &mut self.warnings);
        self.table.enter(id, name, mask, false);
        self.table.note_reason(id, why);
    }

    /// Takes a thread in, managed unless somebody else gives out its PUs.
    fn adopt(&mut self, id: ThreadId, name: Arc<str>, parent: Option<u32>) {
        let parent = self.table.parent_of(id, parent);
        self.adopt_thread(id, name, parent);
    }

    /// Takes a thread in that this parent has started; its present mask counts as its original one
    /// if none is given.
    pub(super) fn adopt_thread(&mut self, id: ThreadId, name: Arc<str>, parent: Option<ThreadId>) {
        match self.actuators.adopt_thread(id, parent, &mut self.warnings) {
            AdoptionOutcome::Managed(original) => {
                self.observers.count_thread(id);
                self.table.enter(id, name.clone(), original, true);
                // Only now: a mask that it has inherited from a managed thread is undone.
                // Groups that cannot be read now are looked up by the next review.
                if let Ok(Some(why)) = self.group_exclusion(id) {
                    self.exclude_by_group(id, &name, &why);
                }
            }
            AdoptionOutcome::SelfPlaced(mask) => self.leave_self_placed(id, name, mask),
            // Managed all the same: it is taken with the next plan that places it.
            AdoptionOutcome::Unseen(mask, _) => {
                self.observers.count_thread(id);
                self.table.enter(id, name, mask, true);
            }
            AdoptionOutcome::LetAlone(why) => self.leave_unmanaged(id, name, &why),
            AdoptionOutcome::Gone => return self.scan.count_gone(),
        }
        self.set_baseline(id);
    }

    /// Counts what a thread consumes from now on, if it began before its process, or the root of its
    /// program, was attached; all that it has consumed otherwise.
    fn set_baseline(&mut self, id: ThreadId) {
        let of_root = || {
            self.attachments
                .attached_at(self.table.program_of(id.pid).0)
        };
        let attached = self.attachments.attached_at(id.pid).or_else(of_root);
        let was_there = attached.is_some_and(|at| id.start_ticks < at);
        if let Some(seen) = self.table.observed_state_mut(id).filter(|_| was_there) {
            self.observers.set_baseline(id, seen);
        }
    }

    /// Takes in a thread whose affinity somebody has set on purpose: it is read, and not managed.
    fn leave_self_placed(&mut self, id: ThreadId, name: Arc<str>, mask: PuSet) {
        self.observers.count_thread(id);
        let text = format!(
            "thread {id} ({name}) is let alone: its affinity {mask} was set on purpose \
             (--override manages it all the same)"
        );
        self.warnings.insert(text);
        self.table.enter(id, name, mask, false);
        self.table.mark_self_placed(id);
        self.table
            .note_reason(id, "its affinity was set on purpose");
    }

    /// Returns true if a thread belongs to a program that is managed; notes the program.
    fn assign_program(&mut self, id: ThreadId, parent: Option<u32>) -> bool {
        if self.actuators.is_own(id.pid) {
            return false;
        }
        let reported = parent.and_then(|tid| self.table.by_tid(tid));
        let reported = reported.map(|thread| thread.pid);
        let is_cut = Cell::new(false);
        let above = ancestors_of(self.site.root(), id.pid, &is_cut);
        let root = self
            .table
            .trees_mut()
            .assign_by_parents(id.pid, reported.into_iter().chain(above));
        if is_cut.get() {
            // It may belong to another program; its place is found when it is announced again.
            self.table.trees_mut().forget(id.pid);
            self.scan.find_again(&BTreeSet::from([id.pid]));
            return false;
        }
        root.is_some_and(|root| self.table.trees().is_managed(root))
    }

    /// Notes threads that start others. Where no records tell of them, every thread counts that was
    /// in the process before.
    fn note_starters(&mut self, found: &[ThreadEvent]) {
        let untold = |event: &ThreadEvent| match event {
            ThreadEvent::Appeared {
                id, parent: None, ..
            } => Some(*id),
            _ => None,
        };
        let starts = found.iter().filter_map(untold);
        let pids: BTreeSet<u32> = starts
            .map(|id| {
                self.table
                    .parent_of(id, None)
                    .map_or(id.pid, |starter| starter.pid)
            })
            .collect();
        if pids.is_empty() {
            return;
        }
        let there = self.table.process_threads(&pids);
        let refused = self.actuators.note_starters(there, &self.table);
        self.warnings.extend(refused);
    }
}

/// Most steps up the tree of processes; `/proc` changes while it is read, so there may be circles.
const MOST_ANCESTORS: usize = 64;

/// The processes above one, the nearest first; each is looked up only when it is asked for, as the
/// nearest mostly shows the program. Sets `is_cut` if one cannot be looked up for the moment.
fn ancestors_of(root: &Path, pid: u32, is_cut: &Cell<bool>) -> impl Iterator<Item = u32> {
    let mut of = pid;
    let above = move || {
        let stat = read_process(root, of);
        is_cut.set(stat.as_ref().is_err_and(ProcError::is_transient));
        of = stat
            .ok()
            .map(|stat| stat.parent_pid)
            .filter(|&parent| parent > 0)?;
        Some(of)
    };
    std::iter::from_fn(above).take(MOST_ANCESTORS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;

    #[test]
    fn ancestors_are_looked_up_when_they_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let starts = |pid, parent| process(dir.path(), pid, parent, &[(pid, "x", 1)]);
        starts(12, 11);
        starts(11, 10);
        let is_cut = Cell::new(false);
        let above_12 = ancestors_of(dir.path(), 12, &is_cut);
        // Were it looked up beforehand, the earlier parent would be told.
        starts(12, 9);
        starts(9, 8);
        assert_eq!(above_12.collect::<Vec<_>>(), [9, 8]);
        let above_11 = ancestors_of(dir.path(), 11, &is_cut);
        assert_eq!(above_11.collect::<Vec<_>>(), [10]);
        assert!(!is_cut.get(), "it has ended");
    }
}
