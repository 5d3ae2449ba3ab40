//! Opening of a sampler's events: for a program that is about to start, and for processes that run
//! already.

use super::budget::{EventDuty, SamplerAccount, Thinning};
use super::config::{SamplerConfig, SamplingScope};
use super::feed::{HostFeeds, RecordBatch, RingFeed};
use super::sampler::{RingFeeds, Sampler, SamplerError, StartBurst, monotonic_ns};
use crate::discovery::{process_tree, threads_of};
use crate::perf::FollowMode;
use crate::perf::record::PerfRecord;
use crate::perf::{PerfError, PerfTarget, page_bytes};
use consort_core::{PuId, PuSet};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Most CPUs on which events are inherited: with so many, each thread start takes 0.3 ms more.
const MAX_INHERITED_PUS: usize = 256;

impl Sampler {
    /// Samples the child `pid`, which must not have called `exec` yet, and all
    /// that it will start, on the CPUs that it may run on.
    ///
    /// # Errors
    /// When `pus` is empty, or perf refuses an event; the error says what to raise.
    pub fn attach_launch(
        pid: u32,
        pus: &PuSet,
        config: SamplerConfig,
    ) -> Result<Self, SamplerError> {
        let mut sampler = Self::without_trees(pus, config)?;
        sampler.trees.insert(pid);
        let from_exec = FollowMode::OffspringFromExec;
        match &mut sampler.feeds {
            RingFeeds::Host(host) => {
                // Events on CPUs open whether or not the process is there.
                if let Err(Errno::ESRCH) = kill(Pid::from_raw(pid as i32), None) {
                    let error = PerfError::Gone;
                    return Err(SamplerError::Perf { tid: pid, error });
                }
                host.members.await_exec(pid, pid);
                if sampler.config.burst_hz > 0 {
                    host.begin_burst(&sampler.config);
                }
                host.switch_events();
                return Ok(sampler);
            }
            RingFeeds::Inherited(_) => sampler.inherit(pid, pus, from_exec)?,
            RingFeeds::PerThread(_) => sampler.add_thread(pid)?,
        }
        if sampler.config.wants_burst(pus.len()) {
            sampler.start_burst(pid)?;
        }
        Ok(sampler)
    }

