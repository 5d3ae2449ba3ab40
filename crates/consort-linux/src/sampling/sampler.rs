//! The sampler: opens the sampling events of programs, and reads their rings.
//!
//! A launched program is followed by one inherited event per CPU: the kernel
//! attaches it to every thread and process that the program ever starts, before
//! they run their first instruction. Inheritance makes each thread start 1.2 to
//! 2.6 microseconds dearer per event (Linux 6.18 in a virtual machine, 2 CPUs,
//! best of ten runs each with 1 to 1,024 events), which 512 CPUs turn into 0.7
//! ms; beyond 256 CPUs each thread gets an event of its own instead, and new
//! threads are sampled from the round on that finds them.
//!
//! Each sample costs the sampled thread a timer interrupt (see `calibrate`);
//! reading and booking it costs the sampler about 1 microsecond.
//!
//! The rate of a running thread cannot be changed: `PERF_EVENT_IOC_PERIOD` reaches the thread that
//! the event was opened on and threads started later, not threads that have inherited it already,
//! and samples still report the old period (both seen on Linux 6.18). So there are two sets of
//! events at the start, the faster one is closed when the start is over, and surplus samples are
//! left out when the rings are read.

use super::budget::{EventDuty, SamplerAccount, Thinning};
use super::config::{SamplerConfig, WatchRate};
use super::feed::{HostFeeds, RecordBatch, RingFeed};
use crate::discovery::{ProcError, ThreadEvent};
use crate::perf::PerfError;
use crate::perf::record::PerfRecord;
use consort_core::{PuId, PuSet};
use nix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// Time for which records are held back, ns; long compared with the time that reading takes.
const HELD_BACK_NS: u64 = 1_000_000;

/// Most records whose room is kept for the next round, so that a burst does not keep memory for good.
const KEPT_RECORDS: usize = 2_048;

/// A sampler of one program, or of several processes.
#[derive(Debug)]
pub struct Sampler {
    pub(super) config: SamplerConfig,
    /// The configuration for watching at the full rate.
    pub(super) full: SamplerConfig,
    pub(super) feeds: RingFeeds,
    pub(super) burst: Option<StartBurst>,
    pub(super) thinning: Thinning,
    pub(super) upkeep: SamplerAccount,
    /// Records that were read while attaching or held back, handed out by the next round.
    pub(super) held: RecordBatch,
    /// Room for the records that the next round holds back, from a batch that was given back:
    /// growing it anew in every round takes as long as reading the records.
    pub(super) spare: Vec<PerfRecord>,
    /// Root of the tree of processes for which events are opened now.
    pub(super) tree: u32,
    /// Roots of all trees that are sampled.
    pub(super) trees: BTreeSet<u32>,
    /// Times at which events on threads are open; `None` if all that runs on CPUs is sampled.
    pub(super) duty: Option<EventDuty>,
    pub(super) is_open: bool,
}

impl Sampler {
    /// Returns true if the kernel opens the events of new threads.
    pub fn is_inherited(&self) -> bool {
        matches!(self.feeds, RingFeeds::Inherited(_))
    }

    /// Reads all rings. Call it at least every 100 ms.
    ///
    /// The rings are read one after another, so records of the last millisecond are held back until
    /// the next round: this keeps all records in order.
    pub fn drain(&mut self) -> RecordBatch {
        let until_ns = monotonic_ns().saturating_sub(HELD_BACK_NS);
        if let RingFeeds::Host(_) = self.feeds {
            return self.drain_host(until_ns);
        }
        let mut batch = self.drain_all();
        let old = |r: &PerfRecord| r.time_ns().unwrap_or(0) <= until_ns;
        let kept = batch.records.partition_point(old);
        self.held.records = std::mem::take(&mut self.spare);
        self.held.records.extend(batch.records.drain(kept..));
        batch
    }

    /// Takes back a batch that was looked at, for its room.
    pub fn give_back(&mut self, batch: RecordBatch) {
        if batch.records.capacity() <= KEPT_RECORDS {
            self.spare = batch.records;
            self.spare.clear();
        }
    }

    /// Reads all rings to their end; for the last round.
    pub fn drain_all(&mut self) -> RecordBatch {
        if let RingFeeds::Host(_) = self.feeds {
            return self.drain_host(u64::MAX);
        }
        let mut batch = std::mem::take(&mut self.held);
        let thinning = &mut self.thinning;
        let factor = thinning.factor();
        for feed in self.feeds.own_feeds_mut() {
            feed.drain(&mut batch, thinning);
        }
        batch.sort();
        batch.sample_ns = factor * 1_000_000_000 / self.rate_hz().max(1);
        if let Some(now_ns) = batch.records.last().and_then(PerfRecord::time_ns) {
            self.thinning.end_round(now_ns);
            self.end_burst_if_due(&batch, now_ns);
        }
        batch
    }

