//! From records and `/proc` to an observation.

use super::Live;
use super::threads::{Parted, Thread};
use crate::counters::Sleeps;
use crate::discovery::RunState;
use crate::enforce::Enforcement;
use crate::sampling::ThreadProfile;
use consort_core::{Observation, PuId, Reading, Sample, Signal, ThreadId, ThreadObservation, Tier};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two scans of `/proc` that only complete what records tell.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// The pause as a multiple of what the scan took, so that crowds of processes cost no more than
/// a tenth of a percent of one PU.
const PAUSE_PER_SCAN: u32 = 1000;
/// The same where nothing else tells of new threads.
const PAUSE_PER_ONLY_SCAN: u32 = 20;

impl Live {
    /// Reads all rings: threads that came, went or were renamed, and samples.
    pub(super) fn take_records(&mut self) {
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        let before_ns = own_cpu_ns();
        // Before the last look nothing is held back for the sake of order.
        let batch = match self.ending {
            Some(_) => sampling.sampler.drain_all(),
            None => sampling.sampler.drain(),
        };
        sampling.counts.lost += batch.lost;
        sampling.counts.taken += batch.samples() as u64 + batch.thinned + batch.lost;
        sampling.profiler.apply(&batch);
        sampling.unsettled.0 += own_cpu_ns().saturating_sub(before_ns);
        sampling.unsettled.1 += batch.samples() as u64;
        let events = self.discovery.apply(&batch);
        sampling.sampler.follow(&events);
        self.follow(events);
        let discovery = &self.discovery;
        let id_of = |tid| discovery.id_of(tid);
        let freed = self.enforcement.note(&batch, id_of, Instant::now());
        self.let_free(&freed);
    }

    /// Compares with `/proc`: at every quantum where there are no records, unless that would take
    /// more than a twentieth of a PU, and now and then where there are.
    /// The kernel ends the records of a program that executes a setuid file, as if it had exited
    /// (`begin_new_exec` in `fs/exec.c`), and tells nothing of what that starts.
    fn scan_if_due(&mut self) {
        let begun = Instant::now();
        if begun < self.clock.next_scan {
            return;
        }
        let events = self.discovery.scan();
        if let Some(sampling) = &mut self.sampling {
            sampling.sampler.follow(&events);
        }
        self.follow(events);
        let took = begun.elapsed();
        let pause = match self.sampling {
            Some(_) => LEAST_PAUSE.max(took * PAUSE_PER_SCAN),
            None => took * PAUSE_PER_ONLY_SCAN,
        };
        self.clock.next_scan = begun + pause;
    }

    /// What each thread did since the last observation.
    pub(super) fn observation(&mut self) -> Observation {
        self.follow_groups();
        self.scan_if_due();
        self.end_if_empty();
        self.leave_ended();
        let now = Instant::now();
        let interval = now - self.clock.quantum;
        // A quantum that the policy chose, or that the end of the command cut, was not asked for.
        if self.clock.next.take().is_none() && self.ending.is_none() {
            self.warnings.extend(self.pace.quantum_was(interval));
        }
        let interval_ns = nanos(interval);
        self.clock.quantum = now;
        let profiles = self.profiles(interval_ns);
        let moment = Moment { now, interval_ns };
        let ids: Vec<ThreadId> = self.threads.keys().copied().collect();
        let looks = ids.into_iter();
        let threads = looks
            .filter_map(|id| self.look_at(id, moment, &profiles))
            .collect();
        let programs = self.programs();
        let exited = self.last_looks(interval_ns, &profiles);
        self.enforcement.settle_pairs();
        let notices = self.counting.begin_quantum();
        self.warnings
            .extend(notices.iter().map(ToString::to_string));
        let mut seen = Observation {
            time_ns: nanos(now - self.clock.start),
            interval_ns,
            threads,
            exited,
            programs,
            self_placed: self.self_placed(),
            assigned: self.assigned(),
            ..Observation::default()
        };
        self.add_energy(&mut seen);
        seen
    }

    /// What the samples of the interval tell, by pid and tid.
    fn profiles(&mut self, interval_ns: u64) -> Profiles {
        let Some(sampling) = &mut self.sampling else {
            return Profiles::new();
        };
        let before_ns = own_cpu_ns();
        let profiled = sampling.profiler.interval();
        let (own_ns, samples) = std::mem::take(&mut sampling.unsettled);
        let own_ns = own_ns + own_cpu_ns().saturating_sub(before_ns);
        sampling.sampler.settle(own_ns, samples, interval_ns);
        let discovery = &self.discovery;
        sampling.profiler.keep(|tid| discovery.id_of(tid).is_some());
        for thread in &profiled {
            sampling.counts.samples += thread.interval.counts.samples;
            sampling.counts.decoded += thread.interval.counts.decoded;
        }
        let by_id = profiled.into_iter().map(|t| ((t.pid, t.tid), t.interval));
        by_id.collect()
    }

    /// A thread that is there; one that turns out to be gone is put with those that have exited.
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
        let thread = self.threads.get_mut(&id)?;
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
            let root = self.trees.root_of(id.pid).unwrap_or(id.pid);
            recorded.fill(self.trees.name(root), &mut sample, moment.interval_ns);
        }
        settle(
            &mut self.enforcement,
            id,
            last_pu,
            moment.interval_ns,
            &mut sample,
        );
        Some(observed(id, thread, sample, last_pu))
    }

    /// Whether a thread's program was paused in the interval that ends now.
    fn was_paused(&self, id: ThreadId) -> bool {
        let program = self.program_of(id.pid);
        self.pausing.in_quantum.contains(&program)
    }

    /// Whether a thread can run now, by its counters or by `/proc`, which then adds what else it
    /// tells; nothing when the thread is gone.
    fn is_runnable(
        &mut self,
        id: ThreadId,
        moment: Moment,
        begun: Option<u64>,
        sample: &mut Sample,
    ) -> Option<bool> {
        let thread = self.threads.get_mut(&id)?;
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

    /// Threads that have exited since the last observation.
    fn last_looks(&mut self, interval_ns: u64, profiles: &Profiles) -> Vec<ThreadObservation> {
        let exited = std::mem::take(&mut self.exited).into_iter();
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
                recorded.fill(self.trees.name(program.0), &mut sample, interval_ns);
            }
            settle(&mut self.enforcement, id, None, interval_ns, &mut sample);
            self.enforcement.forget(id);
            observed(id, &thread, sample, None)
        });
        last.collect()
    }
}

/// Adds the time that a thread spent where the plan had it.
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

/// When an observation is made, and how long its interval was.
#[derive(Clone, Copy)]
struct Moment {
    now: Instant,
    interval_ns: u64,
}

/// Profiles of one interval by pid and tid; the last of a tid that was used twice.
type Profiles = BTreeMap<(u32, u32), ThreadProfile>;

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

/// CPU time of the calling thread, ns.
pub(super) fn own_cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(0, |time| nanos(Duration::from(time)))
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
