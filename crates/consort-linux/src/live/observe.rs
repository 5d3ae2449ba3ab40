//! Observations: made from counters, samples and `/proc`, once per quantum.

use super::LiveMachine;
use super::clock::{nanos, own_cpu_ns};
use super::observers::{KnownThreads, ObservedInterval};
use super::thread_table::ExitedThread;
use crate::discovery::ThreadEvent;
use consort_core::{Observation, Sample, ThreadId, ThreadObservation};
use std::collections::BTreeSet;
use std::time::Instant;

impl LiveMachine {
    /// Reads all rings: threads that began, ended or were renamed, and samples.
    pub(super) fn take_records(&mut self) {
        let before_ns = own_cpu_ns();
        let Some(batch) = self.observers.drain(self.lifecycle.is_over()) else {
            return;
        };
        let events = self.scan.apply_records(&batch);
        self.follow_thread_events(events);
        let scan = &self.scan;
        let id_of = |tid| scan.id_of(tid);
        let refused = self.actuators.note_records(&batch, id_of, &self.table);
        self.warnings.extend(refused);
        let cpu_ns = own_cpu_ns().saturating_sub(before_ns);
        self.clock.note_ring_read(batch.records.len(), cpu_ns);
        if let Some(sampler) = self.observers.sampler_mut() {
            sampler.give_back(batch);
        }
    }

    /// Compares with `/proc`, when it is time to, even where there are records. The kernel ends the
    /// records of a program that executes a setuid file, as if it had exited (`begin_new_exec` in
    /// `fs/exec.c`), and tells nothing of the processes that it starts.
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
            if let Some(tree) = self.table.trees().root_of(pid)
                && self.table.trees().is_managed(tree)
                && let Some(sampler) = self.observers.sampler_mut()
            {
                sampler.admit(pid, tree);
            }
        }
    }

    /// Ends the quantum and observes it: the samples of all threads since the last observation.
    pub(super) fn observe_quantum(&mut self) -> Observation {
        self.follow_groups();
        self.scan_if_due();
        self.end_if_empty();
        self.stop_sampling_ended();
        let now = Instant::now();
        let (length, late) = self.clock.end_quantum(now, self.lifecycle.is_over());
        self.warnings.extend(late);
        let interval_ns = nanos(length);
        let scan = &self.scan;
        let known = KnownThreads {
            has_thread: &|tid| scan.id_of(tid).is_some(),
            processes: &|| scan.processes(),
        };
        let interval = self.observers.end_interval(now, interval_ns, known);
        self.observers.read_times(|| self.table.processes(), false);
        let ids: Vec<ThreadId> = self.table.ids().collect();
        let looks = ids.iter();
        let threads = looks
            .filter_map(|&id| self.observe_thread(id, &interval))
            .collect();
        let throttled = self.observers.throttled_threads(&ids, now);
        let (root, topology) = (self.site.root(), self.site.topology());
        let idle_pus = self.observers.idle_pus(root, topology.pus(), now);
        let programs = self.table.programs();
        let exited = self.observe_exited(&interval);
        self.actuators.settle_pairs();
        let notices = self.observers.begin_quantum();
        self.warnings
            .extend(notices.iter().map(ToString::to_string));
        let mut seen = Observation {
            time_ns: nanos(now - self.clock.start()),
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
        self.warnings.extend(self.observers.add_energy(&mut seen));
        self.warnings.extend(self.observers.take_code_warnings());
        seen
    }

    /// Observes a thread; one that turns out to be gone is put with those that have exited.
    fn observe_thread(
        &mut self,
        id: ThreadId,
        interval: &ObservedInterval,
    ) -> Option<ThreadObservation> {
        let program = self.table.program_of(id.pid);
        let paused = self.actuators.was_paused(program);
        let mut sample = Sample::default();
        let seen = self.table.observed_state_mut(id)?;
        if !(self.observers).read_thread(id, seen, paused, interval, &mut sample) {
            self.retire_thread(id, sample);
            self.scan.note_missed_exit();
            return None;
        }
        let last_pu = seen.last_pu();
        let pu = seen.pu_at(interval.end(), interval.length_ns());
        let trees = self.table.trees();
        self.observers
            .add_recorded(trees, program, interval, &mut sample);
        (self.actuators).add_planned_time(id, pu, interval.length_ns(), &mut sample);
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
            let trees = self.table.trees();
            self.observers
                .add_recorded(trees, program, interval, &mut sample);
            (self.actuators).add_last_planned_time(id, interval.length_ns(), &mut sample);
            thread.to_observation(id, sample, None)
        });
        last.collect()
    }
}
