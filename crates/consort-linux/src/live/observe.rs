//! The observation at the end of a quantum, from counters, samples and `/proc`; and threads that were
//! found, which are taken under management or left alone with a warning.

use super::LiveMachine;
use super::actuators::AdoptionOutcome;
use super::clock::{nanos, own_cpu_ns};
use super::observers::{KnownThreads, ObservedInterval};
use super::program_trees::UserExclusion;
use super::thread_table::ExitedThread;
use crate::discovery::ThreadEvent;
use crate::proc::{ProcError, ThreadUsers, read_process};
use consort_core::{Observation, Sample, ThreadId, ThreadObservation};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

impl LiveMachine {
    /// Reads all rings: threads that began, ended or were renamed, and samples.
    pub(super) fn take_records(&mut self) {
        let before_ns = own_cpu_ns();
        let is_last = self.lifecycle.is_over();
        let Some(sampling) = &mut self.observers.sampling else {
            return;
        };
        let batch = sampling.drain(is_last);
        let events = self.scan.tracker.apply(&batch);
        // First, because a thread has to be known before its starts and execs can be noted.
        self.follow_thread_events(events);
        let tracker = &self.scan.tracker;
        let id_of = |tid| tracker.id_of(tid);
        let refused = self.actuators.note_records(&batch, id_of, &self.table);
        self.warnings.extend(refused);
        let cpu_ns = own_cpu_ns().saturating_sub(before_ns);
        self.clock.note_ring_read(batch.records.len(), cpu_ns);
        if let Some(sampler) = self.observers.sampler_mut() {
            sampler.give_back(batch);
        }
    }

    /// Compares with `/proc`, when it is time to, even if there are records. The kernel ends the records
    /// of a program that executes a setuid file, as if it had exited (`begin_new_exec` in
    /// `fs/exec.c`), and does not record the processes that this program starts.
    fn scan_if_due(&mut self) {
        let begun = Instant::now();
        let Some(events) = self.scan.scan_if_due(begun) else {
            return;
        };
        self.follow_thread_events(events);
        self.scan
            .schedule_next_scan(begun, self.observers.has_records());
    }

    /// Takes in changes, and samples processes that only a scan has found.
    fn follow_thread_events(&mut self, events: Vec<ThreadEvent>) {
        if let Some(sampler) = self.observers.sampler_mut() {
            sampler.follow_threads(&events);
        }
        let unrecorded = |event: &ThreadEvent| match event {
            ThreadEvent::Appeared {
                id, parent: None, ..
            } => Some(id.pid),
            _ => None,
        };
        let found: BTreeSet<u32> = events.iter().filter_map(unrecorded).collect();
        self.apply_thread_events(events);
        for pid in found {
            if let Some(tree) = self.table.trees.root_of(pid)
                && self.table.trees.is_managed(tree)
                && let Some(sampler) = self.observers.sampler_mut()
            {
                sampler.admit(pid, tree);
            }
        }
    }

    /// Ends the quantum and observes it: the samples of all threads since the last observation.
    pub(super) fn observe_quantum(&mut self) -> Observation {
        // Groups first: they name processes that the scan then finds.
        self.follow_groups();
        self.scan_if_due();
        if self.attachments.is_over_when_empty() && self.table.is_empty() {
            self.end();
        }
        self.stop_sampling_ended();
        let now = Instant::now();
        let (length, late) = self.clock.end_quantum(now, self.lifecycle.is_over());
        self.warnings.extend(late);
        let interval_ns = nanos(length);
        let tracker = &self.scan.tracker;
        let known = KnownThreads {
            has_thread: &|tid| tracker.id_of(tid).is_some(),
            processes: &|| tracker.processes(),
        };
        let interval = self.observers.end_interval(now, interval_ns, known);
        self.observers.read_times(|| self.table.processes(), false);
        let ids: Vec<ThreadId> = self.table.ids().collect();
        let looks = ids.iter();
        let threads = looks
            .filter_map(|&id| self.observe_thread(id, &interval))
            .collect();
        let throttled = self.observers.limits.throttled_threads(&ids, now);
        let (root, topology) = (self.site.root(), self.site.topology());
        let idle = self.observers.idle.as_mut();
        let idle_pus = idle.and_then(|idle| idle.idle_pus(root, topology.pus(), now));
        let programs = self.table.programs();
        let exited = self.observe_exited(&interval);
        // After all of their threads.
        self.actuators.enforcement.end_pairs_interval();
        // After all threads were read, so that the next reading covers a whole quantum.
        let notices = self.observers.counting.begin_quantum();
        self.warnings
            .extend(notices.iter().map(ToString::to_string));
        let mut seen = Observation {
            time_ns: nanos(now - self.clock.start),
            interval_ns,
            threads,
            exited,
            programs,
            self_placed: self.table.self_placed(),
            owners: self.table.owners(self.site.root()),
            assigned: self.table.assigned_policies(),
            throttled,
            idle_pus,
            ..Observation::default()
        };
        if let Some(meter) = &mut self.observers.energy
            && meter.add_shares(&mut seen).is_none()
        {
            self.observers.energy = None;
            let text = "energy can no longer be read".to_owned();
            self.warnings.insert(text);
        }
        if let Some(sampling) = &mut self.observers.sampling {
            self.warnings.extend(sampling.profiler.take_warnings());
        }
        seen
    }

