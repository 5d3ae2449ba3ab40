//! Misses of set-associative caches of several sizes at once.
//!
//! Caches of equally large sets whose numbers are powers of two include each other under LRU: the
//! lines of a set of the larger one all fall into one set of the smaller one (Hill and Smith, IEEE
//! Transactions on Computers 38(12), 1989). What was used last in its set of one size was therefore
//! used last in its set of every larger one, and most accesses end at the first set.

/// Sizes, bytes: 8 KiB to 2 MiB.
pub const SET_CAPACITIES: [u64; 9] = {
    let mut sizes = [0; 9];
    let mut i = 0;
    while i < 9 {
        sizes[i] = 8192 << i;
        i += 1;
    }
    sizes
};

/// Misses at each of [`SET_CAPACITIES`].
pub type SetMisses = [u64; SET_CAPACITIES.len()];

/// Caches with lines of 64 bytes in sets of `WAYS`, each set in the order of last use.
#[derive(Debug, Clone)]
pub(super) struct SetCaches<const WAYS: usize> {
    sizes: Vec<Vec<[u64; WAYS]>>,
    counts: bool,
    misses: SetMisses,
    /// The next line that was brought last, and the number of sizes that lacked it.
    next: (u64, usize),
    /// Lines used right after they were brought as next lines, and were missing before.
    late: SetMisses,
}

impl<const WAYS: usize> Default for SetCaches<WAYS> {
    fn default() -> Self {
        let sets = |bytes: u64| vec![[u64::MAX; WAYS]; bytes as usize / 64 / WAYS];
        Self {
            sizes: SET_CAPACITIES.map(sets).into(),
            counts: true,
            misses: [0; SET_CAPACITIES.len()],
            next: (u64::MAX, 0),
            late: [0; SET_CAPACITIES.len()],
        }
    }
}

impl<const WAYS: usize> SetCaches<WAYS> {
    /// Lets the following accesses count, or only move lines.
    pub(super) const fn set_counting(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Misses so far.
    pub(super) const fn misses(&self) -> SetMisses {
        self.misses
    }

    /// Lines so far that were used right after they were brought as next lines.
    pub(super) const fn late(&self) -> SetMisses {
        self.late
    }

    /// Uses a line.
    #[inline]
    pub(super) fn access(&mut self, line: u64) {
        let missed = self.touch(line);
        if self.counts {
            self.misses[..missed]
                .iter_mut()
                .for_each(|misses| *misses += 1);
        }
    }

    /// Uses a line and brings the one behind it.
    pub(super) fn access_with_next(&mut self, line: u64) {
        let (brought, missed) = self.next;
        if self.counts && brought == line {
            self.late[..missed].iter_mut().for_each(|late| *late += 1);
        }
        self.access(line);
        let next = line.wrapping_add(1);
        self.next = (next, self.touch(next));
    }

    /// Uses a line. Returns how many of the sizes, from the smallest, lack it.
    fn touch(&mut self, line: u64) -> usize {
        let mut missed = 0;
        for sets in &mut self.sizes {
            let number = line as usize & (sets.len() - 1);
            let set = &mut sets[number];
            if set[0] == line {
                break;
            }
            let at = set.iter().position(|&held| held == line);
            set[..=at.unwrap_or(WAYS - 1)].rotate_right(1);
            set[0] = line;
            missed += usize::from(at.is_none());
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn misses(lines: impl Iterator<Item = u64>) -> SetMisses {
        let mut caches = SetCaches::<4>::default();
        lines.for_each(|line| caches.access(line));
        caches.misses()
    }

    #[test]
    fn lines_of_one_set_miss_in_large_caches() {
        // Eight lines 64 KiB apart, again and again: up to 256 KiB all are in one set of four lines,
        // at 512 KiB in two sets of four, so that they stay.
        let missed = misses((0..8000).map(|i| i % 8 * 1024));
        assert_eq!(missed[..6], [8000; 6]);
        assert_eq!(missed[6..], [8; 3]);
    }

    #[test]
    fn neighbours_fill_all_sets() {
        let missed = misses((0..128_000).map(|i| i % 128));
        assert_eq!(missed, [128; 9]);
    }

    #[test]
    fn lines_brought_in_vain_take_room() {
        // 96 lines, every third of a region: alone they fit 128 lines, with the ones behind them not.
        let mut caches = SetCaches::<4>::default();
        for i in 0..96_000 {
            caches.access_with_next(i % 96 * 3);
        }
        let missed = caches.misses();
        assert!(missed[0] > 30_000, "{missed:?}");
        assert_eq!(missed[1..], [96; 8]);
        assert_eq!(caches.late(), [0; 9]);
    }

    #[test]
    fn next_lines_are_late_if_used_at_once() {
        // Pairs of lines in a region that no size holds: the second of each is on its way.
        let mut caches = SetCaches::<4>::default();
        for pair in 0..40_000 {
            caches.access_with_next(4 * pair);
            caches.access_with_next(4 * pair + 1);
        }
        assert_eq!((caches.misses(), caches.late()), ([40_000; 9], [40_000; 9]));
    }

    proptest! {
        #[test]
        fn larger_caches_miss_no_more(lines in prop::collection::vec(0_u64..4000, 1..3000)) {
            let missed = misses(lines.into_iter().map(|line| line * line));
            prop_assert!(missed.is_sorted_by(|small, large| small >= large), "{missed:?}");
        }
    }
}
