//! One ring and the events that write into it.

use super::budget::Thinning;
use super::config::SamplerConfig;
use super::members::SampledProcesses;
use crate::perf::record::{PerfRecord, is_lifecycle_record, is_sample, kind_of, process_and_time};
use crate::perf::{FollowMode, Sideband, cpu_clock};
use crate::perf::{PerfError, PerfTarget, Ring, open};
use crate::read;
use consort_core::{PuId, PuSet};
use nix::errno::Errno;
use perf_event_open_sys::ioctls;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Divisor that gives the part of a ring, in bytes, at which the reader is woken.
const WAKE_AT_ONE_IN: usize = 4;

/// A ring and its events; the first of them owns the ring.
#[derive(Debug)]
pub(crate) struct RingFeed {
    ring: Ring,
    events: Vec<RingEvent>,
    rate_hz: u64,
    /// True if more than a quarter of the ring was in use when it was last read.
    is_crowded: bool,
}

/// One event, and the tree of processes that it was opened for.
#[derive(Debug)]
struct RingEvent {
    fd: OwnedFd,
    tree: u32,
}

impl RingFeed {
    /// Opens an event and maps a ring of up to `ring_bytes` for it.
    pub(crate) fn open(
        target: PerfTarget,
        follow: FollowMode,
        rate_hz: u64,
        ring_bytes: usize,
        tree: u32,
    ) -> Result<Self, PerfError> {
        let wakeup_bytes = u32::try_from(ring_bytes / WAKE_AT_ONE_IN).unwrap_or(u32::MAX);
        let mut attr = cpu_clock(rate_hz, follow, Sideband::Tasks, wakeup_bytes);
        let event = open(&mut attr, target, None)?;
        let ring = Ring::map_up_to(&event, ring_bytes)?;
        Ok(Self {
            ring,
            events: vec![RingEvent { fd: event, tree }],
            rate_hz,
            is_crowded: false,
        })
    }

    /// Opens an event that samples everything on a CPU once it is enabled.
    pub(super) fn open_on_pu(pu: PuId, rate_hz: u64, ring_bytes: usize) -> Result<Self, PerfError> {
        let target = PerfTarget::Pu { pu: pu.0 };
        Self::open(target, FollowMode::Everyone, rate_hz, ring_bytes, 0)
    }

    /// Turns the event that owns the ring on or off.
    pub(super) fn enable(&self, on: bool) {
        let fd = self.fd().as_raw_fd();
        // SAFETY: the descriptor is an open perf event, owned here; the requests take no pointer.
        let done = unsafe {
            match on {
                true => ioctls::ENABLE(fd, 0),
                false => ioctls::DISABLE(fd, 0),
            }
        };
        debug_assert!(done >= 0, "an open event can be turned on and off");
    }

    /// Changes the rate of the event that owns the ring, in samples per second. A CPU clock keeps a
    /// period, even if it was opened with a rate (`perf_swevent_init_hrtimer` of
    /// kernel/events/core.c).
    pub(super) fn set_rate(&self, rate_hz: u64) {
        let period_ns = 1_000_000_000 / rate_hz.max(1);
        // The request takes a pointer to the period, which the wrapper declares as a number.
        let pointer = std::ptr::from_ref(&period_ns) as u64;
        // SAFETY: the descriptor is an open perf event, owned here; the kernel only reads the
        // number that the pointer leads to, which lives until the call is over.
        let done = unsafe { ioctls::PERIOD(self.fd().as_raw_fd(), pointer) };
        debug_assert!(done >= 0, "an open event takes another period");
    }

    /// Place in the ring up to which the kernel has written.
    pub(super) fn written(&self) -> u64 {
        self.ring.written()
    }

    /// Shows each waiting record up to a place, and leaves all of them where they are.
    pub(super) fn peek(&self, head: u64, each: impl FnMut(&[u8])) {
        self.ring.peek(head, each);
    }

