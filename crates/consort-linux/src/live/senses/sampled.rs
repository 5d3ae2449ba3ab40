//! The sampling tier of a run, where the host has it.

use crate::discovery::ThreadEvent;
use crate::live::clock::own_cpu_ns;
use crate::live::warnings::Warnings;
use crate::live::{Host, SampleCounts};
use crate::reader;
use crate::sampling::{
    Batch, ProfiledThread, Profiler, Sampler, SamplerConfig, SamplerError, ThreadProfile, Watch,
    sample_cost_ns,
};
use consort_core::{PuSet, ThreadId, Tier};
use std::path::Path;

/// Least time between two settlements of the cost of samples, ns.
const SETTLE_EVERY_NS: u64 = 1_000_000_000;

/// Profiles of threads with samples in one interval, by tid.
#[derive(Default)]
pub(super) struct Profiles(Vec<ProfiledThread>);

impl Profiles {
    /// The profile of a thread; the last one of a tid that was used twice.
    pub(super) fn get(&self, id: ThreadId) -> Option<&ThreadProfile> {
        let end = self.0.partition_point(|profiled| profiled.tid <= id.tid);
        let same = self.0[..end].iter().rev();
        let mut same = same.take_while(|profiled| profiled.tid == id.tid);
        let found = same.find(|profiled| profiled.pid == id.pid)?;
        Some(&found.interval)
    }
}

/// The sampling tier: sampler and profiler, with their counts and cost.
pub(in crate::live) struct Sampling {
    sampler: Sampler,
    /// CPU time that one sample takes from the thread that it hits, ns; 0 where it could not be
    /// measured.
    cost_ns: u64,
    profiler: Profiler,
    counts: SampleCounts,
    unsettled: Unsettled,
}

/// Cost of samples since the account was last settled.
#[derive(Clone, Copy, Debug, Default)]
struct Unsettled {
    /// Own CPU time, ns.
    own_ns: u64,
    samples: u64,
    /// Length of the intervals, ns.
    interval_ns: u64,
}

impl Sampling {
    /// Reads all rings; for the last time nothing is held back for the sake of order.
    pub(super) fn drain(&mut self, is_last: bool) -> Batch {
        let before_ns = own_cpu_ns() + reader::cpu_ns();
        let batch = match is_last {
            true => self.sampler.drain_all(),
            false => self.sampler.drain(),
        };
        self.counts.lost += batch.lost;
        self.counts.taken += batch.samples() as u64 + batch.thinned + batch.lost;
        self.profiler.apply(&batch);
        let after_ns = own_cpu_ns() + reader::cpu_ns();
        self.unsettled.own_ns += after_ns.saturating_sub(before_ns);
        self.unsettled.samples += batch.samples() as u64;
        batch
    }

    /// Warnings about code that cannot be read, since the last call.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        self.profiler.take_warnings()
    }

    /// Takes back a batch that was looked at.
    pub(super) fn give_back(&mut self, batch: Batch) {
        self.sampler.give_back(batch);
    }

    /// Samples threads that have appeared, and no longer those that have exited.
    pub(super) fn follow(&mut self, events: &[ThreadEvent]) {
        self.sampler.follow(events);
    }

    /// Samples a process and all that it has started.
    pub(super) fn join_tree(
        &mut self,
        root: &Path,
        pid: u32,
        pus: &PuSet,
    ) -> Result<(), SamplerError> {
        self.sampler.join_tree(root, pid, pus)
    }

    /// Samples at the pace of this rate.
    pub(super) fn set_watch(&mut self, watch: Watch) {
        self.sampler.set_watch(watch);
    }

    /// Stops sampling a process.
    pub(super) fn leave_tree(&mut self, pid: u32) {
        self.sampler.leave_tree(pid);
    }

    /// Ends the interval; returns the profiles of threads that had samples in it. Those that are not
    /// known any more are dropped within a second or an interval.
    pub(super) fn profiles(
        &mut self,
        interval_ns: u64,
        is_known: impl Fn(u32) -> bool,
    ) -> Profiles {
        let before_ns = own_cpu_ns();
        let profiled = self.profiler.interval();
        self.unsettled.own_ns += own_cpu_ns().saturating_sub(before_ns);
        self.settle_if_due(interval_ns, is_known);
        for thread in &profiled {
            self.counts.samples += thread.interval.counts.samples;
            self.counts.decoded += thread.interval.counts.decoded;
        }
        Profiles(profiled)
    }

    /// Profile of a thread that had no samples in the interval, from its earlier ones.
    pub(super) fn earlier(&self, id: ThreadId) -> Option<ThreadProfile> {
        self.profiler.earlier(id.pid, id.tid)
    }

    /// Settles the cost of samples, and lets go of threads whose end was missed; not in every
    /// quantum, as all threads are gone through.
    fn settle_if_due(&mut self, interval_ns: u64, is_known: impl Fn(u32) -> bool) {
        self.unsettled.interval_ns += interval_ns;
        if self.unsettled.interval_ns < SETTLE_EVERY_NS {
            return;
        }
        self.profiler.keep(is_known);
        let due = std::mem::take(&mut self.unsettled);
        self.sampler
            .settle(due.own_ns, due.samples, due.interval_ns);
    }

    /// Numbers of samples so far.
    pub(super) fn counts(&self) -> SampleCounts {
        self.counts
    }

    /// CPU time that samples took from the threads so far, s; estimated.
    pub(super) fn cost_s(&self) -> f64 {
        (self.counts.taken * self.cost_ns) as f64 / 1e9
    }

    /// CPU time of the sampled threads so far, ns.
    pub(super) fn cpu_time_ns(&self) -> u64 {
        self.sampler.cpu_time_ns()
    }
}

/// Settings of sampling on this host, and whether it is wanted.
pub(in crate::live) struct SamplingWish {
    pub(in crate::live) wanted: bool,
    /// CPU time that one sample takes from the thread that it hits, ns.
    pub(in crate::live) cost_ns: u64,
    pub(in crate::live) config: SamplerConfig,
    /// Made before programs are started, so that the process that reads their code is there in time;
    /// `None` if sampling is not wanted.
    profiler: Option<Profiler>,
}

impl SamplingWish {
    pub(in crate::live) fn of(host: &Host, watch: Watch) -> Self {
        let wanted = host.offers().iter().any(|(_, tier)| tier == Tier::Sampling);
        let profiler = wanted.then(|| Profiler::new(&host.root));
        let cost_ns = if wanted {
            sample_cost_ns(&host.root).unwrap_or(0)
        } else {
            0
        };
        // Up to 20 times dearer in some virtual machines than on bare metal.
        let config = SamplerConfig::default()
            .for_cost(cost_ns)
            .permitted(&host.root)
            .for_watch(watch);
        Self {
            wanted,
            cost_ns,
            config,
            profiler,
        }
    }
}

/// The sampling tier if its events could be opened, else none and a warning with the reason.
pub(in crate::live) fn accept(
    sampler: Option<Result<Sampler, SamplerError>>,
    wish: SamplingWish,
    warnings: &mut Warnings,
) -> Option<Sampling> {
    match sampler? {
        Ok(sampler) => Some(Sampling {
            sampler,
            cost_ns: wish.cost_ns,
            profiler: wish.profiler?,
            counts: SampleCounts::default(),
            unsettled: Unsettled::default(),
        }),
        Err(error) => {
            warnings.insert(format!("no sampling, so no instruction mix: {error}"));
            None
        }
    }
}
