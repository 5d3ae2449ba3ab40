//! Data of a thread that is still in the caches that it left.
//!
//! Caches replace the line that was used longest ago. While a thread is away its lines grow older
//! and what others bring in takes their place: after they have brought in `b` bytes, of `d` that
//! the thread left in a cache of `S` bytes, in which those that run hold `h`, at least
//! `max(d − b, min(d, S − h − b))` are there. What those that run hold is not older than the
//! thread's lines, so it does not go first; where they bring in nothing, nothing goes at all.
//!
//! Bytes that a thread brings in are those of its misses, settled when its turn on a PU ends.

use super::cache_remnants::{CacheId, CacheRemnant, Inflow, LEVELS, cache_at, capacity};
use super::kernel::SimulatedKernel;
use super::thread::SimulatedThread;
use crate::chip::Chip;

/// The running threads and their PUs, as far as caches are concerned.
pub(crate) struct CacheContents<'a> {
    pub(crate) chip: &'a Chip,
    pub(crate) inflow: &'a Inflow,
    pub(crate) threads: &'a [SimulatedThread],
    pub(crate) kernel: &'a SimulatedKernel,
}

impl CacheContents<'_> {
    /// Returns what thread `t` holds when its turn on a PU ends, for [`SimulatedThread::leave_behind`].
    pub(crate) fn contents_left(
        &self,
        t: usize,
        pu: usize,
    ) -> [Option<(CacheId, f64, f64)>; LEVELS] {
        let held = self.resident_bytes(t);
        let level = |level| {
            let cache = cache_at(self.chip, pu, level)?;
            Some((cache, held[level], self.inflow_until_now(cache)))
        };
        [level(0), level(1), level(2)]
    }

    /// Bytes that thread `t` finds of its own in the caches of a PU.
    pub(crate) fn bytes_found(&self, t: usize, pu: usize) -> [f64; LEVELS] {
        [0, 1, 2].map(|level| self.bytes_found_in(t, pu, level).unwrap_or(0.0))
    }

    /// True if a sibling of thread `t` runs in the caches of a PU, by level.
    pub(crate) fn siblings(&self, t: usize, pu: usize) -> [bool; LEVELS] {
        let program = self.threads[t].program;
        [0, 1, 2].map(|level| {
            let cache = cache_at(self.chip, pu, level);
            let mut others = self.others_in(t, cache);
            others.any(|other| self.threads[other].program == program)
        })
    }

    fn bytes_found_in(&self, t: usize, pu: usize, level: usize) -> Option<f64> {
        let cache = cache_at(self.chip, pu, level)?;
        let left = self.threads[t].left_behind.remnant(cache)?;
        let brought = (self.inflow_until_now(cache) - left.inflow).max(0.0);
        let held = self.others_in(t, Some(cache));
        let held: f64 = held.map(|other| self.resident_bytes(other)[level]).sum();
        let room = capacity(self.chip, self.chip.places()[pu], level) - held - brought;
        Some((left.bytes - brought).max(room).clamp(0.0, left.bytes))
    }

    fn resident_bytes(&self, t: usize) -> [f64; LEVELS] {
        self.threads[t].held_bytes(f64::from(self.chip.spec().memory.line_bytes))
    }

    /// Other threads that run in a cache.
    fn others_in(&self, t: usize, cache: Option<CacheId>) -> impl Iterator<Item = usize> {
        self.running_in(cache).filter(move |&other| other != t)
    }

    fn running_in(&self, cache: Option<CacheId>) -> impl Iterator<Item = usize> {
        let inside = move |pu| {
            cache.is_some_and(|cache| cache_at(self.chip, pu, cache.level) == Some(cache))
        };
        let occupied = self.kernel.occupied_pus();
        occupied.filter(move |(pu, _)| inside(*pu)).map(|(_, t)| t)
    }

    /// Returns the bytes brought into a cache, turns in progress included.
    fn inflow_until_now(&self, cache: CacheId) -> f64 {
        let going = self.running_in(Some(cache));
        let going: f64 = going
            .map(|t| self.threads[t].bytes_brought(self.chip)[cache.level])
            .sum();
        self.inflow.inflow_bytes(cache) + going
    }
}

impl SimulatedThread {
    /// Returns the bytes that it has brought into each level since its turn began.
    pub(crate) fn bytes_brought(&self, chip: &Chip) -> [f64; LEVELS] {
        let line = f64::from(chip.spec().memory.line_bytes);
        let now = self.lines_brought();
        [0, 1, 2].map(|level| (now[level] - self.turn_lines[level]) * line)
    }

    /// Lines brought into each level since its start.
    pub(crate) fn lines_brought(&self) -> [f64; LEVELS] {
        let (a, b) = (&self.counts.flow, &self.sampled.flow);
        [
            a.l1d_misses + b.l1d_misses,
            a.llc_accesses + b.llc_accesses,
            a.llc_misses + b.llc_misses + a.prefetched_lines + b.prefetched_lines,
        ]
    }

    /// Returns the bytes that it left in each level of caches at a PU, if it has used that cache.
    pub(crate) fn left_bytes(&self, chip: &Chip, pu: usize) -> [Option<f64>; LEVELS] {
        [0, 1, 2].map(|level| {
            let left = self.left_behind.remnant(cache_at(chip, pu, level)?);
            left.map(|left| left.bytes)
        })
    }

    /// Notes what it leaves in caches.
    pub(crate) fn leave_behind(&mut self, left: [Option<(CacheId, f64, f64)>; LEVELS]) {
        self.was_warm = !self.warming.is_open();
        for (cache, bytes, inflow) in left.into_iter().flatten() {
            self.left_behind.note(CacheRemnant {
                cache,
                bytes,
                inflow,
            });
        }
    }
}
