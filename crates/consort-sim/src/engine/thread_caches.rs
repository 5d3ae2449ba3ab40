//! The caches of a chip, and what each thread has in them.

use super::counts::LEVELS;
use crate::chip::{Chip, KIB, PuPlace};
use crate::machine::Scope;

/// A cache: its level, 0 for the L1D, and its number in that level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheId {
    pub(super) level: usize,
    number: usize,
}

/// The cache of a level at a PU; none where there is no such level.
pub(crate) fn cache_at(chip: &Chip, pu: usize, level: usize) -> Option<CacheId> {
    let place = chip.places()[pu];
    let core = chip.core_spec(place);
    let number = match level {
        // Cores are no more than PUs, so that both kinds of numbers fit side by side.
        0 if core.l1d.per == Scope::Pu => chip.places().len() + pu,
        0 => place.core,
        1 => core.l2.as_ref().map(|_| place.l2)?,
        _ if chip.llc_kib(place.llc) == 0.0 => return None,
        _ => place.llc,
    };
    Some(CacheId { level, number })
}

/// Capacity of the cache of a level, bytes; 0 where there is none.
pub(super) fn capacity(chip: &Chip, place: PuPlace, level: usize) -> f64 {
    let core = chip.core_spec(place);
    let kib = match level {
        0 => core.l1d.size_kib,
        1 => core.l2.as_ref().map_or(0.0, |l2| l2.size_kib),
        _ => chip.llc_kib(place.llc),
    };
    kib * KIB
}

/// Bytes brought into every cache by turns that have ended.
#[derive(Clone, Debug)]
pub(crate) struct Inflow([Vec<f64>; LEVELS]);

impl Inflow {
    /// Nothing yet, for the caches of a chip.
    pub(crate) fn new(chip: &Chip) -> Self {
        let domains = chip.domains();
        let l1ds = 2 * chip.places().len();
        Self([l1ds, domains.l2s, domains.llcs].map(|caches| vec![0.0; caches]))
    }

    /// Ends a turn on a PU that brought in so much at each level.
    pub(crate) fn add_turn(&mut self, chip: &Chip, pu: usize, bytes: [f64; LEVELS]) {
        for (level, bytes) in bytes.into_iter().enumerate() {
            if let Some(cache) = cache_at(chip, pu, level) {
                self.0[level][cache.number] += bytes;
            }
        }
    }

    /// Bytes brought into a cache.
    pub(super) fn inflow_bytes(&self, cache: CacheId) -> f64 {
        self.0[cache.level][cache.number]
    }
}

/// Data that a thread left in a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheRemnant {
    pub(super) cache: CacheId,
    pub(super) bytes: f64,
    /// Bytes that had been brought into the cache until then.
    pub(super) inflow: f64,
}

/// Data that a thread left in each cache that it has used.
#[derive(Clone, Debug, Default)]
pub(crate) struct CacheRemnants(Vec<CacheRemnant>);

impl CacheRemnants {
    /// Notes what was left in a cache, instead of what was left there before.
    pub(super) fn note(&mut self, left: CacheRemnant) {
        match self.0.iter_mut().find(|known| known.cache == left.cache) {
            Some(known) => *known = left,
            None => self.0.push(left),
        }
    }

    /// Data that was left in a cache.
    pub(super) fn remnant(&self, cache: CacheId) -> Option<&CacheRemnant> {
        self.0.iter().find(|left| left.cache == cache)
    }
}
