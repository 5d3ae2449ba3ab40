//! Caches, prefetching and pages.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use consort_ops::{Op, OpKind};

use super::PartialTally;
use super::sets::{SetCaches, SetMisses};
use super::stack::{CapacityCounts, LruStack, MultiplyHasher, SIZES};

/// Size whose misses count as long, as an index of [`super::CAPACITIES`]: 1 MiB, about the size of
/// a core's own caches.
pub(crate) const LONG: usize = 8;
/// Size whose misses train the prefetcher: 32 KiB.
const TRAINING: usize = 3;
/// Size that a translation buffer of [`RecentPages`] covers, and a usual L2: 256 KiB.
const REACH: usize = 6;
const PAGE_SHIFT: u32 = 12;
const LINE_SHIFT: u32 = 6;
/// Of a page in a stack whose smallest size then holds as many pages as the first of [`PAGE_COUNTS`].
const FEWEST_PAGES_SHIFT: u32 = 8;

/// Numbers of pages for which loads from other pages are counted.
pub const PAGE_COUNTS: [u64; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];

/// Streams that the model prefetcher follows, how many lines it runs ahead, and how many lines it
/// keeps.
const STREAMS: usize = 16;
const AHEAD: u64 = 8;
const KEPT: usize = 1024;

/// Number of the line of 64 bytes that an address lies in.
#[must_use]
pub const fn line_of(address: u64) -> u64 {
    address >> LINE_SHIFT
}

/// Meter of a program's accesses: caches, prefetching and translation.
#[derive(Debug, Clone)]
pub struct MemoryMeter {
    data: LruStack,
    data_128: LruStack,
    code: LruStack,
    code_128: LruStack,
    data_sets: (SetCaches<4>, SetCaches<8>),
    code_sets: (SetCaches<4>, SetCaches<8>),
    /// The same with the next line brought along.
    code_sets_ahead: (SetCaches<4>, SetCaches<8>),
    code_line: u64,
    code_ahead: NextLineMisses,
    pages: RecentPages,
    page_stack: LruStack,
    prefetcher: StreamPrefetcher,
    counts: bool,
    figures: MissEvents,
}

/// Raw counts of [`MemoryMeter`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryMeterCounts {
    data: CapacityCounts,
    data_128: CapacityCounts,
    code: CapacityCounts,
    code_128: CapacityCounts,
    code_ahead: NextLineMisses,
    pages: CapacityCounts,
    data_sets: [SetMisses; 2],
    code_sets: [SetMisses; 2],
    code_sets_ahead: [SetMisses; 2],
    late_code_sets: [SetMisses; 2],
    events: MissEvents,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct MissEvents {
    /// Misses of 256 KiB, and how many of them the prefetcher had brought.
    near: u64,
    near_covered: u64,
    long: u64,
    covered: u64,
    in_vain: u64,
    beyond_reach: u64,
    new_page: u64,
}

/// Missing lines of code, by cache size, that are present if every fetch also brings the next line:
/// a line is, if the line before it is still present, because both were then used last at the same
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextLineMisses(pub [u64; SIZES]);

/// Ratios of [`MemoryMeterCounts`].
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryFigures {
    /// Data, lines of 64 bytes.
    pub data: CapacityCounts,
    /// Data, lines of 128 bytes.
    pub data_128: CapacityCounts,
    /// Code, lines of 64 bytes.
    pub code: CapacityCounts,
    /// Code, lines of 128 bytes.
    pub code_128: CapacityCounts,
    /// Missing lines of code that fetching the next line brings along.
    pub code_ahead: NextLineMisses,
    /// Misses of 1 MiB.
    pub long_misses: u64,
    /// Share of them that prefetching removes.
    pub prefetch_effectiveness: f64,
    /// Share of the misses of 256 KiB that prefetching removes.
    pub near_effectiveness: f64,
    /// Lines prefetched in vain per long miss.
    pub prefetch_excess: f64,
    /// Share of the misses of 256 KiB that are outside the 64 pages used last.
    pub page_spread: f64,
    /// Lines written back per line fetched, at 1 MiB.
    pub writeback_share: f64,
    /// Data misses in sets of four lines, and of eight.
    pub data_sets: [SetMisses; 2],
    /// Missing lines of code, likewise.
    pub code_sets: [SetMisses; 2],
    /// The same if every fetch also brings the next line.
    pub code_sets_ahead: [SetMisses; 2],
    /// Next lines that are used right after they were brought, likewise.
    pub late_code_sets: [SetMisses; 2],
    /// Loads from another page than as many as each of [`PAGE_COUNTS`] that were used last.
    pub page_misses: [u64; PAGE_COUNTS.len()],
}