    /// Reads the rings for all that runs on the CPUs, and keeps the members' records up to a time.
    fn drain_host(&mut self, until_ns: u64) -> RecordBatch {
        let mut batch = RecordBatch {
            records: std::mem::take(&mut self.spare),
            ..RecordBatch::default()
        };
        let factor = self.thinning.factor();
        if let RingFeeds::Host(host) = &mut self.feeds {
            batch.sample_ns = factor * 1_000_000_000 / host.rate_hz().max(1);
            host.drain(until_ns, &mut batch, &mut self.thinning);
            batch.sort();
            host.end_burst_if_due(&batch, &self.config);
            host.switch_events();
        }
        if let Some(now_ns) = batch.records.last().and_then(PerfRecord::time_ns) {
            self.thinning.end_round(now_ns);
        }
        batch
    }

    /// Returns true if the rings should be read again soon, as they fill quickly.
    pub fn is_crowded(&self) -> bool {
        matches!(&self.feeds, RingFeeds::Host(host) if host.is_crowded())
    }

    /// Samples a process of a tree that was found in `/proc`: the record of its start was lost.
    pub fn admit(&mut self, pid: u32, tree: u32) {
        if let RingFeeds::Host(host) = &mut self.feeds {
            host.members.admit(pid, tree, monotonic_ns());
            host.switch_events();
        }
    }

    /// Strikes off processes whose end was among lost records.
    pub fn retain_known(&mut self, is_known: impl Fn(u32) -> bool) {
        if let RingFeeds::Host(host) = &mut self.feeds {
            host.members.retain_known(is_known);
            host.switch_events();
        }
    }

    /// Samples these CPUs from now on, where all that runs on CPUs is sampled.
    pub fn follow_pus(&mut self, pus: &PuSet) {
        if let RingFeeds::Host(host) = &mut self.feeds {
            host.follow_pus(pus);
        }
    }

    /// Returns true if events record all that runs on the CPUs, and cost threads nothing when they
    /// are switched.
    pub fn is_host_wide(&self) -> bool {
        matches!(self.feeds, RingFeeds::Host(_))
    }

    /// Opens or closes the events on threads, as what they cost at switches and clones permits: `cost`
    /// is their cost while they are open, as a share of the programs' CPU time. Closing is cheaper
    /// for programs than disabling, because disabled events are cloned all the same.
    pub fn apply_duty(&mut self, root: &Path, pus: &PuSet, cost: f64) {
        let least = self.full.watch == WatchRate::Light;
        let Some(duty) = &mut self.duty else {
            return;
        };
        let wanted = duty.decide(monotonic_ns(), cost, least);
        if wanted == self.is_open {
            return;
        }
        self.is_open = wanted;
        if wanted {
            for tree in self.trees.clone() {
                // One that has ended, or that has too many threads, is not sampled in this cycle.
                let _ = self.join_tree(root, tree, pus);
            }
        } else {
            let mut held = std::mem::take(&mut self.held);
            for feed in self.feeds.own_feeds_mut() {
                feed.drain(&mut held, &mut self.thinning);
            }
            self.held = held;
            self.burst = None;
            self.feeds.close();
        }
    }

    /// Returns true if events are open, so that records show which threads begin and end.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Settles the account of an interval: `own_ns` of Consort's CPU time went into looking at
    /// `samples` samples of programs that ran for `managed_ns`. Beyond the budget, fewer are
    /// taken and looked at from now on.
    pub fn settle_cost(&mut self, own_ns: u64, managed_ns: u64, samples: u64, interval_ns: u64) {
        self.upkeep.add_round(own_ns, managed_ns, samples);
        let busy = managed_ns as f64 / interval_ns.max(1) as f64;
        let most = self.config.max_samples_per_s;
        let limit = self.upkeep.limit_per_cpu_s();
        self.thinning
            .set_max_per_s(limit.map_or(most, |limit| most.min((limit * busy) as u64)));
        // What is not looked at need not be taken either.
        if let RingFeeds::Host(host) = &mut self.feeds
            && !host.is_in_burst()
        {
            let usual_hz = self.config.rate_hz;
            host.set_rate(limit.map_or(usual_hz, |limit| usual_hz.min(limit as u64)));
        }
    }

    /// Attaches to threads that have appeared and lets go of threads that have exited, if the
    /// kernel does not do it. Threads that cannot be sampled are left out; returns their number.
    pub fn follow_threads(&mut self, events: &[ThreadEvent]) -> usize {
        if !matches!(self.feeds, RingFeeds::PerThread(_)) {
            return 0;
        }
        let left_out = events.iter().filter(|e| !self.follow_thread(e));
        left_out.count()
    }

    /// Takes samples at the pace of this rate: at once if all that runs on CPUs is sampled, else of
    /// programs that join from now on.
    pub fn set_watch(&mut self, watch: WatchRate) {
        if watch == self.full.watch {
            return;
        }
        self.full.watch = watch;
        self.config = self.full.with_watch_rates();
        if let RingFeeds::Host(host) = &mut self.feeds {
            host.set_rate(self.config.rate_hz);
        }
    }

