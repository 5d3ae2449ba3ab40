//! The caches of a chip, and what each thread has in them.

use super::counts::LEVELS;
use super::warming::CacheWarming;
use crate::chip::{Chip, KIB, PuPlace};
use crate::machine::Scope;

/// A cache: its level, 0 for the L1D, and its number in that level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheId {
    pub(super) level: usize,
    number: usize,
}

/// The cache of a level at a CPU; `None` if there is no such level.
pub(crate) fn cache_at(chip: &Chip, pu: usize, level: usize) -> Option<CacheId> {
    let place = chip.places()[pu];
    let core = chip.core_spec(place);
    let number = match level {
        // There are no more cores than CPUs, so that both kinds of numbers fit into one range.
        0 if core.l1d.per == Scope::Pu => chip.places().len() + pu,
        0 => place.core,
        1 => core.l2.as_ref().map(|_| place.l2)?,
        _ if chip.llc_kib(place.llc) == 0.0 => return None,
        _ => place.llc,
    };
    Some(CacheId { level, number })
}

/// Capacity of the cache of a level, bytes; 0 if there is none.
pub(super) fn capacity(chip: &Chip, place: PuPlace, level: usize) -> f64 {
    let core = chip.core_spec(place);
    let kib = match level {
        0 => core.l1d.size_kib,
        1 => core.l2.as_ref().map_or(0.0, |l2| l2.size_kib),
        _ => chip.llc_kib(place.llc),
    };
    kib * KIB
}

/// Bytes brought into every cache by turns that have ended: the age by which lines of absent
/// threads are replaced.
#[derive(Clone, Debug)]
pub(crate) struct Inflow([Vec<f64>; LEVELS]);

impl Inflow {
    pub(crate) fn new(chip: &Chip) -> Self {
        let domains = chip.domains();
        let l1ds = 2 * chip.places().len();
        Self([l1ds, domains.l2s, domains.llcs].map(|caches| vec![0.0; caches]))
    }

    pub(crate) fn add_turn(&mut self, chip: &Chip, pu: usize, bytes: [f64; LEVELS]) {
        for (level, bytes) in bytes.into_iter().enumerate() {
            if let Some(cache) = cache_at(chip, pu, level) {
                self.0[level][cache.number] += bytes;
            }
        }
    }

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
    /// Instructions that the thread had run until then.
    pub(super) instructions: f64,
}

/// Data that a thread left in each cache that it has used.
#[derive(Clone, Debug, Default)]
pub(crate) struct CacheRemnants(Vec<CacheRemnant>);

impl CacheRemnants {
    /// Notes what was left in a cache and forgets what was left there before.
    pub(super) fn note(&mut self, left: CacheRemnant) {
        match self.0.iter_mut().find(|known| known.cache == left.cache) {
            Some(known) => *known = left,
            None => self.0.push(left),
        }
    }

    pub(super) fn remnant(&self, cache: CacheId) -> Option<&CacheRemnant> {
        self.0.iter().find(|left| left.cache == cache)
    }
}

/// A thread's caches where it is and where it was.
#[derive(Clone, Debug)]
pub(crate) struct ThreadCaches {
    /// CPU of the chip that it ran on last, in whose caches its data is.
    pub(crate) warm_at: Option<usize>,
    /// True if its memory has a home node yet.
    pub(crate) has_home: bool,
    /// Progress in warming the caches where it is.
    pub(crate) warming: CacheWarming,
    /// Data that it left in the caches where it was.
    pub(crate) remnants: CacheRemnants,
    /// Bytes of each level that it held when it last left a place; infinite where there was none.
    pub(crate) held: [f64; LEVELS],
    /// True if its caches were warm when it last left them.
    pub(crate) was_warm: bool,
    /// Lines that it had brought into each level of caches when its turn began.
    pub(crate) turn_lines: [f64; LEVELS],
}

impl ThreadCaches {
    pub(crate) fn new() -> Self {
        Self {
            warm_at: None,
            has_home: false,
            warming: CacheWarming::default(),
            remnants: CacheRemnants::default(),
            held: [f64::INFINITY; LEVELS],
            // A thread's first place is warm.
            was_warm: true,
            turn_lines: [0.0; LEVELS],
        }
    }

    /// Bytes that it left in each level of caches at a CPU, `None` for caches that it has not used.
    pub(crate) fn left_bytes(&self, chip: &Chip, pu: usize) -> [Option<f64>; LEVELS] {
        [0, 1, 2].map(|level| {
            let left = self.remnants.remnant(cache_at(chip, pu, level)?);
            left.map(|left| left.bytes)
        })
    }

    /// Notes what it leaves.
    pub(super) fn leave_behind(&mut self, left: [Option<CacheRemnant>; LEVELS]) {
        self.was_warm = !self.warming.is_open();
        self.held = left.map(|left| left.map_or(f64::INFINITY, |left| left.bytes));
        for left in left.into_iter().flatten() {
            self.remnants.note(left);
        }
    }
}