impl Default for MemoryMeter {
    fn default() -> Self {
        Self {
            data: LruStack::new(LINE_SHIFT),
            data_128: LruStack::new(LINE_SHIFT + 1),
            code: LruStack::new(LINE_SHIFT),
            code_128: LruStack::new(LINE_SHIFT + 1),
            data_sets: Default::default(),
            code_sets: Default::default(),
            code_sets_ahead: Default::default(),
            code_line: u64::MAX,
            code_ahead: NextLineMisses::default(),
            pages: RecentPages::default(),
            page_stack: LruStack::new(FEWEST_PAGES_SHIFT),
            prefetcher: StreamPrefetcher::default(),
            counts: true,
            figures: MissEvents::default(),
        }
    }
}

impl MemoryMeter {
    /// Lets the following accesses count, or only warm the caches.
    pub fn set_counting(&mut self, counts: bool) {
        self.counts = counts;
        for (four, eight) in [
            &mut self.data_sets,
            &mut self.code_sets,
            &mut self.code_sets_ahead,
        ] {
            four.set_counting(counts);
            eight.set_counting(counts);
        }
        for stack in [
            &mut self.data,
            &mut self.data_128,
            &mut self.code,
            &mut self.code_128,
        ] {
            stack.set_counting(counts);
        }
    }

    /// Adds an operation. Returns true if it is a load that misses for long.
    #[inline]
    pub fn add_op(&mut self, op: &Op) -> bool {
        if op.first {
            self.fetch(op.address);
        }
        match op.data {
            Some(data) => self.access_data(data.address, data.bytes, op.kind == OpKind::Store),
            None => false,
        }
    }

    /// Adds the virtual address of an instruction.
    #[inline]
    pub fn fetch(&mut self, address: u64) {
        if line_of(address) != self.code_line {
            self.fetch_line(address);
        }
    }

    fn fetch_line(&mut self, address: u64) {
        self.code_line = line_of(address);
        let missed = self.code.access(address, false);
        if missed > 0 && self.counts {
            let before = self
                .code
                .missed_sizes(address.wrapping_sub(1 << LINE_SHIFT));
            // The next line is there in the sizes that hold the line before it and miss this one.
            let sizes = self.code_ahead.0.get_mut(before..missed);
            sizes.into_iter().flatten().for_each(|count| *count += 1);
        }
        self.code_128.access(address, false);
        self.code_sets.0.access(self.code_line);
        self.code_sets.1.access(self.code_line);
        self.code_sets_ahead.0.access_with_next(self.code_line);
        self.code_sets_ahead.1.access_with_next(self.code_line);
    }

    /// Adds an access to data. Returns true if it is a load that misses for long.
    pub fn access_data(&mut self, address: u64, bytes: u16, store: bool) -> bool {
        let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
        let mut missed = self.access_line(line_of(address), store);
        for line in line_of(address) + 1..=line_of(last) {
            missed = missed.max(self.access_line(line, store));
        }
        !store && missed > LONG
    }

    #[inline]
    fn access_line(&mut self, line: u64, store: bool) -> usize {
        let address = line << LINE_SHIFT;
        let page = address >> PAGE_SHIFT;
        let in_page = self.pages.access(page);
        self.page_stack.set_counting(self.counts && !store);
        self.page_stack.access(page << FEWEST_PAGES_SHIFT, false);
        let missed = self.data.access(address, store);
        self.data_128.access(address, store);
        self.data_sets.0.access(line);
        self.data_sets.1.access(line);
        if missed <= TRAINING {
            return missed;
        }
        let covered = self.prefetcher.mark_used(line);
        let ahead = self.prefetcher.train(line);
        let vain = self.prefetch(ahead);
        if self.counts {
            let figures = &mut self.figures;
            figures.near += u64::from(missed > REACH);
            figures.near_covered += u64::from(missed > REACH && covered);
            figures.long += u64::from(missed > LONG);
            figures.covered += u64::from(missed > LONG && covered);
            figures.in_vain += vain;
            figures.beyond_reach += u64::from(missed > REACH);
            figures.new_page += u64::from(missed > REACH && !in_page);
        }
        missed
    }