    /// Samples a process that runs already, with all its threads and all that they will start. With
    /// more threads times CPUs than the descriptor budget allows, each thread gets one event, and
    /// new ones come in by [`Sampler::follow_threads`].
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
        let mut sampler = Self::without_trees(pus, config)?;
        let tids = list(root, pid)?;
        if let RingFeeds::Host(_) = sampler.feeds {
            sampler.admit(pid, pid);
            return Ok(sampler);
        }
        if tids.len() > config.fd_budget {
            let (threads, budget) = (tids.len(), config.fd_budget);
            return Err(SamplerError::FdBudget { threads, budget });
        }
        if tids.len() * pus.len() > config.fd_budget {
            sampler.feeds = RingFeeds::PerThread(BTreeMap::new());
        }
        sampler.attach_threads(root, pid, pus)?;
        Ok(sampler)
    }

    /// Samples the tree of processes below `pid`, which may run already.
    ///
    /// # Errors
    /// Those of [`Sampler::attach_process`].
    pub fn attach_tree(
        root: &Path,
        pid: u32,
        pus: &PuSet,
        config: SamplerConfig,
    ) -> Result<Self, SamplerError> {
        let mut sampler = Self::without_trees(pus, config)?;
        sampler.join_tree(root, pid, pus)?;
        Ok(sampler)
    }

    /// A sampler that samples nothing until a tree [joins](Sampler::join_tree).
    ///
    /// # Errors
    /// [`SamplerError::NoPus`].
    pub fn without_trees(pus: &PuSet, config: SamplerConfig) -> Result<Self, SamplerError> {
        if pus.is_empty() {
            return Err(SamplerError::NoPus);
        }
        let full = config;
        let config = full.with_watch_rates();
        let host_wide = config.reach == SamplingScope::Host && pus.len() <= config.fd_budget;
        let host = host_wide.then(|| HostFeeds::open(pus, &config));
        let inherited = pus.len() <= MAX_INHERITED_PUS.min(config.fd_budget);
        Ok(Self {
            config,
            full,
            feeds: match (host, inherited) {
                (Some(Ok(host)), _) => RingFeeds::Host(host),
                (_, true) => RingFeeds::Inherited(Vec::new()),
                (_, false) => RingFeeds::PerThread(BTreeMap::new()),
            },
            burst: None,
            thinning: Thinning::new(config.max_samples_per_s),
            upkeep: SamplerAccount::default(),
            held: RecordBatch::default(),
            spare: Vec::new(),
            tree: 0,
            trees: BTreeSet::new(),
            duty: None,
            is_open: true,
        })
    }

    /// Opens events on threads only as long as they cost little; call [`Sampler::apply_duty`] often.
    pub fn limit_event_cost(&mut self) {
        if !self.is_host_wide() {
            self.duty = Some(EventDuty::begin(monotonic_ns()));
        }
    }

    /// Samples one more tree of processes. Processes that start between the look at `/proc` and the
    /// opening of events may be missed; they are found by scans, and not sampled.
    ///
    /// # Errors
    /// When the process is gone, perf refuses, or descriptors run out.
    pub fn join_tree(&mut self, root: &Path, pid: u32, pus: &PuSet) -> Result<(), SamplerError> {
        self.tree = pid;
        self.trees.insert(pid);
        if !self.is_open {
            return Ok(());
        }
        let error = |error| SamplerError::Proc { pid, error };
        // Before `/proc` is read, so that records show what starts meanwhile.
        let since_ns = monotonic_ns();
        let tree = process_tree(root, &BTreeSet::from([pid])).map_err(error)?;
        if let RingFeeds::Host(host) = &mut self.feeds {
            for process in tree {
                host.members.admit(process, pid, since_ns);
            }
            host.switch_events();
            return Ok(());
        }
        let lists = tree.iter().filter_map(|&pid| list(root, pid).ok());
        let threads: usize = lists.map(|tids| tids.len()).sum();
        let per_thread = if self.is_inherited() { pus.len() } else { 1 };
        if self.fds() + threads * per_thread > self.config.fd_budget {
            let budget = self.config.fd_budget;
            return Err(SamplerError::FdBudget { threads, budget });
        }
        for process in tree {
            match self.attach_threads(root, process, pus) {
                // All but the root may come and go.
                Err(SamplerError::Proc { .. }) if process != pid => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Stops sampling a tree that has [joined](Sampler::join_tree).
    pub fn leave_tree(&mut self, pid: u32) {
        self.trees.remove(&pid);
        if let RingFeeds::Host(host) = &mut self.feeds {
            host.members.dismiss(pid);
            host.switch_events();
        }
        self.feeds
            .own_feeds_mut()
            .for_each(|feed| feed.remove_tree(pid));
    }

    /// Opens the thread's events on every CPU, each into that CPU's ring.
    fn inherit(&mut self, tid: u32, pus: &PuSet, follow: FollowMode) -> Result<(), SamplerError> {
        let bytes = self.config.ring_bytes_per_pu(pus.len());
        let (rate_hz, tree) = (self.config.rate_hz, self.tree);
        let RingFeeds::Inherited(feeds) = &mut self.feeds else {
            return Ok(());
        };
        for (index, pu) in pus.iter().enumerate() {
            let target = PerfTarget::ThreadOnPu { tid, pu: pu.0 };
            let opened = match feeds.get_mut(index) {
                Some((_, feed)) => feed.add_event(target, follow, tree),
                None => RingFeed::open(target, follow, rate_hz, bytes, tree)
                    .map(|f| feeds.push((pu, f))),
            };
            opened.map_err(|error| SamplerError::Perf { tid, error })?;
        }
        Ok(())
    }

    /// Opens one event of the thread with a ring of its own.
    pub(super) fn add_thread(&mut self, tid: u32) -> Result<(), SamplerError> {
        let RingFeeds::PerThread(feeds) = &mut self.feeds else {
            return Ok(());
        };
        let error = |error| SamplerError::Perf { tid, error };
        if feeds.len() >= self.config.fd_budget {
            return Err(error(PerfError::NoFds));
        }
        let bytes = 4 * page_bytes();
        let target = PerfTarget::Thread { tid };
        let feed = RingFeed::open(
            target,
            FollowMode::Thread,
            self.config.rate_hz,
            bytes,
            self.tree,
        );
        feeds.insert(tid, feed.map_err(error)?);
        Ok(())
    }

    fn start_burst(&mut self, tid: u32) -> Result<(), SamplerError> {
        let RingFeeds::Inherited(feeds) = &self.feeds else {
            return Ok(());
        };
        let (follow, rate_hz) = (FollowMode::OffspringFromExec, self.config.burst_hz);
        let open = |(pu, feed): &(PuId, RingFeed)| {
            let target = PerfTarget::ThreadOnPu { tid, pu: pu.0 };
            feed.open_burst(target, follow, rate_hz)
        };
        let events: Result<_, _> = feeds.iter().map(open).collect();
        let events = events.map_err(|error| SamplerError::Perf { tid, error })?;
        let began_ns = None;
        self.burst = Some(StartBurst { events, began_ns });
        Ok(())
    }

    /// Attaches to the threads of a process until none is left that is neither
    /// attached nor inherited. Threads that exit meanwhile are no error.
    fn attach_threads(&mut self, root: &Path, pid: u32, pus: &PuSet) -> Result<(), SamplerError> {
        let mut attached = BTreeSet::new();
        loop {
            let listed = list(root, pid)?;
            let new = listed.iter().copied().filter(|tid| !attached.contains(tid));
            let new: Vec<u32> = new.collect();
            attached.extend(self.inherited_meanwhile());
            for &tid in new.iter().filter(|tid| !attached.contains(tid)) {
                self.attach_thread(tid, pus)?;
            }
            attached.extend(&new);
            if new.is_empty() {
                return Ok(());
            }
        }
    }

    fn attach_thread(&mut self, tid: u32, pus: &PuSet) -> Result<(), SamplerError> {
        let attached = match self.is_inherited() {
            true => self.inherit(tid, pus, FollowMode::Offspring),
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
        for feed in self.feeds.own_feeds_mut() {
            feed.drain(&mut self.held, &mut self.thinning);
        }
        let new = &self.held.records[before..];
        let forked = |record: &PerfRecord| match record {
            PerfRecord::Fork(task) => Some(task.tid),
            _ => None,
        };
        let inherited = self.is_inherited();
        new.iter()
            .filter_map(forked)
            .filter(|_| inherited)
            .collect()
    }
}

fn list(root: &Path, pid: u32) -> Result<Vec<u32>, SamplerError> {
    threads_of(root, pid).map_err(|error| SamplerError::Proc { pid, error })
}
