//! From records and `/proc` to an observation.

use super::Live;
use super::threads::Thread;
use crate::discovery::ProcSample;
use crate::sampling::ThreadProfile;
use consort_core::{Observation, PuId, Reading, Sample, Signal, ThreadId, ThreadObservation, Tier};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two scans of `/proc` that only complete what records tell.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// The pause as a multiple of what the scan took, so that crowds of processes cost no more than
/// half a percent of one PU.
const PAUSE_PER_SCAN: u32 = 200;

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
    }

    /// Compares with `/proc`: always where there are no records, and now and then where there are.
    /// The kernel ends the records of a program that executes a setuid file, as if it had exited
    /// (`begin_new_exec` in `fs/exec.c`), and tells nothing of what that starts.
    fn scan_if_due(&mut self) {
        let begun = Instant::now();
        if self.sampling.is_some() && begun < self.clock.next_scan {
            return;
        }
        let events = self.discovery.scan();
        if let Some(sampling) = &mut self.sampling {
            sampling.sampler.follow(&events);
        }
        self.follow(events);
        self.clock.next_scan = begun + LEAST_PAUSE.max(begun.elapsed() * PAUSE_PER_SCAN);
    }

    /// What each thread did since the last observation.
    pub(super) fn observation(&mut self) -> Observation {
        self.scan_if_due();
        let now = Instant::now();
        let interval_ns = nanos(now - self.clock.quantum);
        self.clock.quantum = now;
        let profiles = self.profiles(interval_ns);
        let ids: Vec<ThreadId> = self.threads.keys().copied().collect();
        let looks = ids.into_iter();
        let threads = looks
            .filter_map(|id| self.look_at(id, interval_ns, &profiles))
            .collect();
        let exited = self.last_looks(interval_ns, &profiles);
        let notices = self.counting.begin_quantum();
        self.warnings
            .extend(notices.iter().map(ToString::to_string));
        Observation {
            time_ns: nanos(now - self.clock.start),
            interval_ns,
            threads,
            exited,
            bottlenecks: Vec::new(),
        }
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
        interval_ns: u64,
        profiles: &Profiles,
    ) -> Option<ThreadObservation> {
        let Ok(now) = self.reader.sample(id) else {
            let gone = self.drop_thread(id);
            self.exited.extend(gone);
            return None;
        };
        let thread = self.threads.get_mut(&id)?;
        let mut sample = from_proc(thread.last.as_ref(), &now, interval_ns);
        thread.last = Some(now);
        self.counting.fill(id, &mut sample);
        if let Some(profile) = profiles.get(&(id.pid, id.tid)) {
            profile.fill(&mut sample, interval_ns);
        }
        Some(observed(id, thread, sample, Some(now.last_pu)))
    }

    /// Threads that have exited since the last observation.
    fn last_looks(&mut self, interval_ns: u64, profiles: &Profiles) -> Vec<ThreadObservation> {
        let exited = std::mem::take(&mut self.exited).into_iter();
        let last = exited.map(|(id, thread)| {
            let mut sample = Sample::default();
            if let Some(profile) = profiles.get(&(id.pid, id.tid)) {
                // `/proc` no longer tells its CPU time, but each sample stands for a stretch of it.
                let cpu_ns = profile.counts.sampled_ns as f64;
                let reading = Reading::whole(cpu_ns, Tier::Sampling, interval_ns);
                sample.set(Signal::CpuTime, reading);
                profile.fill(&mut sample, interval_ns);
            }
            observed(id, &thread, sample, None)
        });
        last.collect()
    }
}

/// Profiles of one interval by pid and tid; the last of a tid that was used twice.
type Profiles = BTreeMap<(u32, u32), ThreadProfile>;

/// What a thread consumed between two looks at `/proc`.
fn from_proc(before: Option<&ProcSample>, now: &ProcSample, interval_ns: u64) -> Sample {
    let mut sample = Sample::default();
    let reading = |delta: u64| Reading::whole(delta as f64, Tier::Proc, interval_ns);
    let cpu_before = before.map_or(0, |b| b.cpu_ns);
    sample.set(
        Signal::CpuTime,
        reading(now.cpu_ns.saturating_sub(cpu_before)),
    );
    if let Some(wait) = now.wait_ns {
        let wait_before = before.and_then(|b| b.wait_ns).unwrap_or(0);
        sample.set(Signal::WaitTime, reading(wait.saturating_sub(wait_before)));
    }
    sample
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

/// CPU time of the calling thread, ns.
fn own_cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(0, |time| nanos(Duration::from(time)))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
