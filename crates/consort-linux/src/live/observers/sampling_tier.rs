//! The sampling tier of a run, where the host has it.

use crate::live::clock::own_cpu_ns;
use crate::live::warnings::Warnings;
use crate::live::{Host, SampleCounts};
use crate::perf::record::PerfRecord;
use crate::reader;
use crate::sampling::{
    ProfiledThread, RecordBatch, SampleProfiler, Sampler, SamplerConfig, SamplerError,
    ThreadProfile, WatchRate, sample_cost_ns, sampling_clone_ns, sampling_switch_ns,
};
use consort_core::{PuSet, ThreadId, Tier};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Least time between two settlements of the cost of samples, ns.
const SETTLE_EVERY_NS: u64 = 1_000_000_000;

/// Profiles of threads with samples in one interval, by tid.
#[derive(Default)]
pub(super) struct IntervalProfiles(Vec<ProfiledThread>);

impl IntervalProfiles {
    /// The profile of a thread; the last one of a tid that was used twice.
    pub(super) fn get(&self, id: ThreadId) -> Option<&ThreadProfile> {
        // Sorted by tid. A tid that was used twice in an interval has two entries, the last one for
        // the present thread.
        let end = self.0.partition_point(|profiled| profiled.tid <= id.tid);
        let same = self.0[..end].iter().rev();
        let mut same = same.take_while(|profiled| profiled.tid == id.tid);
        let found = same.find(|profiled| profiled.pid == id.pid)?;
        Some(&found.interval)
    }
}

/// The sampling tier: sampler and profiler, with their counts and cost.
pub(in crate::live) struct SamplingTier {
    pub(super) sampler: Sampler,
    /// CPU time that one sample takes from the thread that it interrupts, ns; 0 if it could not be
    /// measured.
    cost_ns: u64,
    pub(in crate::live) profiler: SampleProfiler,
    pub(in crate::live) counts: SampleCounts,
    unsettled: UnsettledCost,
    /// Number of times that the timers of the CPUs expired in the sampled threads; estimated.
    timers: f64,
    /// Costs of events on threads; `None` if everything that runs on the CPUs is sampled.
    own_events: Option<ThreadEventCosts>,
    root: PathBuf,
    pus: PuSet,
    /// True if records were lost since the members were last compared with the known processes.
    lost_lately: bool,
}

/// Costs of events that are switched and cloned with threads.
#[derive(Clone, Copy, Debug)]
struct ThreadEventCosts {
    /// CPU time that they add to a switch, and to the start of a thread, ns.
    switch_ns: u64,
    clone_ns: u64,
    /// CPU time that this would have cost since the last settlement had events been open, ns.
    would_cost_ns: u64,
    /// CPU time that it has cost so far, ns.
    cost_ns: u64,
}

/// Threads and processes that the scan knows, for letting go of the ones that ended unseen.
#[derive(Clone, Copy)]
pub(in crate::live) struct KnownThreads<'a> {
    /// Returns true if a thread of this number is known.
    pub(in crate::live) has_thread: &'a dyn Fn(u32) -> bool,
    /// Processes with threads that are known.
    pub(in crate::live) processes: &'a dyn Fn() -> BTreeSet<u32>,
}

/// Cost of samples since the account was last settled.
#[derive(Clone, Copy, Debug, Default)]
struct UnsettledCost {
    /// Own CPU time, ns.
    own_ns: u64,
    samples: u64,
    /// CPU time of the sampled threads, ns.
    managed_ns: u64,
    /// Length of the intervals, ns.
    interval_ns: u64,
}

impl ThreadEventCosts {
    fn measure(setup: &SamplingSetup) -> Self {
        let rate_hz = setup.config.rate_hz;
        Self {
            switch_ns: sampling_switch_ns(rate_hz).unwrap_or(0),
            clone_ns: sampling_clone_ns(rate_hz, &setup.pus).unwrap_or(0),
            would_cost_ns: 0,
            cost_ns: 0,
        }
    }

    fn add(&mut self, cost_ns: u64, is_open: bool) {
        self.would_cost_ns += cost_ns;
        self.cost_ns += if is_open { cost_ns } else { 0 };
    }
}

impl SamplingTier {
    /// Reads all rings. Usually the latest records wait for the next reading, because another ring may
    /// yet get older ones; the last reading returns everything.
    pub(in crate::live) fn drain(&mut self, is_last: bool) -> RecordBatch {
        // With the CPU time of the process that reads code, which works for this run.
        let before_ns = own_cpu_ns() + reader::cpu_ns();
        let batch = match is_last {
            true => self.sampler.drain_all(),
            false => self.sampler.drain(),
        };
        self.counts.lost += batch.lost;
        self.lost_lately |= batch.lost > 0;
        self.counts.taken += batch.samples() as u64 + batch.thinned + batch.lost;
        self.profiler.apply(&batch);
        // All threads and processes that have begun count, also the ones that ended at once.
        let starts = { batch.records.iter() }.filter(|r| matches!(r, PerfRecord::Fork(_)));
        let is_open = self.sampler.is_open();
        if let Some(own) = &mut self.own_events {
            own.add(starts.count() as u64 * own.clone_ns, is_open);
        }
        let after_ns = own_cpu_ns() + reader::cpu_ns();
        self.unsettled.own_ns += after_ns.saturating_sub(before_ns);
        self.unsettled.samples += batch.samples() as u64;
        batch
    }