    /// Moves the records of members up to a place and a time into the batch, and drops those of
    /// strangers.
    pub(super) fn drain_members(
        &mut self,
        head: u64,
        until_ns: u64,
        members: &SampledProcesses,
        batch: &mut RecordBatch,
        thinning: &mut Thinning,
    ) {
        let mut bytes_read = 0;
        let walked = self.ring.drain_while(head, |bytes| {
            if let Some((pid, time_ns)) = process_and_time(bytes) {
                if time_ns > until_ns {
                    return false;
                }
                bytes_read += bytes.len();
                if members.contains(pid, time_ns) {
                    take_record(bytes, batch, thinning);
                }
            } else {
                take_record(bytes, batch, thinning);
            }
            true
        });
        self.is_crowded = bytes_read > self.ring.data_bytes() / WAKE_AT_ONE_IN;
        batch.lost += u64::from(walked.dropped_bytes > 0);
    }

    /// Returns true if more than a quarter of the ring was in use when it was last read.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Opens a further event of the same CPU that writes into this ring, for a tree of processes.
    pub(crate) fn add_event(
        &mut self,
        target: PerfTarget,
        follow: FollowMode,
        tree: u32,
    ) -> Result<(), PerfError> {
        let fd = self.open_joined(target, follow, self.rate_hz, Sideband::Tasks)?;
        self.events.push(RingEvent { fd, tree });
        Ok(())
    }

    /// Closes the events of a tree, and with them the ones that its threads have inherited. The event
    /// that owns the ring stays open, and is stopped if it belongs to the tree.
    pub(crate) fn remove_tree(&mut self, tree: u32) {
        let mut first = true;
        self.events
            .retain(|event| std::mem::replace(&mut first, false) || event.tree != tree);
        if self.events[0].tree == tree {
            // SAFETY: the descriptor is an open perf event, owned here; the request takes no
            // pointer.
            let stopped = unsafe { ioctls::DISABLE(self.events[0].fd.as_raw_fd(), 0) };
            // It fails for no reason that matters: nothing of the tree is looked at any more.
            let _ = Errno::result(stopped);
        }
    }

    /// Opens a further sampler of the same CPU that writes into this ring until
    /// the descriptor is closed.
    pub(crate) fn open_burst(
        &self,
        target: PerfTarget,
        follow: FollowMode,
        rate_hz: u64,
    ) -> Result<OwnedFd, PerfError> {
        self.open_joined(target, follow, rate_hz, Sideband::None)
    }

    fn open_joined(
        &self,
        target: PerfTarget,
        follow: FollowMode,
        rate_hz: u64,
        sideband: Sideband,
    ) -> Result<OwnedFd, PerfError> {
        let wakeup_bytes = self.ring.data_bytes() / WAKE_AT_ONE_IN;
        let wakeup_bytes = u32::try_from(wakeup_bytes).unwrap_or(u32::MAX);
        let mut attr = cpu_clock(rate_hz, follow, sideband, wakeup_bytes);
        let event = open(&mut attr, target, None)?;
        let (event_fd, ring_fd) = (event.as_raw_fd(), self.fd().as_raw_fd());
        // SAFETY: both descriptors are open perf events, owned here.
        let joined = unsafe { ioctls::SET_OUTPUT(event_fd, ring_fd) };
        Errno::result(joined)?;
        Ok(event)
    }

    /// Moves the waiting records of the ring into the batch.
    pub(crate) fn drain(&mut self, batch: &mut RecordBatch, thinning: &mut Thinning) {
        let walked = self.ring.drain(|bytes| take_record(bytes, batch, thinning));
        batch.lost += u64::from(walked.dropped_bytes > 0);
    }

    /// The descriptor that becomes readable when the ring fills up.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.events[0].fd.as_fd()
    }

    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring.data_bytes()
    }

    pub(crate) fn fds(&self) -> usize {
        self.events.len()
    }
}

