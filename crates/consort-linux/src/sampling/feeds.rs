//! The rings of a sampler, one per PU or one per thread.

use super::feed::Feed;
use consort_core::PuId;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// Rings by their PUs or by their threads.
#[derive(Debug)]
pub(super) enum Feeds {
    /// One ring per PU; the kernel attaches new threads.
    Inherited(Vec<(PuId, Feed)>),
    /// One ring per thread; [`super::Sampler::follow`] attaches new threads.
    PerThread(BTreeMap<u32, Feed>),
}

/// The additional events of a program's start.
#[derive(Debug)]
pub(super) struct Burst {
    pub(super) events: Vec<OwnedFd>,
    /// Time of the first record, `CLOCK_MONOTONIC`, ns; none until there is one.
    pub(super) began_ns: Option<u64>,
}

impl Feeds {
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &Feed> + '_> {
        match self {
            Self::Inherited(feeds) => Box::new(feeds.iter().map(|(_, feed)| feed)),
            Self::PerThread(feeds) => Box::new(feeds.values()),
        }
    }

    pub(super) fn iter_mut(&mut self) -> Box<dyn Iterator<Item = &mut Feed> + '_> {
        match self {
            Self::Inherited(feeds) => Box::new(feeds.iter_mut().map(|(_, feed)| feed)),
            Self::PerThread(feeds) => Box::new(feeds.values_mut()),
        }
    }
}
