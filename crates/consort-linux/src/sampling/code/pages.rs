//! Pages of code that were read.

use super::generations::Generations;
use super::space::SpaceId;
use crate::perf::page_bytes;
use std::ops::Range;
use std::sync::Arc;

/// One page of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) start: u64,
    pub(super) bytes: Box<[u8]>,
    /// Whether it is to be read again in the next round.
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

    pub(super) fn put(&mut self, space: SpaceId, page: Page) -> Arc<Page> {
        let page = Arc::new(page);
        let entry = (page.clone(), self.round);
        self.pages.put((space, page.start), entry);
        page
    }

    /// Drops the pages of a range of addresses.
    pub(super) fn forget(&mut self, space: SpaceId, range: Range<u64>) {
        let first = self.start_of(range.start);
        let pages = (range.end.saturating_sub(first)).div_ceil(self.page_bytes as u64);
        if pages > self.pages.len() as u64 {
            let inside = |start: u64| start >= first && start < range.end;
            self.pages
                .retain(|&(s, start)| s != space || !inside(start));
            return;
        }
        for page in 0..pages {
            let start = first + page * self.page_bytes as u64;
            self.pages.remove(&(space, start));
        }
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

    #[test]
    fn a_mapping_forgets_what_it_covers_and_no_more() {
        let size = page_bytes() as u64;
        for range in [size..2 * size, size..size + 1, size + 1..size + 2] {
            let mut pages = pages_with(false, &[0, size, 2 * size]);
            pages.forget(SPACE, range);
            let left = [0, size, 2 * size].map(|at| pages.get(SPACE, at).is_some());
            assert_eq!(left, [true, false, true]);
        }
        let mut pages = pages_with(false, &[0, size]);
        pages.forget(SPACE, 0..u64::MAX);
        assert!(pages.get(SPACE, 0).is_none() && pages.get(SPACE, size).is_none());
    }
}
