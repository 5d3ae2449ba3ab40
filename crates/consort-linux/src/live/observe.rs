//! Observations: made from counters, samples and `/proc`, once per quantum.

use super::Live;
use super::clock::nanos;
use super::roster::{Parted, Thread};
use super::sampled::Profiles;
use crate::counters::Sleeps;
use crate::discovery::RunState;
use crate::enforce::Enforcement;
use consort_core::{Observation, PuId, Reading, Sample, Signal, ThreadId, ThreadObservation, Tier};
use std::time::{Duration, Instant};

/// Shortest time between two scans of `/proc` that only complete the records.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Ratio of the time between scans to the time that one takes, so that crowds of processes cost no
/// more than a tenth of a percent of one PU.
const PAUSE_PER_SCAN: u32 = 1000;
/// The same where scans alone find new threads.
const PAUSE_PER_ONLY_SCAN: u32 = 20;

impl Live {
    /// Reads all rings: threads that began, ended or were renamed, and samples.
    pub(super) fn take_records(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let batch = sampling.drain(self.course.is_over());
        let events = self.discovery.apply(&batch);
        sampling.follow(&events);
        self.follow(events);
        let discovery = &self.discovery;
        let id_of = |tid| discovery.id_of(tid);
        let freed = self.enforcement.note(&batch, id_of, Instant::now());
        self.let_free(&freed);
    }

    /// Compares with `/proc`: at every quantum where there are no records, unless that would take
    /// more than a twentieth of a PU, and now and then where there are. The kernel ends the records
    /// of a program that executes a setuid file, as if it had exited (`begin_new_exec` in
    /// `fs/exec.c`), and tells nothing of the processes that it starts.
    fn scan_if_due(&mut self) {
        let begun = Instant::now();
        if begun < self.next_scan {
            return;
        }
        let events = self.discovery.scan();
        if let Some(sampling) = &mut self.sampling {
            sampling.follow(&events);
        }
        self.follow(events);
        let took = begun.elapsed();
        let pause = match self.sampling {
            Some(_) => LEAST_PAUSE.max(took * PAUSE_PER_SCAN),
            None => took * PAUSE_PER_ONLY_SCAN,
        };
        self.next_scan = begun + pause;
    }

    /// Ends the quantum and observes it: the samples of all threads since the last observation.
    pub(super) fn observation(&mut self) -> Observation {
        self.follow_groups();
        self.scan_if_due();
        self.end_if_empty();
        self.leave_ended();
        let now = Instant::now();
        let (interval, late) = self.clock.end_quantum(now, self.course.is_over());
        self.warnings.extend(late);
        let interval_ns = nanos(interval);
        let profiles = self.profiles(interval_ns);
        let moment = Moment { now, interval_ns };
        let ids: Vec<ThreadId> = self.roster.ids().collect();
        let looks = ids.into_iter();
        let threads = looks
            .filter_map(|id| self.look_at(id, moment, &profiles))
            .collect();
        let programs = self.roster.programs();
        let exited = self.last_looks(interval_ns, &profiles);
        self.enforcement.settle_pairs();
        let notices = self.counting.begin_quantum();
        self.warnings
            .extend(notices.iter().map(ToString::to_string));
        let mut seen = Observation {
            time_ns: nanos(now - self.clock.start()),
            interval_ns,
            threads,
            exited,
            programs,
            self_placed: self.roster.self_placed(),
            assigned: self.roster.assigned(),
            ..Observation::default()
        };
        self.warnings.extend(self.energy.add(&mut seen));
        seen
    }

    /// Profiles of threads, from the samples of the interval.
    fn profiles(&mut self, interval_ns: u64) -> Profiles {
        let discovery = &self.discovery;
        let is_known = |tid| discovery.id_of(tid).is_some();
        let sampling = self.sampling.as_mut();
        sampling.map_or_else(Profiles::new, |s| s.profiles(interval_ns, is_known))
    }