    /// Observes a thread. One that turns out to be gone joins the threads that have exited.
    fn observe_thread(
        &mut self,
        id: ThreadId,
        interval: &ObservedInterval,
    ) -> Option<ThreadObservation> {
        let program = self.table.program_of(id.pid);
        let paused = self.actuators.pausing.was_paused(program);
        let mut sample = Sample::default();
        let seen = self.table.observed_state_mut(id)?;
        // The thread is gone, and no record of its exit has come. The next scan looks for more.
        if !(self.observers).read_thread(id, seen, paused, interval, &mut sample) {
            self.retire_thread(id, sample);
            self.scan.note_missed_exit();
            return None;
        }
        let last_pu = seen.last_pu();
        let pu = seen.pu_at(interval.end, interval.length_ns);
        let trees = &self.table.trees;
        self.observers
            .add_recorded(trees, program, interval, &mut sample);
        (self.actuators).add_planned_time(id, pu, interval.length_ns, &mut sample);
        Some(self.table.get(id)?.to_observation(id, sample, last_pu))
    }

    /// Observes threads that have exited since the last observation.
    fn observe_exited(&mut self, interval: &ObservedInterval) -> Vec<ThreadObservation> {
        let exited = self.table.take_exited().into_iter();
        let last = exited.map(|parted| {
            let ExitedThread {
                id,
                thread,
                program,
                mut sample,
            } = parted;
            self.observers.add_last_samples(id, interval, &mut sample);
            let trees = &self.table.trees;
            self.observers
                .add_recorded(trees, program, interval, &mut sample);
            (self.actuators).add_last_planned_time(id, interval.length_ns, &mut sample);
            thread.to_observation(id, sample, None)
        });
        last.collect()
    }
}