    /// Number of descriptors held.
    pub fn fds(&self) -> usize {
        let burst = self.burst.as_ref().map_or(0, |b| b.events.len());
        self.feeds.iter().map(RingFeed::fds).sum::<usize>() + burst
    }

    /// Memory of all rings, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.feeds.iter().map(RingFeed::ring_bytes).sum()
    }

    fn follow_thread(&mut self, event: &ThreadEvent) -> bool {
        match event {
            ThreadEvent::Appeared { id, .. } => {
                let is_fed = matches!(
                    &self.feeds,
                    RingFeeds::PerThread(feeds) if feeds.contains_key(&id.tid)
                );
                is_fed || self.add_thread(id.tid).is_ok()
            }
            ThreadEvent::Exited { id } => {
                // The records that the closed ring still holds are handed out next round.
                if let RingFeeds::PerThread(feeds) = &mut self.feeds
                    && let Some(mut feed) = feeds.remove(&id.tid)
                {
                    feed.drain(&mut self.held, &mut self.thinning);
                }
                true
            }
            ThreadEvent::Renamed { .. } => true,
        }
    }

    /// Samples per second of a thread's CPU time that are taken now.
    pub fn rate_hz(&self) -> u64 {
        if let RingFeeds::Host(host) = &self.feeds {
            return host.rate_hz();
        }
        let burst_hz = self.burst.as_ref().map_or(0, |_| self.config.burst_hz);
        self.config.rate_hz + burst_hz
    }

    fn end_burst_if_due(&mut self, batch: &RecordBatch, now_ns: u64) {
        let Some(burst) = &mut self.burst else {
            return;
        };
        let first_ns = batch.records.first().and_then(PerfRecord::time_ns);
        let began_ns = *burst.began_ns.get_or_insert(first_ns.unwrap_or(now_ns));
        if now_ns.saturating_sub(began_ns) >= self.config.burst_ns {
            self.burst = None;
        }
    }
}

pub(super) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Reason for which sampling could not start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SamplerError {
    /// perf refused an event.
    #[error("cannot sample thread {tid}: {error}")]
    Perf {
        /// Kernel thread id.
        tid: u32,
        /// The kernel's answer.
        #[source]
        error: PerfError,
    },
    /// The set of CPUs is empty.
    #[error("no CPU to sample on; name at least one online CPU")]
    NoPus,
    /// The process cannot be listed.
    #[error("cannot list the threads of process {pid}: {error}")]
    Proc {
        /// Process id.
        pid: u32,
        /// The failure to read `/proc`.
        #[source]
        error: ProcError,
    },
    /// There are more threads than descriptors.
    #[error("{threads} threads need more than {budget} descriptors; raise the limit on open files")]
    FdBudget {
        /// Number of threads of the process.
        threads: usize,
        /// Most descriptors that the sampler may keep open.
        budget: usize,
    },
}

/// Rings by their CPUs or by their threads.
#[derive(Debug)]
pub(super) enum RingFeeds {
    /// One ring per CPU; the kernel attaches new threads.
    Inherited(Vec<(PuId, RingFeed)>),
    /// One ring per CPU for all that runs there; only the records of members are kept.
    Host(HostFeeds),
    /// One ring per thread; [`super::Sampler::follow_threads`] attaches new threads.
    PerThread(BTreeMap<u32, RingFeed>),
}

/// The additional events of a program's start.
#[derive(Debug)]
pub(super) struct StartBurst {
    pub(super) events: Vec<OwnedFd>,
    /// Time of the first record, `CLOCK_MONOTONIC`, ns; `None` until there is one.
    pub(super) began_ns: Option<u64>,
}

impl RingFeeds {
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &RingFeed> + '_> {
        match self {
            Self::Inherited(feeds) => Box::new(feeds.iter().map(|(_, feed)| feed)),
            Self::Host(host) => Box::new(host.iter()),
            Self::PerThread(feeds) => Box::new(feeds.values()),
        }
    }

    /// Closes the rings and events on threads.
    pub(super) fn close(&mut self) {
        match self {
            Self::Inherited(feeds) => feeds.clear(),
            Self::PerThread(feeds) => feeds.clear(),
            Self::Host(_) => {}
        }
    }

    /// The rings that hold records of the sampled programs alone.
    pub(super) fn own_feeds_mut(&mut self) -> Box<dyn Iterator<Item = &mut RingFeed> + '_> {
        match self {
            Self::Host(_) => Box::new(std::iter::empty()),
            Self::Inherited(feeds) => Box::new(feeds.iter_mut().map(|(_, feed)| feed)),
            Self::PerThread(feeds) => Box::new(feeds.values_mut()),
        }
    }
}
