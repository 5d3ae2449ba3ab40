//! Model pipelines that stop dispatching behind mispredicted branches.
//!
//! For each scheme of predictors a pipeline with a window of 128 instructions dispatches four
//! operations per cycle and stops from the dispatch of a mispredicted branch until it is resolved
//! and for twelve cycles more. Cycles from dispatch to resolution are the cost of such a branch in
//! addition to refilling the front end (Eyerman, Eeckhout, Karkhanis and Smith, TOCS 2009, section
//! 4.2). Three variants show what changes this cost: two dispatch two operations per cycle and one,
//! so that branches are dispatched later and part of their wait is over by then; in the third,
//! loads that miss a cache of 32 KiB take ten cycles more. Three more pipelines, four wide, and three
//! eight wide never stop. If the first of three is slower than both dispatch and the longest chain,
//! each of the two limits it in places; in the others, loads that miss take longer.
//!
//! Effect on the data flow of dividers that take one division at a time.
//!
//! Divisions come in groups: in a loop with several they wait for each other, however few they are
//! on average. The schedule of [`super::timing`] is therefore repeated with one divider that each
//! division occupies for 4, 8, 16 or 32 cycles, once for integer divisions and once for
//! floating-point ones with square roots. Several dividers that are occupied for longer count as
//! one that is occupied for less.

use consort_ops::{Op, OpKind};

use super::PartialTally;
use super::branches::SCHEMES;

/// Number of pipelines: every variant of every scheme, and the ones that never stop.
pub(super) const PIPELINES: usize = UNINTERRUPTED + PACES;
/// Number of pipelines that never stop.
pub(super) const PACES: usize = UNINTERRUPTED_WIDTHS.len() * (1 + MISS_CYCLES.len());
/// Additional cycles of loads that miss, in all but the first of each width.
pub const MISS_CYCLES: [u64; 2] = [10, 40];
/// Position of the first pipeline that never stops.
pub(super) const UNINTERRUPTED: usize = VARIANTS * SCHEMES.len();
/// Operations per cycle of pipelines that never stop.
pub const UNINTERRUPTED_WIDTHS: [u64; 2] = [4, 8];
/// A cycle of each pipeline, variant by variant, each by [`SCHEMES`].
pub(super) type PerPipeline = [u64; PIPELINES];

const VARIANTS: usize = 4;
/// Operations that each pipeline dispatches per cycle.
const WIDTHS: PerPipeline = {
    let [four, eight] = UNINTERRUPTED_WIDTHS;
    [
        4, 4, 2, 2, 1, 1, 4, 4, four, four, four, eight, eight, eight,
    ]
};
/// Cycles that each adds to a load that misses the small cache.
const MISS: PerPipeline = {
    let [near, far] = MISS_CYCLES;
    [0, 0, 0, 0, 0, 0, 10, 10, 0, near, far, 0, near, far]
};
const REFILL: u64 = 12;

/// Cycles between dispatch and resolution of mispredicted branches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PipelineCounts {
    /// Mispredicted branches, by scheme.
    pub interruptions: [u64; SCHEMES.len()],
    /// Cycles from their dispatch to their results, by variant and scheme.
    pub resolution: [[u64; SCHEMES.len()]; VARIANTS],
    /// Loads that miss the small cache.
    pub missed: u64,
}

impl PartialTally for PipelineCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.interruptions.merge(&other.interruptions, with);
        self.resolution.merge(&other.resolution, with);
        self.missed.merge(&other.missed, with);
    }
}

/// Behaviour of mispredicted branches of one scheme of predictors; means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// Cycles from dispatch to result.
    pub cycles: f64,
    /// Shares of these cycles that are over before the branch is dispatched if dispatch is half and
    /// a quarter as wide, 0 to 1.
    pub absorbed: [f64; 2],
    /// Loads that miss a cache of 32 KiB for whose data the branch waits after its dispatch.
    pub misses: f64,
}

