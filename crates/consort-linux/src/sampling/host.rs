//! Sampling of everything that runs on the PUs, with the records of strangers left out.
//!
//! One event per PU stays on its PU when threads are switched and is not cloned with them, so that
//! it costs programs nothing but the samples. docs/measurements/overhead.md has pairs of both kinds.
//! The kernel allows it to root, to CAP_PERFMON, and to all at `perf_event_paranoid` 0 or less.
//!
//! The event of a PU also carries the beginnings, ends, names and executable mappings of all
//! processes there. Records of strangers are dropped by their process id, before they are parsed.

use super::config::SamplerConfig;
use super::feed::{RecordBatch, RingFeed};
use super::members::SampledProcesses;
use super::thinning::Thinning;
use crate::perf::PerfError;
use crate::perf::record::{PerfRecord, is_lifecycle_record, process_and_time};
use crate::read;
use consort_core::{PuId, PuSet};
use nix::errno::Errno;
use std::path::Path;

/// Events that sample everything on some PUs, and the processes whose records are kept.
#[derive(Debug)]
pub(super) struct HostFeeds {
    feeds: Vec<(PuId, RingFeed)>,
    pub(super) members: SampledProcesses,
    ring_bytes: usize,
    /// Samples per second of each PU that the events take now.
    rate_hz: u64,
    /// Start of the time with more samples, `CLOCK_MONOTONIC`, ns; 0 until a program has begun.
    burst_began_ns: Option<u64>,
    /// True while the events are on: they are off while there are no members.
    is_on: bool,
}

impl HostFeeds {
    /// Opens an event on each PU; none of them takes samples before there are members.
    ///
    /// # Errors
    /// When perf refuses an event on a PU that is there.
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

    /// Opens events on PUs that have none.
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

    /// Follows PUs that come and go. An event does not come back with its PU, so those of PUs that
    /// are gone are closed.
    pub(super) fn follow_pus(&mut self, pus: &PuSet) {
        let pus = with_online(pus);
        self.feeds.retain(|(pu, _)| pus.contains(*pu));
        // One that is refused is tried again at the next change.
        let _ = self.open_on(&pus);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RingFeed> {
        self.feeds.iter().map(|(_, feed)| feed)
    }

    /// Samples per second of each PU.
    pub(super) fn rate_hz(&self) -> u64 {
        self.rate_hz
    }

    /// Takes this number of samples per second of each PU from now on.
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

/// These PUs and all that are online: attached threads may run where Consort may not. A list of a
/// container may name others than the kernel schedules on, so that both count.
fn with_online(pus: &PuSet) -> PuSet {
    let online = read::pus(Path::new("/sys/devices/system/cpu/online"));
    online.map_or_else(|| pus.clone(), |online| online.union(pus))
}