    /// Brings lines that 256 KiB do not hold. Returns how many unused lines were replaced for lines
    /// that 1 MiB does not hold either.
    fn prefetch(&mut self, lines: Option<(u64, u64)>) -> u64 {
        let Some((from, to)) = lines else { return 0 };
        let mut in_vain = 0;
        for line in from.min(to)..=from.max(to) {
            let depth = self.data.missed_sizes(line << LINE_SHIFT);
            let replaced = depth > REACH && self.prefetcher.insert_line(line);
            in_vain += u64::from(replaced && depth > LONG);
        }
        in_vain
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> MemoryMeterCounts {
        MemoryMeterCounts {
            data: self.data.capacity_counts().clone(),
            data_128: self.data_128.capacity_counts().clone(),
            code: self.code.capacity_counts().clone(),
            code_128: self.code_128.capacity_counts().clone(),
            code_ahead: self.code_ahead,
            pages: self.page_stack.capacity_counts().clone(),
            data_sets: [self.data_sets.0.misses(), self.data_sets.1.misses()],
            code_sets: [self.code_sets.0.misses(), self.code_sets.1.misses()],
            code_sets_ahead: [
                self.code_sets_ahead.0.misses(),
                self.code_sets_ahead.1.misses(),
            ],
            late_code_sets: [self.code_sets_ahead.0.late(), self.code_sets_ahead.1.late()],
            events: self.figures,
        }
    }
}

impl PartialTally for MemoryMeterCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.data.merge(&other.data, with);
        self.data_128.merge(&other.data_128, with);
        self.code.merge(&other.code, with);
        self.code_128.merge(&other.code_128, with);
        self.code_ahead.0.merge(&other.code_ahead.0, with);
        self.pages.merge(&other.pages, with);
        self.data_sets.merge(&other.data_sets, with);
        self.code_sets.merge(&other.code_sets, with);
        self.code_sets_ahead.merge(&other.code_sets_ahead, with);
        self.late_code_sets.merge(&other.late_code_sets, with);
        self.events.merge(&other.events, with);
    }
}

impl PartialTally for MissEvents {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.near.merge(&other.near, with);
        self.near_covered.merge(&other.near_covered, with);
        self.long.merge(&other.long, with);
        self.covered.merge(&other.covered, with);
        self.in_vain.merge(&other.in_vain, with);
        self.beyond_reach.merge(&other.beyond_reach, with);
        self.new_page.merge(&other.new_page, with);
    }
}

impl MemoryMeterCounts {
    /// Ratios of the counts.
    #[must_use]
    pub fn figures(&self) -> MemoryFigures {
        let ratio = |of: u64, to: u64| of as f64 / to.max(1) as f64;
        let (events, data) = (self.events, &self.data);
        MemoryFigures {
            long_misses: events.long,
            prefetch_effectiveness: ratio(events.covered, events.long),
            near_effectiveness: ratio(events.near_covered, events.near),
            prefetch_excess: ratio(events.in_vain, events.long),
            page_spread: ratio(events.new_page, events.beyond_reach),
            writeback_share: ratio(data.written_back[LONG], data.misses[LONG]).min(1.0),
            data: data.clone(),
            data_128: self.data_128.clone(),
            code: self.code.clone(),
            code_128: self.code_128.clone(),
            code_ahead: self.code_ahead,
            data_sets: self.data_sets,
            code_sets: self.code_sets,
            code_sets_ahead: self.code_sets_ahead,
            late_code_sets: self.late_code_sets,
            page_misses: std::array::from_fn(|at| self.pages.misses[at]),
        }
    }
}

/// A stream prefetcher: two misses in neighbouring lines begin a stream, up or down, that stays a
/// few lines ahead within a page of 4 KiB (as Intel's streamer does: Optimization Reference Manual,
/// 2.1.5.4 of the Sandy Bridge part; the numbers of streams and lines are those of a model).
#[derive(Debug, Clone, Default)]
struct StreamPrefetcher {
    /// Last line and direction of each stream, the most recently used last.
    streams: VecDeque<(u64, i64)>,
    kept: HashMap<u64, bool, BuildHasherDefault<MultiplyHasher>>,
    order: VecDeque<u64>,
}

impl StreamPrefetcher {
    /// Marks a prefetched line as used. Returns true if it was prefetched and not used before.
    fn mark_used(&mut self, line: u64) -> bool {
        self.kept
            .get_mut(&line)
            .is_some_and(|used| !std::mem::replace(used, true))
    }