/// Takes a record into the batch, unless it is a sample that is left out.
fn take_record(bytes: &[u8], batch: &mut RecordBatch, thinning: &mut Thinning) {
    if is_sample(kind_of(bytes)) && !thinning.keep_next() {
        batch.thinned += 1;
        return;
    }
    match PerfRecord::parse(bytes) {
        Ok(record) => batch.push(record),
        Err(_) => batch.lost += 1,
    }
}

/// The records of all rings in one round, and the numbers of missing ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// Records in order of time.
    pub records: Vec<PerfRecord>,
    /// CPU time that one sample of this batch stands for, ns.
    pub sample_ns: u64,
    /// Number of records that found a ring full, or were not readable.
    pub lost: u64,
    /// Number of samples left out on purpose, to stay within the sampler's budget.
    pub thinned: u64,
}

impl RecordBatch {
    /// Takes a record in: losses are counted, records that concern no thread are dropped,
    /// all others are kept.
    pub(crate) fn push(&mut self, record: PerfRecord) {
        match record {
            PerfRecord::Lost { count } => self.lost += count,
            PerfRecord::Throttle { .. } | PerfRecord::Other { .. } => {}
            kept => self.records.push(kept),
        }
    }

    /// Puts the records of all rings into one order.
    pub(crate) fn sort(&mut self) {
        self.records.sort_by_key(|r| r.time_ns().unwrap_or(0));
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        let is_sample = |r: &&PerfRecord| matches!(r, PerfRecord::Sample { .. });
        self.records.iter().filter(is_sample).count()
    }
}

// One event per CPU stays on its CPU when threads are switched and is not cloned with them, so that
// it costs programs nothing but the samples. docs/figures.md has what that is.
// The kernel allows it to root, to CAP_PERFMON, and to all at `perf_event_paranoid` 0 or less.
//
// The event of a CPU also carries the beginnings, ends, names and executable mappings of all
// processes there. Records of strangers are dropped by their process id, before they are parsed.

/// Events that sample everything on some CPUs, and the processes whose records are kept.
#[derive(Debug)]
pub(super) struct HostFeeds {
    feeds: Vec<(PuId, RingFeed)>,
    pub(super) members: SampledProcesses,
    ring_bytes: usize,
    /// Samples per second of each CPU that the events take now.
    rate_hz: u64,
    /// Start of the time with more samples, `CLOCK_MONOTONIC`, ns; 0 until a program has begun.
    burst_began_ns: Option<u64>,
    /// True while the events are on: they are off while there are no members.
    is_on: bool,
}

impl HostFeeds {
    /// Opens an event on each CPU; none of them takes samples before there are members.
    ///
    /// # Errors
    /// When perf refuses an event on a CPU that is there.
    pub(super) fn open(pus: &PuSet, config: &SamplerConfig) -> Result<Self, PerfError> {
        let mut host = Self {
            feeds: Vec::new(),
            members: SampledProcesses::default(),
            ring_bytes: config.host_ring_bytes_per_pu(pus.len()),
            rate_hz: config.rate_hz,
            burst_began_ns: None,
            is_on: false,
        };
        host.open_on(&with_online(pus))?;
        match host.feeds.is_empty() {
            true => Err(PerfError::NoSuchEvent),
            false => Ok(host),
        }
    }

