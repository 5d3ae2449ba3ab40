//! Misses per instruction, given the bytes that a thread holds of every cache.

use super::caches::{CacheSets, SETS};
use super::claims::ResourceShares;
use super::types::Demand;
use crate::chip::{Chip, KIB};
use crate::machine::{CoreSpec, PrefetchScope, Scope};
use crate::math::interpolate;
use crate::phase::{LineEffect, MissCurve};
use crate::program::{PAGES, PhaseSpec, SetCurve};

/// Misses per instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Misses {
    /// Of data: L1D, L2, LLC, all LLC domains.
    pub(crate) data: [f64; 4],
    /// Of code: L1I, L2, LLC, all LLC domains.
    pub(crate) code: [f64; 4],
    /// Lines of code that are fetched along with the line before and are wanted while they are on
    /// their way.
    pub(crate) late_code: f64,
    /// Share of misses that prefetching removes if all prefetches find room, 0 to 1.
    pub(crate) covered: f64,
    /// Share of misses that it leaves, 0 to 1.
    pub(crate) exposed: f64,
    /// Data misses of the L2 that are waited for.
    pub(crate) demand_l2: f64,
    /// Memory misses that are waited for.
    pub(crate) demand: f64,
    /// Lines prefetched.
    pub(crate) prefetched: f64,
    /// Lines that would be prefetched if all prefetches found room.
    pub(crate) wanted: f64,
    /// Lines written back.
    pub(crate) written: f64,
    /// Lines to and from memory.
    pub(crate) lines: f64,
    /// Mispredicted branches.
    pub(crate) branch: f64,
    pub(crate) tlb: f64,
    /// Loads from pages that only the last level of the TLB has.
    pub(crate) far_pages: f64,
}

/// Shares of prefetching that siblings on one prefetcher leave to a thread, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PrefetchShares {
    /// Share of the lines that are used.
    pub(crate) useful: f64,
    /// Share of the lines that are brought in vain.
    pub(crate) excess: f64,
}

impl PrefetchShares {
    /// For a thread without siblings on its prefetcher.
    pub(crate) const WHOLE: Self = Self {
        useful: 1.0,
        excess: 1.0,
    };
}

/// A thread's miss curves on its chip, and its prefetcher.
#[derive(Clone, Debug)]
pub(crate) struct MissModel<'a> {
    phase: &'a PhaseSpec,
    intensity: f64,
    /// For lines as long as the machine's.
    pub(crate) data_curve: &'a MissCurve,
    pub(crate) code_curve: &'a MissCurve,
    line_bytes: f64,
    pub(crate) data_lines: LineEffect,
    code_lines: LineEffect,
    /// Effective capacities that lines of code find in the sets of the L1I.
    sets: CacheSets,
    /// Capacity of the L1I, bytes of the curve.
    l1i_bytes: f64,
    /// Lines that the thread misses in it without co-runners by its curve, per instruction.
    l1i_missed: f64,
    /// Lines in a set of the L1D, the L2 and the L1I.
    ways: [u32; 3],
    /// TLB misses per instruction. They depend on pages, not on the length of lines, and on
    /// nothing that co-runners change.
    tlb: f64,
    /// Loads per instruction from pages that only the TLB's last level has.
    far_pages: f64,
    /// Share of the sequential misses that the prefetcher covers, 0 to 1.
    coverage: f64,
    /// Share of misses that prefetching removes; negative if it adds misses.
    prefetch_effect: f64,
    /// Lines that the prefetcher fetches ahead; 1 without one.
    prefetch_depth: f64,
    /// True if prefetched lines come into the L2: those of a core's or an L2's own prefetchers do,
    /// those of an LLC's wait there.
    prefetches_to_l2: bool,
    siblings: PrefetchShares,
}

impl<'a> MissModel<'a> {
    pub(super) fn new(
        chip: &Chip,
        demand: &'a Demand,
        core: &CoreSpec,
        on_core: f64,
        siblings: PrefetchShares,
    ) -> Self {
        let phase = &demand.phase;
        let line_bytes = f64::from(chip.spec().memory.line_bytes);
        let data_lines = LineEffect::for_data(&phase.spec, line_bytes);
        let prefetcher = core.prefetcher.as_ref();
        let coverage = prefetcher.map_or(0.0, |p| p.coverage);
        let effect = phase.spec.prefetch.effectiveness * coverage;
        let reach = tlb_bytes(core, core.tlb.entries, on_core);
        let tlb = phase.data.mpki(reach) * demand.intensity * phase.spec.page_spread / 1000.0;
        let first = core.tlb.first_entries.zip(phase.spec.page_mpki);
        let first = first.map_or(0.0, |(entries, mpki)| {
            let pages = tlb_bytes(core, entries, on_core) / MEASURED_PAGE;
            interpolate(&PAGES, &mpki, pages) * demand.intensity / 1000.0
        });
        let code_curve = phase.code_for(line_bytes);
        let code_lines = LineEffect::for_code(&phase.spec, line_bytes);
        let sets = CacheSets::from_ways(core.l1i.ways);
        let l1i_bytes = core.l1i.size_kib * KIB / code_lines.space;
        let mut held = [0.0; SETS];
        for (held, share) in held.iter_mut().zip(sets.capacities()) {
            *held = share * l1i_bytes;
        }
        Self {
            phase: &phase.spec,
            intensity: demand.intensity,
            data_curve: phase.data_for(line_bytes),
            code_curve,
            line_bytes,
            data_lines,
            code_lines,
            l1i_bytes,
            l1i_missed: sets.misses(code_curve, held),
            sets,
            ways: [
                core.l1d.ways,
                core.l2.as_ref().unwrap_or(&core.l1d).ways,
                core.l1i.ways,
            ],
            tlb,
            far_pages: (first - tlb).max(0.0),
            coverage,
            // Lines longer than the curves' have left less that is in sequence.
            prefetch_effect: if effect > 0.0 {
                effect / data_lines.space
            } else {
                effect
            },
            prefetch_depth: prefetcher.map_or(1.0, |p| f64::from(p.depth_lines)),
            prefetches_to_l2: core.l2.is_some()
                && prefetcher.is_some_and(|p| p.per != PrefetchScope::Llc),
            siblings,
        }
    }

