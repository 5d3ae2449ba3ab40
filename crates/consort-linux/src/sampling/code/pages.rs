//! Pages of code, kept after they were read.

use super::generations::GenerationCache;
use super::space::{CodePlace, SpaceId};
use crate::perf::page_bytes;
use std::collections::HashSet;
use std::sync::Arc;

/// One page of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CachedPage {
    pub(super) bytes: Box<[u8]>,
    /// True if the page is to be read again in the next round.
    pub(super) changeable: bool,
}

/// Pages by place, bounded: those of a file are the same for all processes that have mapped it.
#[derive(Debug)]
pub(super) struct PageCache {
    pages: GenerationCache<CodePlace, (Arc<CachedPage>, u64)>,
    page_bytes: usize,
    round: u64,
}

impl PageCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        let page_bytes = page_bytes();
        Self {
            pages: GenerationCache::new(max_bytes / page_bytes),
            page_bytes,
            round: 0,
        }
    }

    pub(super) fn next_round(&mut self) {
        self.round += 1;
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Address of the page that holds an address.
    pub(super) fn start_of(&self, address: u64) -> u64 {
        address & !(self.page_bytes as u64 - 1)
    }

    /// The page that begins at a place, unless it may have changed since it was read.
    pub(super) fn get(&mut self, start: CodePlace) -> Option<Arc<CachedPage>> {
        let (page, round) = self.pages.get(&start)?;
        (!page.changeable || round == self.round).then_some(page)
    }

    /// Drops the pages of all spaces but these.
    pub(super) fn retain_spaces(&mut self, spaces: &HashSet<SpaceId>) {
        self.pages.retain(|place| spaces.contains(&place.space));
    }

    pub(super) fn put(&mut self, start: CodePlace, page: CachedPage) -> Arc<CachedPage> {
        let page = Arc::new(page);
        self.pages.put(start, (page.clone(), self.round));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: CodePlace = CodePlace {
        space: SpaceId(1),
        address: 0,
    };

    #[test]
    fn changeable_pages_live_for_one_round() {
        for changeable in [false, true] {
            let mut pages = PageCache::new(1 << 20);
            let bytes = vec![0; pages.page_bytes].into();
            pages.put(START, CachedPage { bytes, changeable });
            assert!(pages.get(START).is_some());
            pages.next_round();
            assert_eq!(pages.get(START).is_none(), changeable);
        }
    }
}
