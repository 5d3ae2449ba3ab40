//! Sets of lines and which of them makes room; the TLB is made of two of them.

use consort_sim::machine::TlbSpec;
use consort_sim::machine::detail::Replacement;
use rand::RngExt as _;
use rand_pcg::Pcg64;

/// A cache of any kind: of data, of code, of translations, of decoded instructions.
#[derive(Clone, Debug)]
pub(crate) struct SetAssociativeCache {
    sets: u64,
    ways: usize,
    lines: Vec<CacheLine>,
    replacement: Replacement,
    clock: u64,
    random: Pcg64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CacheLine {
    /// Key plus one; 0 if there is none.
    tag: u64,
    used: u64,
    dirty: bool,
}

/// A line that made room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    /// Its key.
    pub(crate) line: u64,
    /// True where it was written to.
    pub(crate) dirty: bool,
}

impl SetAssociativeCache {
    /// A cache of `lines` lines in sets of `ways`, at least one set.
    pub(crate) fn new(lines: u64, ways: u32, replacement: Replacement, random: Pcg64) -> Self {
        let ways = u64::from(ways).min(lines).max(1);
        let sets = (lines / ways).max(1);
        Self {
            sets,
            ways: ways as usize,
            lines: vec![CacheLine::default(); (sets * ways) as usize],
            replacement,
            clock: 0,
            random,
        }
    }

    /// True if a line is there; it then counts as used, and as written to if `write`.
    pub(crate) fn touch(&mut self, line: u64, write: bool) -> bool {
        let Some(at) = self.find(line) else {
            return false;
        };
        self.lines[at].dirty |= write;
        self.mark(at);
        true
    }

    /// True if a line is there.
    pub(crate) fn holds(&self, line: u64) -> bool {
        self.find(line).is_some()
    }

    /// Inserts a line and returns the line that made room.
    pub(crate) fn fill(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        if self.touch(line, dirty) {
            return None;
        }
        let at = self.find_room(line);
        let before = self.lines[at];
        self.lines[at] = CacheLine {
            tag: line + 1,
            used: 0,
            dirty,
        };
        self.mark(at);
        (before.tag != 0).then(|| Victim {
            line: before.tag - 1,
            dirty: before.dirty,
        })
    }

    /// Removes a line. Returns whether it was written to, if it was there.
    pub(crate) fn remove(&mut self, line: u64) -> Option<bool> {
        let at = self.find(line)?;
        let dirty = self.lines[at].dirty;
        self.lines[at] = CacheLine::default();
        Some(dirty)
    }

    /// Removes a line unless it was written to here.
    pub(crate) fn remove_clean(&mut self, line: u64) {
        if let Some(at) = self.find(line).filter(|&at| !self.lines[at].dirty) {
            self.lines[at] = CacheLine::default();
        }
    }

    fn set_range(&self, line: u64) -> std::ops::Range<usize> {
        let first = (line % self.sets) as usize * self.ways;
        first..first + self.ways
    }

    fn find(&self, line: u64) -> Option<usize> {
        self.set_range(line)
            .find(|&at| self.lines[at].tag == line + 1)
    }

    /// The place of an invalid line, or of the one to be replaced.
    fn find_room(&mut self, line: u64) -> usize {
        let mut set = self.set_range(line);
        if let Some(free) = set.clone().find(|&at| self.lines[at].tag == 0) {
            return free;
        }
        if self.replacement == Replacement::Random {
            return set.start + self.random.random_range(0..self.ways);
        }
        let oldest = set.clone().min_by_key(|&at| self.lines[at].used);
        oldest.unwrap_or(set.next().unwrap_or(0))
    }

    /// Notes a use: its time, or one bit that is cleared in all other lines once all have it.
    fn mark(&mut self, at: usize) {
        if self.replacement == Replacement::PseudoLru {
            let set = self.set_range(self.lines[at].tag - 1);
            self.lines[at].used = 1;
            if self.lines[set.clone()].iter().all(|line| line.used == 1) {
                self.lines[set].iter_mut().for_each(|line| line.used = 0);
                self.lines[at].used = 1;
            }
            return;
        }
        self.clock += 1;
        self.lines[at].used = self.clock;
    }
}

/// The data TLB of a core or of a CPU.
#[derive(Debug)]
pub(crate) struct Tlb {
    first: Option<SetAssociativeCache>,
    last: SetAssociativeCache,
    page_bytes: u64,
    hit_cycles: f64,
    walk_cycles: f64,
}

impl Tlb {
    /// An empty TLB: the first level fully associative, the last of 8 ways.
    pub(crate) fn new(spec: &TlbSpec, random: &Pcg64) -> Self {
        let cache = |entries: u32, ways| {
            SetAssociativeCache::new(u64::from(entries), ways, Default::default(), random.clone())
        };
        Self {
            first: spec.first_entries.map(|entries| cache(entries, entries)),
            last: cache(spec.entries, 8),
            page_bytes: ((spec.page_kib * 1024.0) as u64).max(1),
            hit_cycles: spec.hit_cycles.unwrap_or(0.0),
            walk_cycles: spec.walk_cycles,
        }
    }

    /// Cycles that translating an address adds, and whether that took a walk.
    pub(crate) fn translate(&mut self, address: u64) -> (f64, bool) {
        let page = address / self.page_bytes;
        if self
            .first
            .as_mut()
            .is_some_and(|first| first.touch(page, false))
        {
            return (0.0, false);
        }
        if let Some(first) = &mut self.first {
            first.fill(page, false);
        }
        if self.last.touch(page, false) {
            return (self.hit_cycles, false);
        }
        self.last.fill(page, false);
        (self.walk_cycles, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(lines: u64, ways: u32, replacement: Replacement) -> SetAssociativeCache {
        SetAssociativeCache::new(lines, ways, replacement, Pcg64::new(1, 2))
    }

    #[test]
    fn the_least_recently_used_line_makes_room() {
        let mut cache = cache(4, 2, Replacement::Lru);
        assert_eq!(cache.fill(0, false), None);
        assert_eq!(cache.fill(2, true), None);
        assert!(cache.touch(0, false));
        let victim = Victim {
            line: 2,
            dirty: true,
        };
        assert_eq!(cache.fill(4, false), Some(victim));
        assert!(cache.holds(0) && cache.holds(4) && !cache.holds(2));
    }

    #[test]
    fn a_cycle_just_too_large_misses_always_under_lru_and_sometimes_at_random() {
        let misses = |replacement| {
            let mut cache = cache(8, 8, replacement);
            let lines = (0..9000u64).map(|i| i % 9);
            lines
                .filter(|&l| !cache.touch(l, false) && (cache.fill(l, false), true).1)
                .count()
        };
        assert_eq!(misses(Replacement::Lru), 9000);
        assert!(misses(Replacement::Random) < 6000);
    }

    #[test]
    fn pseudo_lru_never_replaces_what_was_used_last() {
        let mut cache = cache(4, 4, Replacement::PseudoLru);
        for line in 0..1000u64 {
            let last = line;
            let victim = cache.fill(line, false);
            assert_ne!(victim.map(|v| v.line), Some(last.wrapping_sub(1)));
        }
    }
}
