//! One ring and the events that write into it.

use super::batch::Batch;
use super::thinning::Thinning;
use crate::perf::attr::{Follow, Sideband, cpu_clock};
use crate::perf::record::{Record, is_sample, kind_of};
use crate::perf::{PerfError, Ring, Target, open};
use nix::errno::Errno;
use perf_event_open_sys::ioctls;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Divisor that gives the part of a ring, in bytes, at which the reader is woken.
const WAKE_AT_ONE_IN: usize = 4;

/// A ring and its events; the first of them owns the ring.
#[derive(Debug)]
pub(crate) struct Feed {
    ring: Ring,
    events: Vec<Event>,
    rate: Rate,
    /// CPU time that closed events had counted, ns.
    closed_ns: u64,
}

/// Samples of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Samples per second of CPU time.
    pub(crate) hz: u64,
    /// True where events of their own take them, so that they can rest while the others go on to
    /// count and to tell of threads.
    pub(crate) can_rest: bool,
}

/// The events of one tree of processes.
#[derive(Debug)]
struct Event {
    /// The one that counts, and tells of threads; it samples too where none rests.
    fd: OwnedFd,
    /// The one that samples and can rest.
    sampling: Option<OwnedFd>,
    tree: u32,
}

impl Event {
    fn fds(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.fd).chain(&self.sampling)
    }
}

impl Feed {
    /// Opens an event and maps a ring of up to `ring_bytes` for it.
    pub(crate) fn open(
        target: Target,
        follow: Follow,
        rate: Rate,
        ring_bytes: usize,
        tree: u32,
    ) -> Result<Self, PerfError> {
        let wakeup_bytes = u32::try_from(ring_bytes / WAKE_AT_ONE_IN).unwrap_or(u32::MAX);
        let mut attr = cpu_clock(rate.of_counting(), follow, Sideband::Tasks, wakeup_bytes);
        let fd = open(&mut attr, target, None)?;
        let ring = Ring::map_up_to(&fd, ring_bytes)?;
        let sampling = None;
        let mut feed = Self {
            ring,
            events: vec![Event { fd, sampling, tree }],
            rate,
            closed_ns: 0,
        };
        feed.events[0].sampling = feed.open_sampling(target, follow)?;
        Ok(feed)
    }

    /// Opens a further event of the same PU that writes into this ring, for a tree of processes.
    pub(crate) fn join(
        &mut self,
        target: Target,
        follow: Follow,
        tree: u32,
    ) -> Result<(), PerfError> {
        let fd = self.open_joined(target, follow, self.rate.of_counting(), Sideband::Tasks)?;
        let sampling = self.open_sampling(target, follow)?;
        self.events.push(Event { fd, sampling, tree });
        Ok(())
    }

    fn open_sampling(&self, target: Target, follow: Follow) -> Result<Option<OwnedFd>, PerfError> {
        let rate = self.rate;
        let opened = (rate.can_rest).then(|| self.open_burst(target, follow, rate.hz));
        opened.transpose()
    }

    /// Lets the samples that can rest do so, or go on, in all threads that the events follow.
    pub(crate) fn set_sampling(&self, goes_on: bool) {
        for event in self.events.iter().filter_map(|e| e.sampling.as_ref()) {
            switch(event, goes_on);
        }
    }

    /// Closes the events of a tree, and with them those that its threads have inherited. The event
    /// that owns the ring stays open, and is stopped if it belongs to the tree.
    pub(crate) fn leave(&mut self, tree: u32) {
        let closed = self
            .events
            .iter()
            .skip(1)
            .filter(|event| event.tree == tree);
        self.closed_ns += closed
            .filter_map(|event| read_count(&event.fd))
            .sum::<u64>();
        let mut first = true;
        self.events
            .retain(|event| std::mem::replace(&mut first, false) || event.tree != tree);
        if self.events[0].tree == tree {
            switch(&self.events[0].fd, false);
            self.events[0].sampling = None;
        }
    }

    /// Opens a further sampler of the same PU that writes into this ring until
    /// the descriptor is closed.
    pub(crate) fn open_burst(
        &self,
        target: Target,
        follow: Follow,
        rate_hz: u64,
    ) -> Result<OwnedFd, PerfError> {
        self.open_joined(target, follow, Some(rate_hz), Sideband::None)
    }

    fn open_joined(
        &self,
        target: Target,
        follow: Follow,
        rate_hz: Option<u64>,
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
    pub(crate) fn drain(&mut self, batch: &mut Batch, thinning: &mut Thinning) {
        let walked = self.ring.drain(|bytes| {
            if is_sample(kind_of(bytes)) && !thinning.keep() {
                batch.thinned += 1;
                return;
            }
            match Record::parse(bytes) {
                Ok(record) => batch.push(record),
                Err(_) => batch.lost += 1,
            }
        });
        batch.lost += u64::from(walked.dropped_bytes > 0);
    }

    /// CPU time of all threads that the events followed, ns.
    pub(crate) fn cpu_time_ns(&self) -> u64 {
        let open = self.events.iter();
        let open_ns: u64 = open.filter_map(|event| read_count(&event.fd)).sum();
        open_ns + self.closed_ns
    }

    /// The descriptor that becomes readable when the ring fills up.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.events[0].fd.as_fd()
    }

    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring.data_bytes()
    }

    pub(crate) fn fds(&self) -> usize {
        self.events.iter().flat_map(Event::fds).count()
    }
}

impl Rate {
    /// A rate of samples that never rest.
    pub(crate) fn steady(hz: u64) -> Self {
        let can_rest = false;
        Self { hz, can_rest }
    }

    /// The rate of the event that counts.
    fn of_counting(self) -> Option<u64> {
        (!self.can_rest).then_some(self.hz)
    }
}

/// Stops an event in all threads that have inherited it, or lets it go on.
fn switch(event: &OwnedFd, goes_on: bool) {
    let fd = event.as_raw_fd();
    // SAFETY: the descriptor is an open perf event, borrowed here; the requests take no pointer.
    let switched = unsafe {
        match goes_on {
            true => ioctls::ENABLE(fd, 0),
            false => ioctls::DISABLE(fd, 0),
        }
    };
    // It fails for no reason that matters: a thread that is gone is not sampled either way.
    let _ = Errno::result(switched);
}

/// Reads an event's count: nanoseconds for a CPU clock, children included.
fn read_count(event: &OwnedFd) -> Option<u64> {
    let mut bytes = [0; 8];
    let len = nix::unistd::read(event, &mut bytes).ok()?;
    (len == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}
