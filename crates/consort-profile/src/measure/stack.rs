//! Misses of caches of many sizes at once, by LRU stack distance.
//!
//! An LRU cache holds the most recently used lines, so one list in the order of use gives the
//! misses of every size (Mattson et al., IBM Systems Journal 9(2), 1970). Only sizes that are
//! powers of two are needed: each line has the pair of sizes between which it lies, and a marker
//! per size moves by one line per access, so an access costs at most one step per size (Kim, Hill
//! and Wood, SIGMETRICS 1991, section 3.3), which is logarithmic in the largest.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::PartialTally;

/// Sizes, bytes: 4 KiB to 64 MiB.
pub const CAPACITIES: [u64; 15] = {
    let mut sizes = [0; 15];
    let mut i = 0;
    while i < 15 {
        sizes[i] = 4096 << i;
        i += 1;
    }
    sizes
};

/// Number of [`CAPACITIES`].
pub const SIZES: usize = CAPACITIES.len();
const NONE: u32 = u32::MAX;
/// Lines whose places are remembered.
const RECENT: usize = 4096;
/// Lines at the top of a stack that are not in its list; fewer than the smallest size holds.
const TOP: usize = 8;

/// Misses and written-back lines at each of [`CAPACITIES`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapacityCounts {
    /// Accesses.
    pub accesses: u64,
    /// Misses; first uses of a line are misses everywhere.
    pub misses: [u64; SIZES],
    /// First uses of a line.
    pub first_uses: u64,
    /// Dirty lines that left a cache of each size.
    pub written_back: [u64; SIZES],
}

impl PartialTally for CapacityCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.accesses.merge(&other.accesses, with);
        self.misses.merge(&other.misses, with);
        self.first_uses.merge(&other.first_uses, with);
        self.written_back.merge(&other.written_back, with);
    }
}

#[derive(Debug, Clone, Copy)]
struct StackNode {
    line: u64,
    newer: u32,
    older: u32,
    /// Number of sizes that do not hold it.
    group: u8,
    /// Sizes, as bits, in which it was written to.
    dirty: u16,
}

#[derive(Debug, Clone, Copy)]
struct TopLine {
    line: u64,
    place: u32,
}

/// No line.
const NOTHING: TopLine = TopLine {
    line: u64::MAX,
    place: NONE,
};

/// Lines in the order of use.
#[derive(Debug, Clone)]
pub struct LruStack {
    line_shift: u32,
    /// The lines used last, the latest first.
    top: [TopLine; TOP],
    nodes: Vec<StackNode>,
    places: HashMap<u64, u32, BuildHasherDefault<MultiplyHasher>>,
    /// The ends of the list of what lies below the top.
    newest: u32,
    oldest: u32,
    /// For each size, the oldest line that it holds once it is full.
    markers: [u32; SIZES],
    /// Places of lines, by the low bits of their number; a hint, because another line may lie there
    /// by now.
    recent: Vec<u32>,
    /// True while accesses count.
    counts: bool,
    depths: CapacityCounts,
}

impl LruStack {
    /// An empty stack of lines of 2^`line_shift` bytes.
    #[must_use]
    pub fn new(line_shift: u32) -> Self {
        Self {
            line_shift,
            top: [NOTHING; TOP],
            nodes: Vec::new(),
            places: HashMap::default(),
            newest: NONE,
            oldest: NONE,
            markers: [NONE; SIZES],
            recent: vec![NONE; RECENT],
            counts: true,
            depths: CapacityCounts::default(),
        }
    }