    /// Observes a thread; one that turns out to be gone is put with those that have exited.
    fn look_at(
        &mut self,
        id: ThreadId,
        moment: Moment,
        profiles: &Profiles,
    ) -> Option<ThreadObservation> {
        let mut sample = Sample::default();
        let begun = self.counting.fill(id, &mut sample);
        let Some(runnable) = self.is_runnable(id, moment, begun, &mut sample) else {
            self.part_with(id, sample);
            return None;
        };
        let paused = self.was_paused(id);
        let thread = self.roster.get_mut(id)?;
        if paused {
            thread.restart_sleeps();
        } else {
            thread.returned(begun, runnable, &mut sample);
        }
        let runnable = Reading::whole(
            f64::from(u8::from(runnable)),
            Tier::Proc,
            moment.interval_ns,
        );
        sample.set(Signal::Runnable, runnable);
        if let Some(profile) = profiles.get(&(id.pid, id.tid)) {
            profile.fill(&mut sample, moment.interval_ns);
        }
        let last_pu = thread.last.map(|last| last.last_pu);
        if let Some(recorded) = &self.recorded {
            let program = self.roster.program_of(id.pid);
            let name = self.roster.trees().name(program.0);
            recorded.fill(name, &mut sample, moment.interval_ns);
        }
        settle(
            &mut self.enforcement,
            id,
            last_pu,
            moment.interval_ns,
            &mut sample,
        );
        Some(observed(id, self.roster.get(id)?, sample, last_pu))
    }

    /// Returns true if a thread's program was paused in the interval that ends now.
    fn was_paused(&self, id: ThreadId) -> bool {
        let program = self.roster.program_of(id.pid);
        self.pausing.was_paused(program)
    }

    /// State of a thread, true for runnable, by its counters or by `/proc`, whose other values are
    /// then added to the sample; none when the thread is gone.
    fn is_runnable(
        &mut self,
        id: ThreadId,
        moment: Moment,
        begun: Option<u64>,
        sample: &mut Sample,
    ) -> Option<bool> {
        let thread = self.roster.get_mut(id)?;
        let known = thread.quick_look(moment.now, begun, sample);
        if known.is_some() {
            return known;
        }
        let told = self.reader.sample(id).ok()?;
        thread.add_proc(moment.now, told, moment.interval_ns, sample);
        if begun.is_none() {
            // Sleeps are counted from the next quantum on at the earliest.
            thread.sleeps = Some(Sleeps::of(told.state));
        }
        Some(told.state == RunState::Runnable)
    }

    /// Observes threads that have exited since the last observation.
    fn last_looks(&mut self, interval_ns: u64, profiles: &Profiles) -> Vec<ThreadObservation> {
        let exited = self.roster.take_exited().into_iter();
        let last = exited.map(|parted| {
            let Parted {
                id,
                thread,
                program,
                mut sample,
            } = parted;
            if let Some(profile) = profiles.get(&(id.pid, id.tid)) {
                // `/proc` no longer tells its CPU time, but each sample stands for a stretch of it.
                let cpu_ns = profile.counts.sampled_ns as f64;
                let reading = Reading::whole(cpu_ns, Tier::Sampling, interval_ns);
                sample.set(Signal::CpuTime, reading);
                profile.fill(&mut sample, interval_ns);
            }
            if let Some(recorded) = &self.recorded {
                recorded.fill(
                    self.roster.trees().name(program.0),
                    &mut sample,
                    interval_ns,
                );
            }
            settle(&mut self.enforcement, id, None, interval_ns, &mut sample);
            self.enforcement.forget(id);
            observed(id, &thread, sample, None)
        });
        last.collect()
    }
}

/// Adds the time that a thread spent in the place that the plan gave it.
fn settle(
    enforcement: &mut Enforcement,
    id: ThreadId,
    last_pu: Option<PuId>,
    interval_ns: u64,
    sample: &mut Sample,
) {
    let cpu = sample.reading(Signal::CpuTime);
    let planned_ns = enforcement.settle(id, sample.cpu_time_ns(), last_pu);
    if let (Some(cpu), Some(planned_ns)) = (cpu, planned_ns) {
        let reading = Reading::whole(planned_ns, cpu.tier, interval_ns);
        sample.set(Signal::PlannedTime, reading);
    }
}

/// Time of an observation, and the length of its interval.
#[derive(Clone, Copy)]
struct Moment {
    now: Instant,
    interval_ns: u64,
}

fn observed(
    id: ThreadId,
    thread: &Thread,
    sample: Sample,
    last_pu: Option<PuId>,
) -> ThreadObservation {
    ThreadObservation {
        id,
        name: thread.name.clone(),
        original: thread.original.clone(),
        managed: thread.managed,
        last_pu,
        sample,
    }
}