    /// Opens events on CPUs that have none.
    fn open_on(&mut self, pus: &PuSet) -> Result<(), PerfError> {
        for pu in pus.iter() {
            if self.feeds.iter().any(|(there, _)| *there == pu) {
                continue;
            }
            match RingFeed::open_on_pu(pu, self.rate_hz, self.ring_bytes) {
                Ok(feed) => {
                    if self.is_on {
                        feed.enable(true);
                    }
                    self.feeds.push((pu, feed));
                }
                // It is offline, or not one that this host can have.
                Err(PerfError::NoSuchEvent | PerfError::Other(Errno::EINVAL)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Follows CPUs that come and go. An event does not come back with its CPU, so those of CPUs
    /// that are gone are closed.
    pub(super) fn follow_pus(&mut self, pus: &PuSet) {
        let pus = with_online(pus);
        self.feeds.retain(|(pu, _)| pus.contains(*pu));
        // One that is refused is tried again at the next change.
        let _ = self.open_on(&pus);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RingFeed> {
        self.feeds.iter().map(|(_, feed)| feed)
    }

    /// Samples per second of each CPU.
    pub(super) fn rate_hz(&self) -> u64 {
        self.rate_hz
    }

    /// Takes this number of samples per second of each CPU from now on.
    pub(super) fn set_rate(&mut self, rate_hz: u64) {
        if rate_hz != self.rate_hz {
            self.rate_hz = rate_hz.max(1);
            self.iter().for_each(|feed| feed.set_rate(self.rate_hz));
        }
    }

    /// Takes more samples until a program has run for a while.
    pub(super) fn begin_burst(&mut self, config: &SamplerConfig) {
        self.burst_began_ns = Some(0);
        self.set_rate(config.rate_hz + config.burst_hz);
    }

    /// Returns true while more samples are taken because a program has just begun.
    pub(super) fn is_in_burst(&self) -> bool {
        self.burst_began_ns.is_some()
    }

    /// Takes the usual number of samples once the start is over.
    pub(super) fn end_burst_if_due(&mut self, batch: &RecordBatch, config: &SamplerConfig) {
        let Some(began_ns) = self.burst_began_ns else {
            return;
        };
        let times = || batch.records.iter().filter_map(PerfRecord::time_ns);
        let began_ns = match began_ns {
            0 => times().next().unwrap_or(0),
            began_ns => began_ns,
        };
        let is_over = times().next_back() >= Some(began_ns.saturating_add(config.burst_ns));
        self.burst_began_ns = (began_ns == 0 || !is_over).then_some(began_ns);
        if self.burst_began_ns.is_none() {
            self.set_rate(config.rate_hz);
        }
    }

    /// Turns the events on or off as there are members.
    pub(super) fn switch_events(&mut self) {
        let wanted = !self.members.is_empty();
        if wanted != self.is_on {
            self.is_on = wanted;
            self.iter().for_each(|feed| feed.enable(wanted));
        }
    }

    /// Moves the members' records up to a time into a batch; later ones stay in the rings, since
    /// rings are read one after the other.
    pub(super) fn drain(
        &mut self,
        until_ns: u64,
        batch: &mut RecordBatch,
        thinning: &mut Thinning,
    ) {
        let heads: Vec<u64> = self.iter().map(RingFeed::written).collect();
        let Self { feeds, members, .. } = self;
        for ((_, feed), &head) in feeds.iter().zip(&heads) {
            feed.peek(head, |bytes| {
                let is_due = || process_and_time(bytes).is_some_and(|(_, time)| time <= until_ns);
                if is_lifecycle_record(bytes) && is_due() {
                    members.note_record(bytes);
                }
            });
        }
        members.apply();
        for ((_, feed), head) in feeds.iter_mut().zip(heads) {
            feed.drain_members(head, until_ns, members, batch, thinning);
        }
        batch.lost += members.end_round(until_ns);
    }

    /// Returns true if a ring was so full that it should be read again soon.
    pub(super) fn is_crowded(&self) -> bool {
        self.iter().any(RingFeed::is_crowded)
    }
}

/// These CPUs and all that are online: attached threads may run where Consort may not. A list of a
/// container may name others than the kernel schedules on, so that both count.
fn with_online(pus: &PuSet) -> PuSet {
    let online = read::pus(Path::new("/sys/devices/system/cpu/online"));
    online.map_or_else(|| pus.clone(), |online| online.union(pus))
}