    /// Learns from a miss. Returns the first and last line to fetch.
    fn train(&mut self, line: u64) -> Option<(u64, u64)> {
        let near = |&(last, direction): &(u64, i64)| {
            let step = line.wrapping_sub(last).cast_signed();
            step.abs() == 1 && (direction == 0 || direction == step) || step == 0
        };
        let at = self.streams.iter().position(near);
        let Some((last, direction)) = at.and_then(|at| self.streams.remove(at)) else {
            if self.streams.len() == STREAMS {
                self.streams.pop_front();
            }
            self.streams.push_back((line, 0));
            return None;
        };
        let step = line.wrapping_sub(last).cast_signed();
        let direction = if step == 0 { direction } else { step };
        self.streams.push_back((line, direction));
        (direction != 0)
            .then(|| lines_ahead(line, direction))
            .flatten()
    }

    /// Keeps a line. Returns true if the line that it replaces was never used.
    fn insert_line(&mut self, line: u64) -> bool {
        if self.kept.contains_key(&line) {
            return false;
        }
        self.kept.insert(line, false);
        self.order.push_back(line);
        let gone = if self.order.len() > KEPT {
            self.order.pop_front()
        } else {
            None
        };
        gone.and_then(|line| self.kept.remove(&line))
            .is_some_and(|used| !used)
    }
}

fn lines_ahead(line: u64, direction: i64) -> Option<(u64, u64)> {
    let lines = 1 << (PAGE_SHIFT - LINE_SHIFT);
    let first = line / lines * lines;
    let (from, to) = if direction > 0 {
        (line + 1, (line + AHEAD).min(first + lines - 1))
    } else {
        (
            line.saturating_sub(AHEAD).max(first),
            line.saturating_sub(1),
        )
    };
    (from <= to).then_some((from, to))
}

/// Pages that are kept: as many as a usual translation buffer of the first level.
const PAGES: usize = 64;
/// Number of remembered places, by the low bits of a page's number.
const PLACES: usize = 1024;

/// The pages used last, as in a translation buffer.
#[derive(Debug, Clone)]
pub(super) struct RecentPages {
    pages: [u64; PAGES],
    /// Number of the use at which each was used last; 0 for empty places.
    used: [u64; PAGES],
    uses: u64,
    /// Places of pages, a hint: another page may be there by now.
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
    /// Uses a page. Returns true if it is among those used last.
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
        let at = known.unwrap_or_else(|| {
            let oldest = (0..PAGES).min_by_key(|&at| self.used[at]);
            oldest.unwrap_or(0)
        });
        *place = at as u8;
        self.pages[at] = page;
        self.used[at] = self.uses;
        known.is_some()
    }
}

#[cfg(test)]
mod tests {
    use consort_ops::Access;
    use proptest::prelude::*;

    use super::*;

    fn figures(addresses: impl Iterator<Item = u64>) -> MemoryFigures {
        let mut memory = MemoryMeter::default();
        let mut op = Op::new(OpKind::Load, 0);
        for address in addresses {
            op.data = Some(Access {
                address,
                bytes: 8,
                is_vector: false,
            });
            memory.add_op(&op);
        }
        memory.counts().figures()
    }

    #[test]
    fn loads_miss_translations_that_are_used_in_turn() {
        // One line each of 100 pages, again and again: 128 pages are enough, 64 hold none of them.
        let misses = figures((0..100_000).map(|i| i % 100 * 4160)).page_misses;
        assert_eq!(misses[..3], [100_000; 3]);
        assert_eq!(misses[3..], [100; 5]);
    }

    #[test]
    fn stream_is_prefetched_after_each_page_start() {
        let reported = figures((0..1 << 20).map(|i| i * 8));
        assert_eq!(reported.long_misses, 1 << 17);
        assert!(
            (reported.prefetch_effectiveness - 63.0 / 64.0).abs() < 0.01,
            "{reported:?}"
        );
        assert!(reported.prefetch_excess < 0.01);
        assert!((reported.page_spread - 1.0 / 64.0).abs() < 0.001);
        assert_eq!(reported.data_128.misses[0], 1 << 16);
    }

    #[test]
    fn scattered_accesses_are_not() {
        let scattered = (0..200_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36 << 6);
        let reported = figures(scattered);
        assert!(reported.prefetch_effectiveness < 0.02, "{reported:?}");
        assert!(reported.page_spread > 0.99);
    }

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