impl LiveMachine {
    /// Follows the changes that records or a scan have shown.
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
                    // Before all else, because the program decides which users it may belong to.
                    _ if !self.assign_program(id, parent) => {}
                    Some(why) => {
                        self.leave_unmanaged(id, name, &format!("{why}"));
                        self.set_baseline(id);
                    }
                    None => match self.user_exclusion(id) {
                        None => {
                            let parent = self.table.parent_of(id, parent);
                            self.adopt_thread(id, name, parent);
                        }
                        Some(why) => self.exclude_by_user(id, name, why),
                    },
                },
                ThreadEvent::Renamed { id, name } => {
                    self.table.rename(id, name);
                    // A new name may come from an exec, and the new file may be setuid.
                    self.release_excluded(&[id]);
                }
                ThreadEvent::Exited { id } => {
                    // Its counters keep their last values until they are closed.
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
        self.actuators.enactor.forget(id);
        self.table.retire_thread(id, sample);
        if !self.table.has_process(id.pid) {
            self.attachments.attached.remove(&id.pid);
        }
    }

    /// Reason for which a thread is not managed although its program is: it acts for another user
    /// than its program may have threads of.
    fn user_exclusion(&self, id: ThreadId) -> Option<UserExclusion> {
        let trees = &self.table.trees;
        let root = trees
            .root_of(id.pid)
            .filter(|&root| trees.is_restricted(root))?;
        // A thread that cannot be read is not known to act for another user. Once it is managed, it is
        // looked at again soon; if it is gone, taking it in shows that.
        let users = ThreadUsers::from_thread(self.site.root(), id).ok()?;
        trees.exclusion(root, users)
    }

    fn exclude_by_user(&mut self, id: ThreadId, name: Arc<str>, why: UserExclusion) {
        if let UserExclusion::Foreign { user, asker } = why {
            let why = format!("it acts for user {user}, and user {asker} attached its program");
            self.leave_unmanaged(id, name, &why);
        }
    }

    /// Puts back the threads among these that their programs may not have any more, and lets go of
    /// them.
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
            .insert(format!("thread {id} ({name}) is not managed: {why}"));
        let mask = self.actuators.leave_unmanaged(id, &mut self.warnings);
        self.table.enter(id, name, mask, false);
        self.table.note_reason(id, why);
    }

    /// Takes a thread in that this parent has started; its present mask counts as its original one
    /// if none is given.
    pub(super) fn adopt_thread(&mut self, id: ThreadId, name: Arc<str>, parent: Option<ThreadId>) {
        match self.actuators.adopt_thread(id, parent, &mut self.warnings) {
            AdoptionOutcome::Managed(original) => {
                self.observers.counting.count_thread(id);
                self.table.enter(id, name.clone(), original, true);
                // Only now, because adoption undoes a mask that it has inherited from a managed
                // thread. Groups that cannot be read now are looked up by the next review.
                if let Ok(Some(why)) = self.group_exclusion(id) {
                    self.exclude_by_group(id, &name, &why);
                }
            }
            AdoptionOutcome::SelfPlaced(mask) => {
                // It is read like the others, so that it may be paused with its program.
                self.observers.counting.count_thread(id);
                let text = format!(
                    "thread {id} ({name}) is not managed: its affinity {mask} was set on purpose \
                     (--override manages it all the same)"
                );
                self.warnings.insert(text);
                self.table.enter(id, name, mask, false);
                self.table.mark_self_placed(id);
                self.table
                    .note_reason(id, "its affinity was set on purpose");
            }
            // Managed all the same: it is taken in with the next plan that places it.
            AdoptionOutcome::Unseen(mask, _) => {
                self.observers.counting.count_thread(id);
                self.table.enter(id, name, mask, true);
            }
            AdoptionOutcome::LetAlone(why) => self.leave_unmanaged(id, name, &why),
            AdoptionOutcome::Gone => {
                self.scan.gone_at_once += 1;
                return;
            }
        }
        self.set_baseline(id);
    }

    /// Counts what a thread consumes from now on, if it began before its process, or the root of its
    /// program, was attached; all that it has consumed otherwise.
    fn set_baseline(&mut self, id: ThreadId) {
        let attached = &self.attachments.attached;
        let of_root = || attached.get(&self.table.program_of(id.pid).0);
        let attached = attached.get(&id.pid).or_else(of_root);
        let was_there = attached.is_some_and(|&at| id.start_ticks < at);
        if let Some(seen) = self.table.observed_state_mut(id).filter(|_| was_there) {
            self.observers.set_baseline(id, seen);
        }
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
            .trees
            .assign_by_parents(id.pid, reported.into_iter().chain(above));
        if is_cut.get() {
            // An ancestor could not be read, so that it may belong to another program. Its place is
            // found when it is announced again.
            self.table.trees.forget(id.pid);
            self.scan.find_again(&BTreeSet::from([id.pid]));
            return false;
        }
        root.is_some_and(|root| self.table.trees.is_managed(root))
    }

    /// Notes threads that start others. If no record shows the starter, every thread that was in the
    /// process before counts as one.
    fn note_starters(&mut self, found: &[ThreadEvent]) {
        let unrecorded = |event: &ThreadEvent| match event {
            ThreadEvent::Appeared {
                id, parent: None, ..
            } => Some(*id),
            _ => None,
        };
        let starts = found.iter().filter_map(unrecorded);
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
        // Any of them may start more threads, which would inherit a narrow mask.
        let there = self.table.process_threads(&pids);
        let refused = self.actuators.note_starters(there, &self.table);
        self.warnings.extend(refused);
    }
}

/// Most steps up the tree of processes. `/proc` changes while it is read, so there may be circles.
const MOST_ANCESTORS: usize = 64;

/// The processes above one, the nearest first. Each is looked up only when the iterator reaches it,
/// because the nearest mostly shows the program. Sets `is_cut` if one cannot be looked up for the
/// moment.
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
    fn ancestors_are_looked_up_only_when_reached() {
        let dir = tempfile::tempdir().unwrap();
        let starts = |pid, parent| process(dir.path(), pid, parent, &[(pid, "x", 1)]);
        starts(12, 11);
        starts(11, 10);
        let is_cut = Cell::new(false);
        let above_12 = ancestors_of(dir.path(), 12, &is_cut);
        // If it were looked up beforehand, the earlier parent would be returned.
        starts(12, 9);
        starts(9, 8);
        assert_eq!(above_12.collect::<Vec<_>>(), [9, 8]);
        let above_11 = ancestors_of(dir.path(), 11, &is_cut);
        assert_eq!(above_11.collect::<Vec<_>>(), [10]);
        assert!(!is_cut.get(), "it has ended");
    }
}
