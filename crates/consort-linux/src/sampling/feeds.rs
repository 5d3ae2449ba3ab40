//! The rings of a sampler, by whom they belong to.

use super::feed::Feed;
use consort_core::PuId;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// Whom the rings belong to.
#[derive(Debug)]
pub(super) enum Feeds {
    /// One ring per PU; the kernel attaches new threads.
    Inherited(Vec<(PuId, Feed)>),
    /// One ring per thread; [`super::Sampler::follow`] attaches new threads.
    PerThread(BTreeMap<u32, Feed>),
}

/// The faster events of the start.
#[derive(Debug)]
pub(super) struct Burst {
    pub(super) events: Vec<OwnedFd>,
    /// When the first record was seen, ns.
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
