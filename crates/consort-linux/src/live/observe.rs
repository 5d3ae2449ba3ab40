//! Observations: made from counters, samples and `/proc`, once per quantum.

use super::Live;
use super::clock::{nanos, own_cpu_ns};
use super::roster::Parted;
use super::senses::{Interval, Known};
use crate::discovery::ThreadEvent;
use consort_core::{Observation, Sample, ThreadId, ThreadObservation};
use std::collections::BTreeSet;
use std::time::Instant;

impl Live {
    /// Reads all rings: threads that began, ended or were renamed, and samples.
    pub(super) fn take_records(&mut self) {
        let before_ns = own_cpu_ns();
        let Some(batch) = self.senses.drain(self.course.is_over()) else {
            return;
        };
        let events = self.census.take_in(&batch);
        self.follow_with_senses(events);
        let census = &self.census;
        let id_of = |tid| census.id_of(tid);
        let refused = self.hands.note(&batch, id_of, &self.roster);
        self.warnings.extend(refused);
        let cpu_ns = own_cpu_ns().saturating_sub(before_ns);
        self.clock.rings_were_read(batch.records.len(), cpu_ns);
        self.senses.give_back(batch);
    }

    /// Compares with `/proc`, when it is time to, even where there are records. The kernel ends the
    /// records of a program that executes a setuid file, as if it had exited (`begin_new_exec` in
    /// `fs/exec.c`), and tells nothing of the processes that it starts.
    fn scan_if_due(&mut self) {
        let begun = Instant::now();
        let Some(events) = self.census.scan_if_due(begun) else {
            return;
        };
        self.follow_with_senses(events);
        self.census.scanned(begun, self.senses.have_records());
    }

    /// Takes in changes, and samples processes that only a scan has found.
    fn follow_with_senses(&mut self, events: Vec<ThreadEvent>) {
        self.senses.follow(&events);
        let unrecorded = |event: &ThreadEvent| match event {
            ThreadEvent::Appeared {
                id, parent: None, ..
            } => Some(id.pid),
            _ => None,
        };
        let found: BTreeSet<u32> = events.iter().filter_map(unrecorded).collect();
        self.follow(events);
        for pid in found {
            if let Some(tree) = self.roster.trees().root_of(pid)
                && self.roster.trees().is_managed(tree)
            {
                self.senses.admit(pid, tree);
            }
        }
    }

    /// Ends the quantum and observes it: the samples of all threads since the last observation.
    pub(super) fn observation(&mut self) -> Observation {
        self.follow_groups();
        self.scan_if_due();
        self.end_if_empty();
        self.leave_ended();
        let now = Instant::now();
        let (length, late) = self.clock.end_quantum(now, self.course.is_over());
        self.warnings.extend(late);
        let interval_ns = nanos(length);
        let census = &self.census;
        let known = Known {
            has_thread: &|tid| census.id_of(tid).is_some(),
            processes: &|| census.processes(),
        };
        let interval = self.senses.end_interval(now, interval_ns, known);
        self.senses.read_times(|| self.roster.processes(), false);
        let ids: Vec<ThreadId> = self.roster.ids().collect();
        let looks = ids.iter();
        let threads = looks
            .filter_map(|&id| self.look_at(id, &interval))
            .collect();
        let throttled = self.senses.throttled(&ids, now);
        let (root, topology) = (self.site.root(), self.site.topology());
        let idle_pus = self.senses.idle_pus(root, topology.pus(), now);
        let programs = self.roster.programs();
        let exited = self.last_looks(&interval);
        self.hands.settle_pairs();
        let notices = self.senses.begin_quantum();
        self.warnings
            .extend(notices.iter().map(ToString::to_string));
        let mut seen = Observation {
            time_ns: nanos(now - self.clock.start()),
            interval_ns,
            threads,
            exited,
            programs,
            self_placed: self.roster.self_placed(),
            owners: self.roster.owners(self.site.root()),
            assigned: self.roster.assigned(),
            throttled,
            idle_pus,
            ..Observation::default()
        };
        self.warnings.extend(self.senses.add_energy(&mut seen));
        self.warnings.extend(self.senses.take_code_warnings());
        seen
    }

    /// Observes a thread; one that turns out to be gone is put with those that have exited.
    fn look_at(&mut self, id: ThreadId, interval: &Interval) -> Option<ThreadObservation> {
        let program = self.roster.program_of(id.pid);
        let paused = self.hands.had_paused(program);
        let mut sample = Sample::default();
        let seen = self.roster.seen_mut(id)?;
        if !(self.senses).look(id, seen, paused, interval, &mut sample) {
            self.part_with(id, sample);
            self.census.missed_end();
            return None;
        }
        let last_pu = seen.last_pu();
        let pu = seen.pu_at(interval.end(), interval.length_ns());
        let trees = self.roster.trees();
        self.senses
            .add_recorded(trees, program, interval, &mut sample);
        (self.hands).settle(id, pu, interval.length_ns(), &mut sample);
        Some(self.roster.get(id)?.observed(id, sample, last_pu))
    }

    /// Observes threads that have exited since the last observation.
    fn last_looks(&mut self, interval: &Interval) -> Vec<ThreadObservation> {
        let exited = self.roster.take_exited().into_iter();
        let last = exited.map(|parted| {
            let Parted {
                id,
                thread,
                program,
                mut sample,
            } = parted;
            self.senses.add_last(id, interval, &mut sample);
            let trees = self.roster.trees();
            self.senses
                .add_recorded(trees, program, interval, &mut sample);
            (self.hands).settle_last(id, interval.length_ns(), &mut sample);
            thread.observed(id, sample, None)
        });
        last.collect()
    }
}
