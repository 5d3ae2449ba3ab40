//! Opening the sampling events of a program, and reading their rings.
//!
//! A launched program is followed by one inherited event per PU: the kernel
//! attaches it to every thread and process that the program ever starts, before
//! they run their first instruction. Inheritance makes each thread start 1.2 to
//! 2.6 microseconds dearer per event (Linux 6.18 in a virtual machine, 2 PUs,
//! best of ten runs each with 1 to 1,024 events), which 512 PUs turn into 0.7
//! ms; beyond [`MAX_INHERITED_PUS`] each thread gets an event of its own
//! instead, and new threads are sampled from the round on that finds them.
//!
//! The rate of a running thread cannot be changed: `PERF_EVENT_IOC_PERIOD`
//! reaches the thread that the event was opened on and threads started later,
//! not those that have inherited it already, and samples go on to report the
//! old period (both seen on Linux 6.18). So there are two sets of events at the
//! start, of which the faster is closed when the start is over, and surplus
//! samples are left out when the rings are read.

use super::batch::Batch;
use super::config::SamplerConfig;
use super::error::SamplerError;
use super::feed::Feed;
use super::thinning::Thinning;
use crate::discovery::{ThreadEvent, threads_of};
use crate::perf::attr::Follow;
use crate::perf::record::Record;
use crate::perf::{PerfError, Target, page_bytes};
use consort_core::{PuId, PuSet};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// PUs up to which events are inherited: 0.3 ms per thread start.
const MAX_INHERITED_PUS: usize = 256;

/// Samples one program, or several processes.
#[derive(Debug)]
pub struct Sampler {
    config: SamplerConfig,
    feeds: Feeds,
    burst: Option<Burst>,
    thinning: Thinning,
    /// Records read while attaching, handed out by the next round.
    held: Batch,
}

/// Whom the rings belong to.
#[derive(Debug)]
enum Feeds {
    /// One ring per PU; the kernel attaches new threads.
    Inherited(Vec<(PuId, Feed)>),
    /// One ring per thread; [`Sampler::follow`] attaches new threads.
    PerThread(BTreeMap<u32, Feed>),
}

/// The faster events of the start.
#[derive(Debug)]
struct Burst {
    events: Vec<OwnedFd>,
    /// When the first record was seen, ns.
    began_ns: Option<u64>,
}

impl Sampler {
    /// Samples the child `pid`, which must not have called `exec` yet, and all
    /// that it will start, on the PUs that it may run on.
    ///
    /// # Errors
    /// What perf refused and what to raise.
    pub fn attach_launch(
        pid: u32,
        pus: &PuSet,
        config: SamplerConfig,
    ) -> Result<Self, SamplerError> {
        if pus.is_empty() {
            return Err(SamplerError::NoPus);
        }
        let mut sampler = Self::empty(config, pus);
        let from_exec = Follow::OffspringFromExec;
        match &sampler.feeds {
            Feeds::Inherited(_) => sampler.inherit(pid, pus, from_exec)?,
            Feeds::PerThread(_) => sampler.add_thread(pid)?,
        }
        if sampler.config.wants_burst(pus.len()) {
            sampler.start_burst(pid)?;
        }
        Ok(sampler)
    }

    /// Samples a process that runs already, with all its threads, and what they
    /// will start. With more threads times PUs than the descriptor budget allows,
    /// each thread gets one event, and new ones come in by [`Sampler::follow`].
    ///
    /// # Errors
    /// When the process is gone, perf refuses, or even one descriptor per
    /// thread is beyond the budget.
    pub fn attach_process(
        root: &Path,
        pid: u32,
        pus: &PuSet,
        config: SamplerConfig,
    ) -> Result<Self, SamplerError> {
        if pus.is_empty() {
            return Err(SamplerError::NoPus);
        }
        let tids = list(root, pid)?;
        let mut sampler = Self::empty(config, pus);
        if tids.len() > config.fd_budget {
            let (threads, budget) = (tids.len(), config.fd_budget);
            return Err(SamplerError::FdBudget { threads, budget });
        }
        if tids.len() * pus.len() > config.fd_budget {
            sampler.feeds = Feeds::PerThread(BTreeMap::new());
        }
        sampler.attach_all(root, pid, pus)?;
        Ok(sampler)
    }

    /// Whether new threads are sampled from their first instruction on.
    pub fn is_inherited(&self) -> bool {
        matches!(self.feeds, Feeds::Inherited(_))
    }

    /// Reads all rings. Call it at least every 100 ms; sooner when one of
    /// [`Sampler::poll_fds`] becomes readable.
    pub fn drain(&mut self) -> Batch {
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

    /// Attaches to threads that have appeared and lets go of those that have
    /// exited, where the kernel does not do it. Threads that cannot be sampled
    /// are left out; the number left out is returned.
    pub fn follow(&mut self, events: &[ThreadEvent]) -> usize {
        if self.is_inherited() {
            return 0;
        }
        let left_out = events.iter().filter(|e| !self.follow_one(e));
        left_out.count()
    }

    /// Descriptors that become readable when a ring is a quarter full. One whose
    /// threads have all exited reports a hang-up for ever: stop polling it then.
    pub fn poll_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.feeds.iter().map(Feed::fd)
    }

    /// CPU time of all that was sampled, threads that have exited included, ns.
    pub fn cpu_time_ns(&self) -> u64 {
        self.feeds.iter().map(Feed::cpu_time_ns).sum()
    }

