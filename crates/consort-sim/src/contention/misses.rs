//! Misses per instruction, given what a thread holds of every cache and of the predictor.

use super::thread_setting::{ResourceShares, ThreadSetting};
use crate::chip::KIB;
use crate::machine::detail::PredictorKind;
use crate::machine::{CoreSpec, Scope};
use crate::math::{interpolate, pow};
use crate::phase::MissCurve;
use crate::program::{PREDICTOR_KIB, REFERENCE_PREDICTOR_KIB, TARGET_ENTRIES};

/// Misses per instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Misses {
    /// Of data: L1D, L2, LLC, all LLC domains.
    pub(crate) data: [f64; 4],
    /// Of code: L1I, L2, LLC, all LLC domains.
    pub(crate) code: [f64; 4],
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
    /// Branches.
    pub(crate) branch: f64,
    /// TLB.
    pub(crate) tlb: f64,
}

impl ThreadSetting<'_> {
    /// TLB misses per instruction, which depend on nothing that co-runners change, and on pages,
    /// not on the length of lines.
    pub(super) fn tlb_misses(&self) -> f64 {
        let phase = &self.demand.phase;
        let reach = tlb_bytes(self.core, self.on_core);
        phase.data.mpki(reach) * self.demand.intensity * phase.spec.page_spread / 1000.0
    }

    /// Mispredictions per instruction with so much of the predictor.
    pub(super) fn mispredictions(&self, kib: f64) -> f64 {
        let branch = &self.demand.phase.spec.branch;
        let measured = match self.core.branch_predictor.kind {
            Some(PredictorKind::Tage) => branch.tagged_mpki,
            _ => branch.gshare_mpki,
        };
        let kib = kib.max(1e-3);
        let mpki = match measured {
            Some(points) => interpolate(&PREDICTOR_KIB, &points, kib),
            None => branch.mpki * pow(REFERENCE_PREDICTOR_KIB / kib, branch.capacity_exponent),
        };
        let mpki = mpki + self.lost_targets_mpki(kib);
        (mpki * self.demand.intensity / 1000.0).min(self.mix().branch)
    }

    /// Mispredictions per kilo-instruction for want of room in a table of targets that keeps those of
    /// indirect branches alone, by address. Of the table a thread has the same part as of the
    /// predictor, and an equal share at least: what it uses often stays.
    fn lost_targets_mpki(&self, kib: f64) -> f64 {
        let predictor = &self.core.branch_predictor;
        let points = self.demand.phase.spec.branch.target_mpki;
        let (Some(points), Some(targets)) = (points, predictor.targets) else {
            return 0.0;
        };
        let is_direct_computed = predictor.taken_bubble_cycles.is_some();
        if predictor.kind == Some(PredictorKind::Tage) || !is_direct_computed {
            return 0.0;
        }
        let part = (kib / predictor.size_kib).max(1.0 / self.on_core);
        let lost = interpolate(&TARGET_ENTRIES, &points, f64::from(targets) * part);
        (lost - points[TARGET_ENTRIES.len() - 1]).max(0.0)
    }

    pub(super) fn misses(&self, held: &ResourceShares) -> Misses {
        let phase = &self.demand.phase;
        let data = misses_by_level(self.data_curve, held.data, self.demand.intensity);
        let data = data.map(|misses| misses * self.data_lines.misses);
        // Where a level is missing, what is beyond the L1I counts as missed by it.
        let [_, l2, llc, all] = held.code;
        let [_, l1i, _] = held.code_l1i;
        let mut code = misses_by_level(self.code_curve, [l1i, l2, llc, all], 1.0);
        code[0] = self
            .sets
            .misses(self.code_curve, held.code_l1i)
            .max(code[1]);
        let code = code.map(|misses| misses * self.code_lines.misses * self.code_lines.not_next);
        let spec = &phase.spec;
        let coverage = self.coverage();
        let whole = self.prefetch_effect();
        let effect = whole.min(whole * held.prefetching);
        let beyond = data[3];
        let waited = (1.0 - effect).max(0.0);
        let demand = beyond * waited;
        let excess = beyond * spec.prefetch.excess * coverage * self.prefetching.excess;
        let wanted = beyond * whole.max(0.0) * self.prefetching.useful + excess;
        let excess = excess * held.prefetching;
        let prefetched = wanted * held.prefetching;
        let fetched = demand + prefetched + code[3];
        let written = spec.writeback_share * (demand + prefetched - excess);
        Misses {
            data,
            code,
            covered: whole.clamp(0.0, 1.0),
            exposed: 1.0 - effect.clamp(0.0, 1.0),
            demand_l2: if self.prefetches_to_l2() {
                data[1] * waited
            } else {
                data[1]
            },
            demand,
            prefetched,
            wanted,
            written,
            lines: fetched + written,
            branch: if held.predictor_kib == self.core.branch_predictor.size_kib {
                self.mispredicted
            } else {
                self.mispredictions(held.predictor_kib)
            },
            tlb: self.tlb,
        }
    }
}

/// Misses per instruction at rising capacities; a larger level never misses more.
fn misses_by_level(curve: &MissCurve, held: [f64; 4], intensity: f64) -> [f64; 4] {
    let (mut largest, mut missed) = (0.0, curve.mpki(0.0));
    held.map(|bytes| {
        if bytes > largest {
            largest = bytes;
            missed = curve.mpki(largest);
        }
        missed * intensity / 1000.0
    })
}

/// TLB reach of one of `sharers` PUs, bytes.
fn tlb_bytes(core: &CoreSpec, on_core: f64) -> f64 {
    let sharers = match core.tlb.per {
        Scope::Pu => 1.0,
        Scope::Core => on_core,
    };
    f64::from(core.tlb.entries) * core.tlb.page_kib * KIB / sharers
}
