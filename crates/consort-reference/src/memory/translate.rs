//! Translation of addresses: two levels of entries, then a walk.

use super::cache::SetAssociativeCache;
use consort_sim::machine::TlbSpec;
use rand_pcg::Pcg64;

/// The data TLB of a core or of a PU.
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