    /// Descriptors held.
    pub fn fds(&self) -> usize {
        let burst = self.burst.as_ref().map_or(0, |b| b.events.len());
        self.feeds.iter().map(Feed::fds).sum::<usize>() + burst
    }

    /// Memory of all rings, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.feeds.iter().map(Feed::ring_bytes).sum()
    }

    fn empty(config: SamplerConfig, pus: &PuSet) -> Self {
        let inherited = pus.len() <= MAX_INHERITED_PUS.min(config.fd_budget);
        Self {
            config,
            feeds: match inherited {
                true => Feeds::Inherited(Vec::new()),
                false => Feeds::PerThread(BTreeMap::new()),
            },
            burst: None,
            thinning: Thinning::new(config.max_samples_per_s),
            held: Batch::default(),
        }
    }

    /// Opens the thread's events on every PU, each into that PU's ring.
    fn inherit(&mut self, tid: u32, pus: &PuSet, follow: Follow) -> Result<(), SamplerError> {
        let bytes = self.config.ring_bytes_per_pu(pus.len());
        let rate_hz = self.config.rate_hz;
        let Feeds::Inherited(feeds) = &mut self.feeds else {
            return Ok(());
        };
        for (index, pu) in pus.iter().enumerate() {
            let target = Target::ThreadOnPu { tid, pu: pu.0 };
            let opened = match feeds.get_mut(index) {
                Some((_, feed)) => feed.join(target, follow),
                None => Feed::open(target, follow, rate_hz, bytes).map(|f| feeds.push((pu, f))),
            };
            opened.map_err(|error| SamplerError::Perf { tid, error })?;
        }
        Ok(())
    }

    /// Opens one event of the thread with a ring of its own.
    fn add_thread(&mut self, tid: u32) -> Result<(), SamplerError> {
        let Feeds::PerThread(feeds) = &mut self.feeds else {
            return Ok(());
        };
        let error = |error| SamplerError::Perf { tid, error };
        if feeds.len() >= self.config.fd_budget {
            return Err(error(PerfError::NoFds));
        }
        let bytes = 2 * page_bytes();
        let target = Target::Thread { tid };
        let feed = Feed::open(target, Follow::Thread, self.config.rate_hz, bytes);
        feeds.insert(tid, feed.map_err(error)?);
        Ok(())
    }

    fn start_burst(&mut self, tid: u32) -> Result<(), SamplerError> {
        let Feeds::Inherited(feeds) = &self.feeds else {
            return Ok(());
        };
        let (follow, rate_hz) = (Follow::OffspringFromExec, self.config.burst_hz);
        let open = |(pu, feed): &(PuId, Feed)| {
            let target = Target::ThreadOnPu { tid, pu: pu.0 };
            feed.open_burst(target, follow, rate_hz)
        };
        let events: Result<_, _> = feeds.iter().map(open).collect();
        let events = events.map_err(|error| SamplerError::Perf { tid, error })?;
        let began_ns = None;
        self.burst = Some(Burst { events, began_ns });
        Ok(())
    }

    /// Attaches to the threads of a process until none is left that is neither
    /// attached nor inherited. Threads that exit meanwhile are no error.
    fn attach_all(&mut self, root: &Path, pid: u32, pus: &PuSet) -> Result<(), SamplerError> {
        let mut attached = BTreeSet::new();
        loop {
            let listed = list(root, pid)?;
            let new = listed.iter().copied().filter(|tid| !attached.contains(tid));
            let new: Vec<u32> = new.collect();
            attached.extend(self.inherited_meanwhile());
            for &tid in new.iter().filter(|tid| !attached.contains(tid)) {
                self.attach_one(tid, pus)?;
            }
            attached.extend(&new);
            if new.is_empty() {
                return Ok(());
            }
        }
    }

    fn attach_one(&mut self, tid: u32, pus: &PuSet) -> Result<(), SamplerError> {
        let attached = match self.is_inherited() {
            true => self.inherit(tid, pus, Follow::Offspring),
            false => self.add_thread(tid),
        };
        match attached {
            Err(SamplerError::Perf {
                error: PerfError::Gone,
                ..
            }) => Ok(()),
            other => other,
        }
    }

    /// Threads that were started by attached ones since the rings were last read.
    fn inherited_meanwhile(&mut self) -> Vec<u32> {
        let before = self.held.records.len();
        for feed in self.feeds.iter_mut() {
            feed.drain(&mut self.held, &mut self.thinning);
        }
        let new = &self.held.records[before..];
        let forked = |record: &Record| match record {
            Record::Fork(task) => Some(task.tid),
            _ => None,
        };
        let inherited = self.is_inherited();
        new.iter()
            .filter_map(forked)
            .filter(|_| inherited)
            .collect()
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

    /// Closes a thread's ring; what it still holds is handed out next round.
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

impl Feeds {
    fn iter(&self) -> Box<dyn Iterator<Item = &Feed> + '_> {
        match self {
            Self::Inherited(feeds) => Box::new(feeds.iter().map(|(_, feed)| feed)),
            Self::PerThread(feeds) => Box::new(feeds.values()),
        }
    }

    fn iter_mut(&mut self) -> Box<dyn Iterator<Item = &mut Feed> + '_> {
        match self {
            Self::Inherited(feeds) => Box::new(feeds.iter_mut().map(|(_, feed)| feed)),
            Self::PerThread(feeds) => Box::new(feeds.values_mut()),
        }
    }
}

fn list(root: &Path, pid: u32) -> Result<Vec<u32>, SamplerError> {
    threads_of(root, pid).map_err(|error| SamplerError::Proc { pid, error })
}