    /// Ends the interval; returns the profiles of threads that had samples in it. Threads that are not
    /// known any more are dropped within a second or an interval.
    pub(super) fn end_interval(
        &mut self,
        interval_ns: u64,
        managed_ns: u64,
        known: KnownThreads<'_>,
    ) -> IntervalProfiles {
        let before_ns = own_cpu_ns();
        let profiled = self.profiler.end_interval();
        self.unsettled.own_ns += own_cpu_ns().saturating_sub(before_ns);
        self.timers += managed_ns as f64 * self.sampler.rate_hz() as f64 / 1e9;
        self.unsettled.managed_ns += managed_ns;
        self.settle_if_due(interval_ns, known);
        for thread in &profiled {
            self.counts.samples += thread.interval.counts.samples;
            self.counts.decoded += thread.interval.counts.decoded;
        }
        IntervalProfiles(profiled)
    }

    /// Profile of a thread that had no samples in the interval, from its earlier ones.
    pub(super) fn earlier_profile(&self, id: ThreadId) -> Option<ThreadProfile> {
        self.profiler.earlier_profile(id.pid, id.tid)
    }

    /// Settles the cost of samples, and lets go of threads whose end was missed. This visits all threads,
    /// so it is not done in every quantum.
    fn settle_if_due(&mut self, interval_ns: u64, known: KnownThreads<'_>) {
        self.unsettled.interval_ns += interval_ns;
        if self.unsettled.interval_ns < SETTLE_EVERY_NS {
            return;
        }
        self.profiler.retain_known(|tid| (known.has_thread)(tid));
        if self.lost_lately {
            let processes = (known.processes)();
            self.sampler.retain_known(|pid| processes.contains(&pid));
            self.lost_lately = false;
        }
        let due = std::mem::take(&mut self.unsettled);
        if let Some(own) = &mut self.own_events {
            let cost_ns = std::mem::take(&mut own.would_cost_ns) as f64;
            // What the events would have cost if they had been open all the time, relative to the
            // work of the threads.
            let cost = cost_ns / (due.managed_ns.max(1)) as f64;
            self.sampler.apply_duty(&self.root, &self.pus, cost);
        }
        self.sampler
            .settle_cost(due.own_ns, due.managed_ns, due.samples, due.interval_ns);
    }

    /// CPU time that samples took from the threads so far, s; estimated.
    pub(in crate::live) fn cost_s(&self) -> f64 {
        let timers = if self.sampler.is_host_wide() {
            self.timers
        } else {
            self.counts.taken as f64
        };
        timers * self.cost_ns as f64 / 1e9
    }

    pub(super) fn note_switches(&mut self, switches: u64) {
        let is_open = self.sampler.is_open();
        if let Some(own) = &mut self.own_events {
            own.add(switches * own.switch_ns, is_open);
        }
    }

    /// CPU time that events cost threads at switches and starts so far, ns; estimated.
    pub(super) fn events_ns(&self) -> u64 {
        self.own_events.map_or(0, |own| own.cost_ns)
    }

    /// CPU time that open events add to a switch, ns.
    pub(super) fn switch_cost_ns(&self) -> u64 {
        let own = self.own_events.filter(|_| self.sampler.is_open());
        own.map_or(0, |own| own.switch_ns)
    }
}

/// Settings of sampling on this host, and whether it is wanted.
pub(in crate::live) struct SamplingSetup {
    pub(in crate::live) wanted: bool,
    /// CPU time that one sample takes from the thread that it hits, ns.
    pub(in crate::live) cost_ns: u64,
    pub(in crate::live) config: SamplerConfig,
    /// Made before programs are started, so that the process that reads their code runs in time; `None`
    /// if sampling is not wanted.
    profiler: Option<SampleProfiler>,
    /// CPUs on which events on threads are opened.
    pub(in crate::live) pus: PuSet,
    root: PathBuf,
}

impl SamplingSetup {
    pub(in crate::live) fn for_host(host: &Host, watch: WatchRate) -> Self {
        let wanted = host.offers().iter().any(|(_, tier)| tier == Tier::Sampling);
        let profiler = wanted.then(|| SampleProfiler::new(&host.root));
        let cost_ns = if wanted {
            sample_cost_ns(&host.root).unwrap_or(0)
        } else {
            0
        };
        // A sample costs up to 20 times as much in some virtual machines as on bare metal.
        let config = SamplerConfig::default()
            .for_cost(cost_ns)
            .with_permitted_rates(&host.root);
        let config = SamplerConfig { watch, ..config };
        Self {
            wanted,
            cost_ns,
            config,
            profiler,
            pus: host.discovery.machine.pus().clone(),
            root: host.root.clone(),
        }
    }
}

/// The sampling tier if its events could be opened, else none and a warning with the reason.
pub(in crate::live) fn accept_sampler(
    sampler: Option<Result<Sampler, SamplerError>>,
    setup: SamplingSetup,
    warnings: &mut Warnings,
) -> Option<SamplingTier> {
    match sampler? {
        Ok(mut sampler) => {
            let own_events = (!sampler.is_host_wide()).then(|| ThreadEventCosts::measure(&setup));
            sampler.limit_event_cost();
            Some(SamplingTier {
                sampler,
                cost_ns: setup.cost_ns,
                profiler: setup.profiler?,
                counts: SampleCounts::default(),
                unsettled: UnsettledCost::default(),
                timers: 0.0,
                root: setup.root,
                pus: setup.pus,
                own_events,
                lost_lately: false,
            })
        }
        Err(error) => {
            warnings.insert(format!("no sampling, so no instruction mix: {error}"));
            None
        }
    }
}
