//! Threads that are found: taken under management, or left alone with a warning.

use super::Live;
use crate::discovery::ThreadEvent;
use crate::enact::{AdoptError, ChildStatus, current_mask};
use crate::proc::parent_of;
use consort_core::{PuSet, Sample, ThreadId};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

impl Live {
    /// Takes in the changes that the census has found.
    pub(super) fn follow(&mut self, events: Vec<ThreadEvent>) {
        self.note_starters(&events);
        for event in events {
            match event {
                ThreadEvent::Appeared {
                    id,
                    name,
                    parent,
                    unmanageable,
                } => match unmanageable {
                    _ if !self.belongs(id, parent) => {}
                    Some(why) => self.let_alone(id, name, &format!("{why}")),
                    None => self.adopt(id, name, parent),
                },
                ThreadEvent::Renamed { id, name } => {
                    if let Some(thread) = self.roster.get_mut(id) {
                        thread.name = name;
                    }
                }
                ThreadEvent::Exited { id } => {
                    let seen = self.roster.get_mut(id).map(|thread| &mut thread.seen);
                    let sample = self.senses.last_counts(id, seen);
                    self.part_with(id, sample);
                }
            }
        }
    }

    /// Forgets a thread that has exited, except for its last sample.
    pub(super) fn part_with(&mut self, id: ThreadId, sample: Sample) {
        self.senses.forget(id);
        self.enactor.forget(id);
        self.roster.part_with(id, sample);
    }

    fn let_alone(&mut self, id: ThreadId, name: Arc<str>, why: &str) {
        self.warnings
            .insert(format!("thread {id} ({name}) is let alone: {why}"));
        let mask = current_mask(id).unwrap_or_default();
        self.enter(id, name, mask, false);
    }

    fn enter(&mut self, id: ThreadId, name: Arc<str>, original: PuSet, managed: bool) {
        self.roster.enter(id, name, original, managed);
        self.warnings
            .extend(self.cookies.take_away(&[id], &self.enactor));
    }

    /// Takes a thread in. One that a managed thread has started may have inherited a mask that
    /// Consort wrote, which the enactor can tell.
    fn adopt(&mut self, id: ThreadId, name: Arc<str>, parent: Option<u32>) {
        if let Some(owned) = self.owned(id) {
            return self.let_alone(id, name, &owned);
        }
        let adopted = match self.roster.parent_of(id, parent) {
            Some(parent) => self.enactor.adopt_child(id, parent),
            None => self.adopt_root(id),
        };
        match adopted {
            Ok(ChildStatus::Foreign(mask)) => self.meet_foreign(id, name, mask),
            Ok(_) => {
                let original = self.enactor.original(id).unwrap_or_default();
                self.enter(id, name, original, true);
                self.senses.want(id);
                self.warnings.extend(self.in_kernel.take(id));
            }
            Err(AdoptError::Gone(_)) => self.census.count_gone(),
            Err(error) => self.let_alone(id, name, &error.to_string()),
        }
    }

    /// Reason for which somebody else gives out a thread's PUs, if any.
    fn owned(&self, id: ThreadId) -> Option<String> {
        if self.override_affinity {
            return None;
        }
        let by = self.enactor.exclusive(id)?;
        Some(format!(
            "its cpuset {} is exclusive, so that whoever made it gives out these PUs \
             (--override manages it all the same)",
            by.display()
        ))
    }

    /// Returns true if a thread belongs to a program that is managed; notes the program.
    fn belongs(&mut self, id: ThreadId, parent: Option<u32>) -> bool {
        if self.is_own(id.pid) {
            return false;
        }
        let told = parent.and_then(|tid| self.roster.by_tid(tid));
        let told = told.map(|thread| thread.pid);
        let above = ancestors_of(self.site.root(), id.pid);
        let root = self
            .roster
            .trees_mut()
            .place(id.pid, told.into_iter().chain(above));
        root.is_some_and(|root| self.roster.trees().is_managed(root))
    }

    fn adopt_root(&mut self, id: ThreadId) -> Result<ChildStatus, AdoptError> {
        let mask = current_mask(id).map_err(|_| AdoptError::Gone(id))?;
        self.enactor.adopt(id, mask)?;
        Ok(ChildStatus::Adopted)
    }

    /// Takes in a thread whose affinity somebody has set on purpose: managed only if the user
    /// overrides.
    fn meet_foreign(&mut self, id: ThreadId, name: Arc<str>, mask: PuSet) {
        self.senses.want(id);
        if self.override_affinity && self.enactor.adopt(id, mask.clone()).is_ok() {
            return self.enter(id, name, mask, true);
        }
        let text = format!(
            "thread {id} ({name}) is let alone: its affinity {mask} was set on purpose \
             (--override manages it all the same)"
        );
        self.warnings.insert(text);
        self.enter(id, name, mask, false);
        self.roster.keep_affinity(id);
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
                self.roster
                    .parent_of(id, None)
                    .map_or(id.pid, |starter| starter.pid)
            })
            .collect();
        if pids.is_empty() {
            return;
        }
        let (there, now) = (self.roster.of_processes(&pids), Instant::now());
        let freed = there.into_iter();
        let freed: Vec<ThreadId> = freed
            .filter_map(|id| self.enforcement.cloned(id, now))
            .collect();
        self.let_free(&freed);
    }
}

/// Most steps up the tree of processes; `/proc` changes while it is read, so there may be circles.
const MOST_ANCESTORS: usize = 64;

/// The processes above one, the nearest first, as far as `/proc` tells.
fn ancestors_of(root: &Path, pid: u32) -> impl Iterator<Item = u32> {
    let above = move |&pid: &u32| parent_of(root, pid).filter(|&parent| parent > 0);
    std::iter::successors(above(&pid), above).take(MOST_ANCESTORS)
}