impl PipelineCounts {
    /// Behaviour of mispredicted branches by scheme, if there was one.
    #[must_use]
    pub fn resolution(&self) -> [Option<Resolution>; SCHEMES.len()] {
        std::array::from_fn(|scheme| {
            let count = self.interruptions[scheme] as f64;
            let cycles = self.resolution.map(|cycles| cycles[scheme] as f64);
            let [plain, half, quarter, missing] = cycles;
            let miss = MISS[UNINTERRUPTED - 1] as f64;
            (count > 0.0).then(|| Resolution {
                cycles: plain / count,
                absorbed: [half, quarter].map(|left| (1.0 - left / plain.max(1.0)).clamp(0.0, 1.0)),
                misses: (missing - plain).max(0.0) / miss / count,
            })
        })
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pipelines {
    /// Next dispatch slot of each; a cycle has as many as the pipeline is wide.
    slot: PerPipeline,
    cache: SmallCache,
    pub(super) counts: PipelineCounts,
}

impl Pipelines {
    /// Takes the next dispatch slots for an operation whose window is free at these cycles.
    #[inline]
    pub(super) fn enter(&mut self, free: PerPipeline) {
        for ((slot, free), width) in self.slot.iter_mut().zip(free).zip(WIDTHS) {
            *slot = (*slot).max(free * width) + 1;
        }
    }

    /// Executes an operation of this latency. `time` has the cycles at which its operands are
    /// ready, and then those at which its result is.
    #[inline]
    pub(super) fn execute(&mut self, op: &Op, latency: u64, counts: bool, time: &mut PerPipeline) {
        let missed = op.data.is_some_and(|data| !self.cache.access(data.address));
        let miss = u64::from(missed && op.kind == OpKind::Load);
        self.counts.missed += u64::from(counts) * miss;
        for (at, time) in time.iter_mut().enumerate() {
            *time = (*time).max(self.slot[at] / WIDTHS[at]) + latency + miss * MISS[at];
        }
    }

    /// Stops dispatch behind branches that are mispredicted, by scheme, and resolved at these
    /// cycles.
    pub(super) fn interrupt(
        &mut self,
        wrong: [bool; SCHEMES.len()],
        time: &PerPipeline,
        counts: bool,
    ) {
        for (scheme, _) in wrong.into_iter().enumerate().filter(|(_, wrong)| *wrong) {
            self.counts.interruptions[scheme] += u64::from(counts);
            for variant in 0..VARIANTS {
                let at = variant * SCHEMES.len() + scheme;
                let dispatched = self.slot[at] / WIDTHS[at];
                self.slot[at] = (time[at] + REFILL) * WIDTHS[at];
                self.counts.resolution[variant][scheme] +=
                    u64::from(counts) * (time[at] - dispatched);
            }
        }
    }
}

const SETS: usize = 64;
const WAYS: usize = 8;

/// A cache of 32 KiB with lines of 64 bytes; each set is ordered by last use.
#[derive(Debug, Clone)]
struct SmallCache(Box<[[u64; WAYS]; SETS]>);

impl Default for SmallCache {
    fn default() -> Self {
        Self(Box::new([[u64::MAX; WAYS]; SETS]))
    }
}

impl SmallCache {
    /// Returns true if the line at an address was present; it is now.
    #[inline]
    fn access(&mut self, address: u64) -> bool {
        let line = address >> 6;
        let set = &mut self.0[line as usize % SETS];
        let at = set.iter().position(|&known| known == line);
        set[..=at.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = line;
        at.is_some()
    }
}

/// Cycles for which a division occupies the divider, in each schedule.
pub const DIVIDERS: [u64; 4] = [4, 8, 16, 32];

const COUNT: usize = DIVIDERS.len();

/// A cycle, or a number of cycles, in each schedule: those of integers, those of floating point.
pub type DividerCycles = [[u64; COUNT]; 2];

/// The divider that a kind of operation uses: 0 for integers, 1 for floating point; `None` if it
/// does not divide.
const fn divider_index(kind: OpKind) -> Option<usize> {
    match kind.usual() {
        OpKind::Divide => Some(0),
        OpKind::FpDivide => Some(1),
        _ => None,
    }
}

/// The cycle until which the divider of each schedule is occupied.
#[derive(Debug, Clone, Default)]
pub(super) struct Dividers {
    free: DividerCycles,
}

impl Dividers {
    /// Cycles at which the result is ready of an operation whose operands are ready at `start`.
    pub(super) fn schedule_op(
        &mut self,
        kind: OpKind,
        start: DividerCycles,
        latency: u64,
    ) -> DividerCycles {
        let mut done = start.map(|each| each.map(|cycle| cycle + latency));
        if let Some(kind) = divider_index(kind) {
            for (schedule, taken) in DIVIDERS.into_iter().enumerate() {
                let begin = start[kind][schedule].max(self.free[kind][schedule]);
                self.free[kind][schedule] = begin + taken;
                done[kind][schedule] = begin + latency.max(taken);
            }
        }
        done
    }
}

/// Makes every schedule wait for another value.
pub(super) fn raise_cycles(ready: &mut DividerCycles, other: &DividerCycles) {
    for (ready, other) in ready
        .as_flattened_mut()
        .iter_mut()
        .zip(other.as_flattened())
    {
        *ready = (*ready).max(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_line_makes_room() {
        let mut near = SmallCache::default();
        let of_set = |i: u64| i * (SETS as u64) * 64;
        assert!((0..8).all(|i| !near.access(of_set(i))));
        assert!(near.access(of_set(0) + 63));
        assert!(!near.access(of_set(8)));
        assert!(near.access(of_set(0)) && !near.access(of_set(1)));
    }

    #[test]
    fn no_branches_give_no_resolution() {
        assert_eq!(PipelineCounts::default().resolution(), [None; 2]);
    }
}
