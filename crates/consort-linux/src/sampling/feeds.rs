//! The rings of a sampler, one per PU or one per thread.

use super::feed::RingFeed;
use super::host::HostFeeds;
use consort_core::PuId;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// Rings by their PUs or by their threads.
#[derive(Debug)]
pub(super) enum RingFeeds {
    /// One ring per PU; the kernel attaches new threads.
    Inherited(Vec<(PuId, RingFeed)>),
    /// One ring per PU for all that runs there, of which the records of members are kept.
    Host(HostFeeds),
    /// One ring per thread; [`super::Sampler::follow_threads`] attaches new threads.
    PerThread(BTreeMap<u32, RingFeed>),
}

/// The additional events of a program's start.
#[derive(Debug)]
pub(super) struct StartBurst {
    pub(super) events: Vec<OwnedFd>,
    /// Time of the first record, `CLOCK_MONOTONIC`, ns; none until there is one.
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