    /// Lets the following accesses count, or only move lines.
    pub const fn set_counting(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Counts so far.
    #[must_use]
    pub const fn capacity_counts(&self) -> &CapacityCounts {
        &self.depths
    }

    /// Number of [`CAPACITIES`], from the smallest, that do not hold the line of `address`.
    #[must_use]
    pub fn missed_sizes(&self, address: u64) -> usize {
        let place = self.places.get(&(address >> self.line_shift));
        place.map_or(SIZES, |&place| {
            usize::from(self.nodes[place as usize].group)
        })
    }

    /// Uses the line of `address`. Returns how many of the sizes missed it.
    pub fn access(&mut self, address: u64, write: bool) -> usize {
        let line = address >> self.line_shift;
        let group = self.raise(line);
        if write {
            self.nodes[self.top[0].place as usize].dirty = u16::MAX;
        }
        if self.counts {
            self.depths.accesses += 1;
            self.depths.misses[..group]
                .iter_mut()
                .for_each(|misses| *misses += 1);
        }
        group
    }

    /// Brings a line to the top: each above it moves down by one.
    fn raise(&mut self, line: u64) -> usize {
        let mut carried = TopLine { line, ..NOTHING };
        for upper in &mut self.top {
            std::mem::swap(upper, &mut carried);
            if carried.line == line {
                self.top[0].place = carried.place;
                return 0;
            }
        }
        let group = match self.find_place(line) {
            Some(place) => self.move_to_top(place),
            None => self.add_line(line),
        };
        if carried.place != NONE {
            self.push(carried.place);
        }
        group
    }

    /// Position of a line. Most accesses are to lines used lately, which need no search.
    fn find_place(&mut self, line: u64) -> Option<u32> {
        let recent = &mut self.recent[line as usize % RECENT];
        let node = self.nodes.get(*recent as usize);
        if node.is_some_and(|node| node.line == line) {
            return Some(*recent);
        }
        let place = self.places.get(&line).copied();
        *recent = place.unwrap_or(NONE);
        place
    }

    fn move_to_top(&mut self, place: u32) -> usize {
        let group = usize::from(self.nodes[place as usize].group);
        self.demote(group, place);
        self.unlink(place);
        self.nodes[place as usize].group = 0;
        self.top[0].place = place;
        group
    }

    fn add_line(&mut self, line: u64) -> usize {
        let place = self.nodes.len() as u32;
        self.demote(SIZES, NONE);
        self.nodes.push(StackNode {
            line,
            newer: NONE,
            older: NONE,
            group: 0,
            dirty: 0,
        });
        self.places.insert(line, place);
        self.top[0].place = place;
        self.depths.first_uses += u64::from(self.counts);
        self.set_full_marker();
        self.forget_oldest();
        SIZES
    }

    /// Makes room in the sizes that do not hold the used line: the oldest line of each leaves it.
    /// If `used` is itself the marker of the next size, the line before it becomes the marker. It
    /// cannot be the marker of a larger size, because the oldest line of a size lies in no smaller
    /// one.
    fn demote(&mut self, sizes: usize, used: u32) {
        for size in 0..SIZES.min(sizes + 1) {
            let marker = self.markers[size];
            if marker == NONE {
                break;
            }
            let leaves = size < sizes;
            if leaves || used == marker {
                self.markers[size] = self.nodes[marker as usize].newer;
            }
            if leaves {
                self.leave_size(marker, size);
            }
        }
    }

    fn leave_size(&mut self, place: u32, size: usize) {
        let node = &mut self.nodes[place as usize];
        node.group = size as u8 + 1;
        let bit = 1 << size;
        let written = node.dirty & bit != 0;
        node.dirty &= !bit;
        self.depths.written_back[size] += u64::from(written && self.counts);
    }

    fn unlink(&mut self, place: u32) {
        let StackNode { newer, older, .. } = self.nodes[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    /// Puts a line that falls off the top on the list.
    fn push(&mut self, place: u32) {
        let before = self.newest;
        let node = &mut self.nodes[place as usize];
        (node.newer, node.older) = (NONE, before);
        match before {
            NONE => self.oldest = place,
            before => self.nodes[before as usize].newer = place,
        }
        self.newest = place;
    }

    /// Sets the marker of a size that has just become full.
    fn set_full_marker(&mut self) {
        let lines = self.places.len() as u64;
        for (marker, size) in self.markers.iter_mut().zip(CAPACITIES) {
            if size >> self.line_shift == lines {
                *marker = self.oldest;
            }
        }
    }

    /// Of the lines that no size holds, keeps only the one that has just left, because it misses
    /// everywhere anyway.
    fn forget_oldest(&mut self) {
        let most = (CAPACITIES[SIZES - 1] >> self.line_shift) + 1;
        if self.places.len() as u64 <= most {
            return;
        }
        let old = self.oldest;
        self.unlink(old);
        self.places.remove(&self.nodes[old as usize].line);
        self.reuse(old);
    }

    /// Moves the node of the latest line, which is the last in memory, into the free place, so that
    /// nodes stay contiguous.
    fn reuse(&mut self, free: u32) {
        let last = self.nodes.len() as u32 - 1;
        let node = self.nodes.swap_remove(free as usize);
        debug_assert!(!self.places.contains_key(&node.line));
        if free == last {
            return;
        }
        self.places.insert(self.nodes[free as usize].line, free);
        self.top[0].place = free;
    }
}

/// Hash of a number by multiplication (Knuth, The Art of Computer Programming 3, 6.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct MultiplyHasher(u64);

impl Hasher for MultiplyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The depth of each access in a plain list, and lines written back, size by size.
    fn plainly(accesses: &[(u64, bool)]) -> CapacityCounts {
        let mut depths = CapacityCounts::default();
        for (size, capacity) in CAPACITIES.iter().enumerate() {
            let mut list: Vec<(u64, bool)> = Vec::new();
            for &(line, write) in accesses {
                let at = list.iter().position(|(held, _)| *held == line);
                let mut used = at.map(|at| list.remove(at));
                depths.misses[size] += u64::from(used.is_none());
                let (_, dirty) = used.get_or_insert((line, false));
                list.insert(0, (line, *dirty || write));
                if list.len() as u64 > capacity / 64 {
                    let (_, dirty) = list.pop().unwrap();
                    depths.written_back[size] += u64::from(dirty);
                }
            }
        }
        depths
    }

    proptest! {
        #[test]
        fn each_size_misses_like_a_plain_cache(
            steps in prop::collection::vec((0_u64..200, 0_u64..400, any::<bool>()), 1..1500),
        ) {
            let accesses: Vec<_> = steps.iter().enumerate()
                .map(|(i, (near, far, write))| (if i % 3 == 0 { *far } else { *near }, *write))
                .collect();
            let mut stack = LruStack::new(6);
            for (line, write) in &accesses {
                stack.access(line * 64, *write);
            }
            let expected = plainly(&accesses);
            prop_assert_eq!(stack.capacity_counts().misses, expected.misses);
            prop_assert_eq!(stack.capacity_counts().written_back, expected.written_back);
        }
    }

    #[test]
    fn stream_beyond_largest_size_misses_everywhere() {
        let mut stack = LruStack::new(6);
        for round in 0..2 {
            for line in 0..(3 << 19) {
                let group = stack.access(line * 64, false);
                assert_eq!(group, SIZES, "round {round} line {line}");
            }
        }
        assert_eq!(stack.places.len(), (1 << 20) + 1);
    }
}
