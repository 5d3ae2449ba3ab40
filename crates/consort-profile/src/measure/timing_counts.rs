//! Counts of the schedules with latencies, and the figures that follow from them.

use super::pipelines::{DIVIDERS, DividerCycles};
use super::pipelines::{MISS_CYCLES, PACES, PipelineCounts, UNINTERRUPTED_WIDTHS};
use super::{FEW_MPKI, PartialTally};

/// Operations per turn for which turns of fetch are counted.
pub const FETCH_WIDTHS: [u64; 4] = [4, 6, 8, 12];

/// Times of the schedules, and the resolution of mispredicted branches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimingCounts {
    /// Mispredicted branches.
    pub branches: PipelineCounts,
    /// Cycles from entering the window to execution, over all operations.
    pub waiting: u64,
    /// Cycles from entering the window to leaving it, over all operations.
    pub staying: u64,
    /// The same for operations that pass a floating-point scheduler.
    pub fp: SchedulerCounts,
    /// Cycles in all.
    pub time: u64,
    /// The same for each pipeline that never stops.
    pub paced: [u64; PACES],
    /// Operations in that time.
    pub operations: u64,
    /// Cycles in all with one divider.
    pub divided: DividerCycles,
    /// Turns of fetch that bring as many operations as each of [`FETCH_WIDTHS`] and end at a taken
    /// branch.
    pub turns: [u64; FETCH_WIDTHS.len()],
    /// Instructions in them.
    pub fetched: u64,
}

/// Operations that pass a floating-point scheduler: arithmetic and moves of floating-point and
/// vector registers, their loads and stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedulerCounts {
    /// Cycles from entering the window to execution, over all operations.
    pub waiting: u64,
    /// Cycles from entering the window to leaving it, over all operations.
    pub staying: u64,
    /// Cycles in which at least one waits.
    pub present: u64,
}

impl SchedulerCounts {
    /// Share of their time in the window that they wait for operands, 0 to 1; `None` if there are
    /// none.
    #[must_use]
    pub fn waiting_share(&self) -> Option<f64> {
        (self.staying > 0).then(|| self.waiting as f64 / self.staying as f64)
    }
}

impl PartialTally for TimingCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.branches.merge(&other.branches, with);
        self.waiting.merge(&other.waiting, with);
        self.staying.merge(&other.staying, with);
        self.fp.waiting.merge(&other.fp.waiting, with);
        self.fp.staying.merge(&other.fp.staying, with);
        self.fp.present.merge(&other.fp.present, with);
        self.time.merge(&other.time, with);
        self.paced.merge(&other.paced, with);
        self.operations.merge(&other.operations, with);
        self.divided.merge(&other.divided, with);
        self.turns.merge(&other.turns, with);
        self.fetched.merge(&other.fetched, with);
    }
}

impl TimingCounts {
    /// Share of the instructions in the window that wait for operands, 0 to 1.
    #[must_use]
    pub fn waiting_share(&self) -> f64 {
        self.waiting as f64 / self.staying.max(1) as f64
    }

    /// Evenness at which operations that pass a floating-point scheduler come, 0 to 1. If they came
    /// at random, none of n that wait on average would be present in e^(−n) of the time; with this
    /// share s it is e^(−s·n). `None` if none wait, or one always does.
    #[must_use]
    pub fn fp_spread(&self) -> Option<f64> {
        let time = self.time.max(1) as f64;
        let (present, waiting) = (self.fp.present as f64 / time, self.fp.waiting as f64 / time);
        let spread = -(-present).ln_1p() / waiting;
        (waiting > 0.0 && present < 1.0).then(|| spread.clamp(0.0, 1.0))
    }

    /// Unevenness by width of dispatch, 0 to 1. 0: dispatch and the longest chain limit all windows alike, so that a
    /// pipeline takes the longer of their times a and b. 1: each limits windows of its own, so that
    /// the pipeline takes both. With the time c that it takes it is `(c − a)(c − b) / ab`, so that
    /// `c = (a + b + √((a − b)² + 4k·ab)) / 2`.
    #[must_use]
    pub fn unevenness(&self) -> [f64; UNINTERRUPTED_WIDTHS.len()] {
        let chain = self.time as f64;
        std::array::from_fn(|at| {
            let dispatch = self.operations as f64 / UNINTERRUPTED_WIDTHS[at] as f64;
            let both = self.paces(at)[0] as f64;
            let product = (dispatch * chain).max(1.0);
            ((both - dispatch).max(0.0) * (both - chain).max(0.0) / product).min(1.0)
        })
    }

    /// Cycles of the pipelines of a width that never stop.
    fn paces(&self, width: usize) -> [u64; 1 + MISS_CYCLES.len()] {
        const EACH: usize = 1 + MISS_CYCLES.len();
        std::array::from_fn(|at| self.paced[width * EACH + at])
    }

    /// Cycles that a load that misses a cache of 32 KiB costs, if it takes 10 and 40 cycles more
    /// than one that hits, by width of dispatch; `None` if fewer than [`FEW_MPKI`] of a thousand operations miss.
    #[must_use]
    pub fn miss_costs(&self) -> Option<[[f64; MISS_CYCLES.len()]; UNINTERRUPTED_WIDTHS.len()]> {
        let missed = self.branches.missed as f64;
        let few = FEW_MPKI / 1000.0 * self.operations as f64;
        let of_width = |width: usize| {
            let [plain, longer @ ..] = self.paces(width);
            longer.map(|longer| longer.saturating_sub(plain) as f64 / missed)
        };
        (missed > few).then(|| std::array::from_fn(of_width))
    }

    /// Turns of fetch per instruction; `None` if no run has ended.
    #[must_use]
    pub fn fetch_turns(&self) -> Option<[f64; FETCH_WIDTHS.len()]> {
        let each = |turns: u64| turns as f64 / self.fetched as f64;
        (self.fetched > 0).then(|| self.turns.map(each))
    }

    /// Share by which the longest chain gets longer with one divider.
    #[must_use]
    pub fn lengthening(&self) -> [[f64; DIVIDERS.len()]; 2] {
        let time = self.time.max(1) as f64;
        let longer = |&cycles: &u64| (cycles as f64 / time - 1.0).max(0.0);
        self.divided.map(|each| each.map(|cycles| longer(&cycles)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn miss_costs_need_enough_misses() {
        let of = |missed| TimingCounts {
            branches: PipelineCounts {
                missed,
                ..Default::default()
            },
            paced: [
                5_000,
                5_000 + 2 * missed,
                5_000 + 30 * missed,
                3_000,
                3_000 + 4 * missed,
                3_000 + 32 * missed,
            ],
            operations: 100_000,
            ..Default::default()
        };
        assert_eq!(of(6).miss_costs(), Some([[2.0, 30.0], [4.0, 32.0]]));
        assert_eq!(of(5).miss_costs(), None);
    }
}
