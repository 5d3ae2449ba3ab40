//! Pages of code, kept after they were read.

use super::generations::Generations;
use super::space::SpaceId;
use crate::perf::page_bytes;
use std::collections::HashSet;
use std::sync::Arc;

/// One page of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) start: u64,
    pub(super) bytes: Box<[u8]>,
    /// True if the page is to be read again in the next round.
    pub(super) changeable: bool,
}

impl Page {
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Pages by address space and address, bounded.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Generations<(SpaceId, u64), (Arc<Page>, u64)>,
    page_bytes: usize,
    round: u64,
}

impl Pages {
    pub(super) fn new(max_bytes: usize) -> Self {
        let page_bytes = page_bytes();
        Self {
            pages: Generations::new(max_bytes / page_bytes),
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

    pub(super) fn start_of(&self, address: u64) -> u64 {
        address & !(self.page_bytes as u64 - 1)
    }

    /// The page that holds an address, unless it may have changed since it was read.
    pub(super) fn get(&mut self, space: SpaceId, address: u64) -> Option<Arc<Page>> {
        let key = (space, self.start_of(address));
        let (page, round) = self.pages.get(&key)?;
        (!page.changeable || round == self.round).then_some(page)
    }

    /// Drops the pages of all spaces but these.
    pub(super) fn keep(&mut self, spaces: &HashSet<SpaceId>) {
        self.pages.retain(|(space, _)| spaces.contains(space));
    }

    pub(super) fn put(&mut self, space: SpaceId, page: Page) -> Arc<Page> {
        let page = Arc::new(page);
        let entry = (page.clone(), self.round);
        self.pages.put((space, page.start), entry);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(1);

    fn pages_with(changeable: bool, starts: &[u64]) -> Pages {
        let mut pages = Pages::new(1 << 20);
        for &start in starts {
            let bytes = vec![0; pages.page_bytes].into();
            pages.put(
                SPACE,
                Page {
                    start,
                    bytes,
                    changeable,
                },
            );
        }
        pages
    }

    #[test]
    fn changeable_pages_live_for_one_round() {
        for changeable in [false, true] {
            let mut pages = pages_with(changeable, &[0]);
            assert!(pages.get(SPACE, 5).is_some());
            pages.next_round();
            assert_eq!(pages.get(SPACE, 5).is_none(), changeable);
        }
    }
}