    /// The effect of the line length on misses of code, or of data.
    pub(crate) fn lines(&self, code: bool) -> LineEffect {
        if code {
            self.code_lines
        } else {
            self.data_lines
        }
    }

    /// Misses of a thread that holds these bytes and mispredicts so many branches per instruction.
    pub(super) fn misses(&self, held: &ResourceShares, branch: f64) -> Misses {
        // LLCs spread lines over their sets by hashes.
        let conflicts = self.phase.data_conflicts.as_ref();
        let conflicts = |level: usize, bytes: f64| match (conflicts, self.ways.get(level)) {
            (Some(curve), Some(&ways)) if level < 2 => curve.conflicts(bytes, ways),
            _ => 0.0,
        };
        let data = misses_by_level(self.data_curve, held.data, self.intensity, conflicts);
        let data = data.map(|misses| misses * self.data_lines.misses);
        // Where a level is missing, what is beyond the L1I counts as missed by it.
        let [_, l2, llc, all] = held.code;
        let [_, l1i, _] = held.code_l1i;
        let mut code = misses_by_level(self.code_curve, [l1i, l2, llc, all], 1.0, |_, _| 0.0);
        let lines = &self.code_lines;
        let next = lines.misses * lines.not_next;
        code = code.map(|misses| misses * next);
        let missed = self.sets.misses(self.code_curve, held.code_l1i);
        let followed = (1.0 - lines.not_next) / lines.not_next.max(1e-3);
        let (l1i, late_code) = match &self.phase.next_lines {
            // Measured in a cache of this size. What a thread holds of it next to others is no cache of
            // that size, so that what they add follows from the curve.
            Some(measured) => {
                let of = |curve: &SetCurve| {
                    lines.misses * curve.lines(self.l1i_bytes, self.ways[2]) / 1000.0
                };
                let added = next * (missed - self.l1i_missed).max(0.0);
                (
                    of(&measured.missed) + added,
                    of(&measured.late) + added * followed,
                )
            }
            None => (next * missed, next * missed * followed),
        };
        code[0] = l1i.max(code[1]);
        // No miss brings more late lines than follow it; those beyond the measured bring as many.
        let late_code = late_code.min(l1i * followed) + (code[0] - l1i) * followed;
        let whole = self.prefetch_effect;
        let effect = whole.min(whole * held.prefetching);
        let beyond = data[3];
        let waited = (1.0 - effect).max(0.0);
        let demand = beyond * waited;
        let excess = beyond * self.phase.prefetch.excess * self.coverage * self.siblings.excess;
        let wanted = beyond * whole.max(0.0) * self.siblings.useful + excess;
        let excess = excess * held.prefetching;
        let prefetched = wanted * held.prefetching;
        let fetched = demand + prefetched + code[3];
        // Lines brought in vain are not written to.
        let written = self.phase.writeback_share * (demand + prefetched - excess);
        Misses {
            data,
            code,
            late_code,
            covered: whole.clamp(0.0, 1.0),
            exposed: 1.0 - effect.clamp(0.0, 1.0),
            demand_l2: if self.prefetches_to_l2 {
                data[1] * waited
            } else {
                data[1]
            },
            demand,
            prefetched,
            wanted,
            written,
            lines: fetched + written,
            branch,
            tlb: self.tlb,
            far_pages: self.far_pages,
        }
    }

    /// Waits for a line that are felt, per instruction: each for as many lines as wait together.
    pub(super) fn felt_lines(&self, misses: &Misses, mlp: f64) -> f64 {
        let depth = self.prefetch_depth.max(mlp);
        misses.demand / mlp + misses.prefetched / depth + misses.code[3]
    }

    /// Cycles from the fetch of a line of code along with the line before until it is wanted: the
    /// ones that the line before takes to run at so many cycles per instruction. A branch to the line
    /// before skips half of it.
    pub(super) fn next_line_run(&self, pace: f64) -> f64 {
        let instructions = self.line_bytes / self.phase.code_bytes();
        let followed = 1.0 - self.code_lines.not_next;
        instructions * (0.5 + 0.5 * followed) * pace
    }
}

/// Misses per instruction at rising capacities, with the ones that conflicts add at each level; a
/// larger level never misses more.
fn misses_by_level(
    curve: &MissCurve,
    held: [f64; 4],
    intensity: f64,
    conflicts: impl Fn(usize, f64) -> f64,
) -> [f64; 4] {
    let (mut largest, mut missed) = (0.0, curve.mpki(0.0));
    core::array::from_fn(|level| {
        if held[level] > largest {
            largest = held[level];
            missed = missed.min(curve.mpki(largest) + conflicts(level, largest));
        }
        missed * intensity / 1000.0
    })
}

/// Bytes of a page for which [`PAGES`] are measured.
const MEASURED_PAGE: f64 = 4096.0;

/// Reach of so many entries of a core's TLB for one of the CPUs in use, bytes.
fn tlb_bytes(core: &CoreSpec, entries: u32, on_core: f64) -> f64 {
    let sharers = match core.tlb.per {
        Scope::Pu => 1.0,
        Scope::Core => on_core,
    };
    f64::from(entries) * core.tlb.page_kib * KIB / sharers
}
