//! Threads that are left alone because of their control groups, one by one.
//!
//! In version 1, and in threaded groups of version 2, threads of one process may be in different
//! groups. A thread in an excluded group is never placed, and of a process that is only partly in a
//! managed group only these threads are placed. Threads move between groups at any time, so all of
//! them are looked at in turn.

use super::LiveMachine;
use crate::cgroup::{cgroups_of, escape_for_display};
use crate::proc::{ProcError, threads_of, unless_gone};
use consort_core::ThreadId;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use thiserror::Error;

/// Number of threads whose groups are looked up at a time: this takes 2 ms.
const AT_A_TIME: usize = 256;

/// Progress of the review, and its results.
#[derive(Default)]
pub(super) struct GroupReview {
    /// Threads that are left alone because of their groups.
    kept_out: BTreeSet<ThreadId>,
    /// The thread that was looked at last; `None` before the first.
    last: Option<ThreadId>,
    /// True if the next look is at all threads.
    pub(super) is_of_all: bool,
}

impl GroupReview {
    /// The threads to look at now, of all that are there in order.
    fn next(&mut self, all: &BTreeSet<ThreadId>) -> Vec<ThreadId> {
        if std::mem::take(&mut self.is_of_all) {
            return all.iter().copied().collect();
        }
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = all.range((after, Bound::Unbounded)).take(AT_A_TIME);
        let next: Vec<ThreadId> = next.copied().collect();
        self.last = next.last().copied().filter(|_| next.len() == AT_A_TIME);
        next
    }
}

/// Reason for which a thread's control groups keep it out of management.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum GroupExclusion {
    /// One of them, with this name for people, is excluded.
    #[error("its control group {0} is excluded")]
    Excluded(String),
    /// Other threads of its process are in a managed group.
    #[error("its control group is not managed")]
    Elsewhere,
}

impl LiveMachine {
    /// Reason for which a thread's control groups keep it out of management, if they do.
    ///
    /// # Errors
    /// If its groups cannot be read although it may be there.
    pub(super) fn group_exclusion(
        &self,
        id: ThreadId,
    ) -> Result<Option<GroupExclusion>, ProcError> {
        let groups = &self.attachments.groups;
        let is_part = groups.parts.contains(&id.pid);
        if groups.rules.exclude.is_empty() && !is_part {
            return Ok(None);
        }
        let Some(cgroup) = cgroups_of(self.site.root(), id.pid, id.tid)? else {
            return Ok(None);
        };
        if let Some(path) = groups.rules.excluded_by(&cgroup) {
            return Ok(Some(GroupExclusion::Excluded(escape_for_display(&path))));
        }
        let is_elsewhere = is_part && !groups.rules.covers(&cgroup);
        Ok(is_elsewhere.then_some(GroupExclusion::Elsewhere))
    }

    /// The excluded group of a process whose threads are all in excluded groups.
    ///
    /// # Errors
    /// If the groups of a thread cannot be read although it may be there.
    pub(super) fn process_exclusion(&self, pid: u32) -> Result<Option<String>, ProcError> {
        let rules = &self.attachments.groups.rules;
        if rules.exclude.is_empty() {
            return Ok(None);
        }
        let root = self.site.root();
        let threads = unless_gone(threads_of(root, pid))?.unwrap_or_default();
        let mut group = None;
        for tid in threads {
            let cgroup = cgroups_of(root, pid, tid)?;
            group = cgroup.and_then(|cgroup| rules.excluded_by(&cgroup));
            if group.is_none() {
                break;
            }
        }
        Ok(group)
    }

    /// Puts a known thread back and leaves it alone from now on.
    pub(super) fn exclude_by_group(&mut self, id: ThreadId, name: &Arc<str>, why: &GroupExclusion) {
        // A thread that is not placed any more would otherwise keep its mask until the end of the run.
        self.warnings
            .extend(self.actuators.restore_masks(&[id], &self.table));
        self.actuators.stop_managing(id);
        self.attachments.groups.review.kept_out.insert(id);
        if matches!(why, GroupExclusion::Excluded(_)) {
            let text = format!("thread {id} ({name}) is left alone: {why}");
            self.warnings.insert(text);
        }
        self.table.mark_excluded(id, &why.to_string());
    }

    /// Looks up the groups of some threads, and of all threads in processes that are partly managed: lets
    /// go of threads that have entered an excluded group or left a managed one, and takes in threads that
    /// came back.
    pub(super) fn review_threads(&mut self) {
        let all: BTreeSet<ThreadId> = self.table.ids().collect();
        let groups = &mut self.attachments.groups;
        groups.review.kept_out.retain(|id| all.contains(id));
        let mut due = groups.review.kept_out.clone();
        due.extend(all.iter().filter(|id| groups.parts.contains(&id.pid)));
        if !groups.rules.exclude.is_empty() {
            due.extend(groups.review.next(&all));
        }
        for id in due {
            if let Err(error) = self.review_thread(id) {
                // Nothing changes until the next review.
                self.warnings.insert(format!(
                    "control groups of threads cannot be looked up: {error}; the threads stay as they \
                     are"
                ));
            }
        }
    }

    fn review_thread(&mut self, id: ThreadId) -> Result<(), ProcError> {
        let was_out = self.attachments.groups.review.kept_out.contains(&id);
        match self.group_exclusion(id)? {
            Some(_) if was_out => {}
            Some(_) if !self.table.is_managed(id.pid) => {}
            Some(why) => match self.process_exclusion(id.pid)? {
                Some(group) => {
                    let name = self.table.program_name(id.pid);
                    self.warnings.insert(format!(
                        "process {} ({name}) is left alone: its control group {} is excluded",
                        id.pid,
                        escape_for_display(&group)
                    ));
                    self.release_group_process(id.pid);
                }
                None if self.table.may_place(id) => {
                    let name = Arc::from(self.table.name(id));
                    self.exclude_by_group(id, &name, &why);
                }
                None => {}
            },
            None if was_out => {
                self.attachments.groups.review.kept_out.remove(&id);
                let name = Arc::from(self.table.name(id));
                self.adopt_thread(id, name, None);
            }
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    #[test]
    fn all_threads_have_their_turn() {
        let all: BTreeSet<ThreadId> = (0..600).map(thread).collect();
        let mut review = GroupReview::default();
        let mut seen = BTreeSet::new();
        for expected in [256, 256, 88, 256] {
            let next = review.next(&all);
            assert_eq!(next.len(), expected);
            seen.extend(next);
        }
        assert_eq!(seen, all);
        review.is_of_all = true;
        assert_eq!(review.next(&all).len(), 600);
    }
}
