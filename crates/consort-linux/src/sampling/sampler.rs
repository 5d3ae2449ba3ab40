//! The sampler: opens the sampling events of programs, and reads their rings.
//!
//! A launched program is followed by one inherited event per PU: the kernel
//! attaches it to every thread and process that the program ever starts, before
//! they run their first instruction. Inheritance makes each thread start 1.2 to
//! 2.6 microseconds dearer per event (Linux 6.18 in a virtual machine, 2 PUs,
//! best of ten runs each with 1 to 1,024 events), which 512 PUs turn into 0.7
//! ms; beyond 256 PUs each thread gets an event of its own instead, and new
//! threads are sampled from the round on that finds them.
//!
//! Each sample costs the sampled thread a timer interrupt (see `calibrate`);
//! reading and booking it costs the sampler about 1 microsecond.
//!
//! The rate of a running thread cannot be changed: `PERF_EVENT_IOC_PERIOD`
//! reaches the thread that the event was opened on and threads started later,
//! not those that have inherited it already, and samples go on to report the
//! old period (both seen on Linux 6.18). So there are two sets of events at the
//! start, of which the faster is closed when the start is over, and surplus
//! samples are left out when the rings are read.

use super::batch::Batch;
use super::config::SamplerConfig;
use super::feed::Feed;
use super::feeds::{Burst, Feeds};
use super::thinning::Thinning;
use super::upkeep::Upkeep;
use super::watch::Watch;
use crate::discovery::ThreadEvent;
use crate::perf::record::Record;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Time for which records are held back, ns; long beside the time that reading takes.
const HELD_BACK_NS: u64 = 1_000_000;

/// Most records whose room is kept for the next round, so that a burst does not keep memory for good.
const KEPT_RECORDS: usize = 2_048;

/// A sampler of one program, or of several processes.
#[derive(Debug)]
pub struct Sampler {
    pub(super) config: SamplerConfig,
    pub(super) feeds: Feeds,
    pub(super) burst: Option<Burst>,
    pub(super) thinning: Thinning,
    pub(super) upkeep: Upkeep,
    /// CPU time of the managed threads when the account was last settled, ns.
    pub(super) settled_ns: u64,
    /// Records that were read while attaching or held back, handed out by the next round.
    pub(super) held: Batch,
    /// Room for the records that the next round holds back, from a batch that was given back:
    /// growing it anew in every round takes as long as reading the records.
    pub(super) spare: Vec<Record>,
    /// Root of the tree of processes for which events are opened now.
    pub(super) tree: u32,
}

impl Sampler {
    /// Returns true if new threads are sampled from their first instruction on.
    pub fn is_inherited(&self) -> bool {
        matches!(self.feeds, Feeds::Inherited(_))
    }

    /// Reads all rings. Call it at least every 100 ms.
    ///
    /// The rings are read one after another, so records of the last millisecond are held back until
    /// the next round: this keeps all records in order.
    pub fn drain(&mut self) -> Batch {
        let until_ns = monotonic_ns().saturating_sub(HELD_BACK_NS);
        let mut batch = self.drain_all();
        let old = |r: &Record| r.time_ns().unwrap_or(0) <= until_ns;
        let kept = batch.records.partition_point(old);
        self.held.records = std::mem::take(&mut self.spare);
        self.held.records.extend(batch.records.drain(kept..));
        batch
    }

    /// Takes back a batch that was looked at, for its room.
    pub fn give_back(&mut self, batch: Batch) {
        if batch.records.capacity() <= KEPT_RECORDS {
            self.spare = batch.records;
            self.spare.clear();
        }
    }

    /// Reads all rings to their end; for the last round.
    pub fn drain_all(&mut self) -> Batch {
        let mut batch = std::mem::take(&mut self.held);
        let thinning = &mut self.thinning;
        let factor = thinning.factor();
        for feed in self.feeds.iter_mut() {
            feed.drain(&mut batch, thinning);
        }
        batch.sort();
        batch.sample_ns = factor * 1_000_000_000 / self.present_rate_hz().max(1);
        if let Some(now_ns) = batch.records.last().and_then(Record::time_ns) {
            self.thinning.end_round(now_ns);
            self.end_burst_if_due(&batch, now_ns);
        }
        batch
    }

    /// Settles the account of an interval: `own_ns` of Consort's CPU time went into looking at
    /// `samples` samples. Beyond the budget, fewer are looked at from now on.
    pub fn settle(&mut self, own_ns: u64, samples: u64, interval_ns: u64) {
        let managed_ns = self.cpu_time_ns();
        let delta_ns = managed_ns.saturating_sub(self.settled_ns);
        self.settled_ns = managed_ns;
        self.upkeep.enter(own_ns, delta_ns, samples);
        let busy = delta_ns as f64 / interval_ns.max(1) as f64;
        let most = self.config.max_samples_per_s;
        let limit = self.upkeep.limit_per_cpu_s();
        self.thinning
            .set_max_per_s(limit.map_or(most, |limit| most.min((limit * busy) as u64)));
    }

    /// Attaches to threads that have appeared and lets go of those that have exited, where the
    /// kernel does not do it. Threads that cannot be sampled are left out; returns their number.
    pub fn follow(&mut self, events: &[ThreadEvent]) -> usize {
        if self.is_inherited() {
            return 0;
        }
        let left_out = events.iter().filter(|e| !self.follow_one(e));
        left_out.count()
    }

    /// Takes samples at the pace of this rate, of programs that join from now on.
    pub fn set_watch(&mut self, watch: Watch) {
        self.config = self.config.for_watch(watch);
    }

    /// CPU time of all threads that were sampled, those that have exited included, ns.
    pub fn cpu_time_ns(&self) -> u64 {
        self.feeds.iter().map(Feed::cpu_time_ns).sum()
    }

    /// Number of descriptors held.
    pub fn fds(&self) -> usize {
        let burst = self.burst.as_ref().map_or(0, |b| b.events.len());
        self.feeds.iter().map(Feed::fds).sum::<usize>() + burst
    }

    /// Memory of all rings, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.feeds.iter().map(Feed::ring_bytes).sum()
    }

    fn follow_one(&mut self, event: &ThreadEvent) -> bool {
        match event {
            ThreadEvent::Appeared { id, .. } => {
                self.is_fed(id.tid) || self.add_thread(id.tid).is_ok()
            }
            ThreadEvent::Exited { id } => {
                self.let_go(id.tid);
                true
            }
            ThreadEvent::Renamed { .. } => true,
        }
    }

    fn is_fed(&self, tid: u32) -> bool {
        matches!(&self.feeds, Feeds::PerThread(feeds) if feeds.contains_key(&tid))
    }

    /// Closes a thread's ring; the records that it still holds are handed out next round.
    fn let_go(&mut self, tid: u32) {
        if let Feeds::PerThread(feeds) = &mut self.feeds
            && let Some(mut feed) = feeds.remove(&tid)
        {
            feed.drain(&mut self.held, &mut self.thinning);
        }
    }

    fn present_rate_hz(&self) -> u64 {
        let burst_hz = self.burst.as_ref().map_or(0, |_| self.config.burst_hz);
        self.config.rate_hz + burst_hz
    }

    fn end_burst_if_due(&mut self, batch: &Batch, now_ns: u64) {
        let Some(burst) = &mut self.burst else {
            return;
        };
        let first_ns = batch.records.first().and_then(Record::time_ns);
        let began_ns = *burst.began_ns.get_or_insert(first_ns.unwrap_or(now_ns));
        if now_ns.saturating_sub(began_ns) >= self.config.burst_ns {
            self.burst = None;
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
