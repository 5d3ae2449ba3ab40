//! Pages used last.

/// Pages that are kept: as many as a usual translation buffer of the first level.
const PAGES: usize = 64;
/// Places that are remembered, by the end of a page's number.
const PLACES: usize = 1024;

/// The pages used last.
#[derive(Debug, Clone)]
pub(super) struct RecentPages {
    pages: [u64; PAGES],
    /// Number of the use at which each was used last; those that hold nothing have 0.
    used: [u64; PAGES],
    uses: u64,
    /// Places of pages; out of date where another page is there.
    places: Box<[u8; PLACES]>,
    latest: u64,
}

impl Default for RecentPages {
    fn default() -> Self {
        Self {
            pages: [u64::MAX; PAGES],
            used: [0; PAGES],
            uses: 0,
            places: Box::new([0; PLACES]),
            latest: u64::MAX,
        }
    }
}

impl RecentPages {
    /// Uses a page. Returns true where it is among those used last.
    #[inline]
    pub(super) fn access(&mut self, page: u64) -> bool {
        page == self.latest || self.raise(page)
    }

    fn raise(&mut self, page: u64) -> bool {
        self.uses += 1;
        self.latest = page;
        let place = &mut self.places[page as usize % PLACES];
        let is_there = self.pages[usize::from(*place) % PAGES] == page;
        let known = is_there.then_some(usize::from(*place) % PAGES);
        let known = known.or_else(|| self.pages.iter().position(|held| *held == page));
        let at = known.unwrap_or_else(|| oldest(&self.used));
        *place = at as u8;
        self.pages[at] = page;
        self.used[at] = self.uses;
        known.is_some()
    }
}

/// Position of what was used longest ago.
fn oldest(used: &[u64; PAGES]) -> usize {
    let places = 0..PAGES;
    places.min_by_key(|&at| used[at]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_are_kept_in_the_order_of_use(
            uses in prop::collection::vec((0_u64..90, any::<bool>()), 1..2000),
        ) {
            let (mut pages, mut list) = (RecentPages::default(), Vec::new());
            for (number, is_far) in uses {
                // Some have the same end.
                let page = number + if is_far { PLACES as u64 } else { 0 };
                let at = list.iter().position(|held| *held == page);
                at.map(|at| list.remove(at));
                list.insert(0, page);
                list.truncate(PAGES);
                prop_assert_eq!(pages.access(page), at.is_some());
            }
        }
    }
}
