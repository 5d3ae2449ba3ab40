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
    rate_hz: u64,
    /// CPU time that closed events had counted, ns.
    closed_ns: u64,
}

/// One event, and the tree of processes that it was opened for.
#[derive(Debug)]
struct Event {
    fd: OwnedFd,
    tree: u32,
}

impl Feed {
    /// Opens an event and maps a ring of up to `ring_bytes` for it.
    pub(crate) fn open(
        target: Target,
        follow: Follow,
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
            events: vec![Event { fd: event, tree }],
            rate_hz,
            closed_ns: 0,
        })
    }

    /// Opens a further event of the same PU that writes into this ring, for a tree of processes.
    pub(crate) fn join(
        &mut self,
        target: Target,
        follow: Follow,
        tree: u32,
    ) -> Result<(), PerfError> {
        let fd = self.open_joined(target, follow, self.rate_hz, Sideband::Tasks)?;
        self.events.push(Event { fd, tree });
        Ok(())
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
            // SAFETY: the descriptor is an open perf event, owned here; the request takes no
            // pointer.
            let stopped = unsafe { ioctls::DISABLE(self.events[0].fd.as_raw_fd(), 0) };
            // It fails for no reason that matters: nothing of the tree is looked at any more.
            let _ = Errno::result(stopped);
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
        self.open_joined(target, follow, rate_hz, Sideband::None)
    }

    fn open_joined(
        &self,
        target: Target,
        follow: Follow,
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
        self.events.len()
    }
}

/// Reads an event's count: nanoseconds for a CPU clock, children included.
fn read_count(event: &OwnedFd) -> Option<u64> {
    let mut bytes = [0; 8];
    let len = nix::unistd::read(event, &mut bytes).ok()?;
    (len == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}
