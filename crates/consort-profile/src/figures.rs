//! Figures of a stretch of execution, as a program file has them, computed from counts.

use consort_ops::{LatencyClass, OpKind};

use crate::measure::{
    DIVIDERS, FETCH_WIDTHS, InstructionCounts, LostTargets, MemoryFigures, MeterCounts,
    Mispredictions, NEAR, PREDICTOR_KIB, Resolution, SCHEMES, SETS, WINDOWS,
};

/// The predictor, in KiB, for which a program file gives mispredictions, as an index of
/// [`PREDICTOR_KIB`].
pub(crate) const REFERENCE_PREDICTOR: usize = 3;

/// Index of the window of 128 instructions.
const WINDOW: usize = 3;

/// Measurements of a stretch of execution.
#[derive(Debug, Clone)]
pub struct ExecutionFigures {
    /// Instructions and operations.
    pub mix: InstructionCounts,
    /// Mixes of the most frequent kinds of short stretches.
    pub stretches: Vec<InstructionCounts>,
    /// Instructions per cycle in each of [`WINDOWS`].
    pub ilp: [f64; WINDOWS.len()],
    /// Long misses that overlap in each of [`WINDOWS`].
    pub mlp: [f64; WINDOWS.len()],
    /// Mean distance from a value to its first use, instructions.
    pub use_distance: f64,
    /// Mean distance from a load to the first use of what it loaded, instructions.
    pub load_use_distance: f64,
    /// Shares of values used first after 1, 2, ... [`NEAR`] instructions: computed ones, and loaded
    /// ones.
    pub near_uses: [[f64; NEAR]; 2],
    /// Mispredictions with each of [`PREDICTOR_KIB`], by scheme.
    pub mispredictions: Mispredictions,
    /// Mispredicted targets of indirect branches with each of
    /// [`TARGET_ENTRIES`](crate::measure::TARGET_ENTRIES).
    pub lost_targets: LostTargets,
    /// Operations of each [`LatencyClass`] on the chain that takes longest, per instruction of the
    /// longest chain, both in a window of 128.
    pub chain: [f64; LatencyClass::COUNT],
    /// Operations of each [`LatencyClass`] per instruction on the chains that take longest with each
    /// of [`SETS`] in each of [`WINDOWS`].
    pub chains: [[[f64; LatencyClass::COUNT]; WINDOWS.len()]; SETS.len()],
    /// Share of the instructions in a window of 128 that wait for operands, 0 to 1.
    pub waiting: f64,
    /// The same for instructions that pass a floating-point scheduler, if any do.
    pub waiting_fp: Option<f64>,
    /// [`TimingCounts::fp_spread`](crate::measure::TimingCounts::fp_spread).
    pub fp_spread: Option<f64>,
    /// Divisions of integers and of floating point.
    pub divisions: [DivisionFigures; 2],
    /// [`TimingCounts::unevenness`](crate::measure::TimingCounts::unevenness).
    pub unevenness: [f64; 2],
    /// [`TimingCounts::miss_costs`](crate::measure::TimingCounts::miss_costs).
    pub miss_costs: Option<[[f64; 2]; 2]>,
    /// [`TimingCounts::fetch_turns`](crate::measure::TimingCounts::fetch_turns).
    pub fetch_turns: Option<[f64; FETCH_WIDTHS.len()]>,
    /// Behaviour of mispredicted branches, by scheme, if there were any.
    pub resolution: [Option<Resolution>; SCHEMES.len()],
    /// Caches, prefetching and pages.
    pub memory: MemoryFigures,
}

/// Divisions of one sort of numbers, square roots among those of floating point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DivisionFigures {
    /// Per instruction.
    pub operations: f64,
    /// Share of them that are by 64 bits, or square roots, 0 to 1.
    pub slow: f64,
    /// Share by which the longest chain gets longer with one divider that each division occupies
    /// for as many cycles as [`DIVIDERS`] has.
    pub lengthening: [f64; DIVIDERS.len()],
}

/// Shares of instructions as a program file has them. An instruction that loads and computes on
/// general registers counts as the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstructionShares {
    /// Floating point.
    pub fp: f64,
    /// Vectors of integers, and moves between vector registers.
    pub vector: f64,
    /// Everything else.
    pub int: f64,
    /// Loads.
    pub load: f64,
    /// Stores.
    pub store: f64,
    /// Branches.
    pub branch: f64,
}

impl ExecutionFigures {
    pub(crate) fn from_counts(counts: &MeterCounts) -> Self {
        Self {
            mix: counts.mix.clone(),
            stretches: counts.stretches.mixes(),
            ilp: counts.dataflow.ilp(),
            mlp: counts.dataflow.mlp(),
            use_distance: counts.distances.mean(),
            load_use_distance: counts.distances.mean_of_loads(),
            near_uses: counts.distances.near_shares(),
            mispredictions: counts.mispredictions,
            lost_targets: counts.lost_targets,
            memory: counts.memory.figures(),
            chain: chain(counts),
            chains: counts.chains.chains(),
            waiting: counts.timing.waiting_share(),
            waiting_fp: counts.timing.fp.waiting_share(),
            fp_spread: counts.timing.fp_spread(),
            divisions: divisions(counts),
            unevenness: counts.timing.unevenness(),
            miss_costs: counts.timing.miss_costs(),
            fetch_turns: counts.timing.fetch_turns(),
            resolution: counts.timing.branches.resolution(),
        }
    }

    /// Shares of the mix; they sum to 1.
    #[must_use]
    pub fn shares(&self) -> InstructionShares {
        let mix = &self.mix;
        let of = |is: fn(OpKind) -> bool| {
            mix.share(is) * mix.operation_count() as f64 / mix.instructions.max(1) as f64
        };
        let raw = [
            of(OpKind::is_floating),
            of(|kind| kind.is_vector_side() && !kind.is_floating()),
            of(|kind| kind == OpKind::Load),
            of(|kind| kind == OpKind::Store),
            of(|kind| kind == OpKind::Branch),
        ];
        // String instructions have many accesses each, so the sum can exceed 1. Files have four
        // decimals; `int` takes the rounding errors.
        let sum = raw.iter().sum::<f64>().max(1.0);
        let [fp, vector, load, store, branch] = raw.map(|share| (share / sum * 1e4).round() / 1e4);
        let int = (1.0 - fp - vector - load - store - branch).max(0.0);
        InstructionShares {
            fp,
            vector,
            int,
            load,
            store,
            branch,
        }
    }

    /// The law of ILP against the window.
    #[must_use]
    pub fn ilp_law(&self) -> PowerLaw {
        fit_law(&WINDOWS.map(|window| window as f64), &self.ilp)
    }

    /// Mispredictions per kilo-instruction with each of [`PREDICTOR_KIB`], by [`SCHEMES`]. A larger
    /// predictor that mispredicted more counts as the smaller one, which it could be used as.
    #[must_use]
    pub fn branch_mpki(&self) -> [[f64; PREDICTOR_KIB.len()]; SCHEMES.len()] {
        self.mispredictions
            .map(|scheme| self.falling_mpki(scheme.alone))
    }

    /// The same next to a stranger, at least as many as alone.
    #[must_use]
    pub fn shared_mpki(&self) -> [[f64; PREDICTOR_KIB.len()]; SCHEMES.len()] {
        self.mispredictions.map(|scheme| {
            let mut shared = self.falling_mpki(scheme.shared);
            let alone = self.falling_mpki(scheme.alone);
            { shared.iter_mut().zip(alone) }
                .for_each(|(shared, alone)| *shared = shared.max(alone));
            shared
        })
    }

    fn falling_mpki(&self, missed: [u64; PREDICTOR_KIB.len()]) -> [f64; PREDICTOR_KIB.len()] {
        let mut least = u64::MAX;
        missed.map(|missed| {
            least = least.min(missed);
            self.per_kilo(least)
        })
    }

    /// Mispredictions per kilo-instruction of a tagged predictor of 32 KiB.
    #[must_use]
    pub fn misprediction_mpki(&self) -> f64 {
        self.branch_mpki()[0][REFERENCE_PREDICTOR]
    }

    /// A count per thousand instructions.
    #[must_use]
    pub fn per_kilo(&self, count: u64) -> f64 {
        1000.0 * count as f64 / self.mix.instructions.max(1) as f64
    }
}

/// The first of [`SETS`] has the latencies of the core on which chains are measured.
fn chain(counts: &MeterCounts) -> [f64; LatencyClass::COUNT] {
    let parallelism = counts.dataflow.ilp()[WINDOW];
    counts.chains.chains()[0][WINDOW].map(|amount| amount * parallelism)
}

fn divisions(counts: &MeterCounts) -> [DivisionFigures; 2] {
    let instructions = counts.mix.instructions.max(1) as f64;
    let of = |usual: OpKind, slow: OpKind, lengthening| {
        let [usual, slow] = [usual, slow].map(|kind| counts.mix.kind_count(kind) as f64);
        DivisionFigures {
            operations: (usual + slow) / instructions,
            slow: slow / (usual + slow).max(1.0),
            lengthening,
        }
    };
    let [integers, fp] = counts.timing.lengthening();
    [
        of(OpKind::Divide, OpKind::WideDivide, integers),
        of(OpKind::FpDivide, OpKind::SquareRoot, fp),
    ]
}

/// The power law of measured values; constant and 0 if nothing was measured.
pub(crate) fn fit_law(x: &[f64], y: &[f64]) -> PowerLaw {
    let points: Vec<_> = x.iter().copied().zip(y.iter().copied()).collect();
    power_law(&points).unwrap_or(PowerLaw {
        factor: 0.0,
        exponent: 0.0,
        error: 0.0,
    })
}

/// y = factor·x^exponent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    /// y at x = 1.
    pub factor: f64,
    /// Steepness of the curve.
    pub exponent: f64,
    /// Largest relative distance of a point from the law.
    pub error: f64,
}

/// The power law of least squares in logarithms. Points with a coordinate that is not positive are
/// left out; a single point gives a constant; `None` if no point is left.
fn power_law(points: &[(f64, f64)]) -> Option<PowerLaw> {
    let usable = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let logs: Vec<_> = usable.clone().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    if logs.is_empty() {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let exponent = if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    };
    let factor = (mean_y - exponent * mean_x).exp();
    let off = |(x, y): &(f64, f64)| (factor * x.powf(exponent) / y - 1.0).abs();
    Some(PowerLaw {
        factor,
        exponent,
        error: usable.map(off).fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_law_is_found() {
        let points: Vec<_> = [16.0, 64.0, 256.0]
            .map(|x: f64| (x, 1.5 * x.powf(0.4)))
            .into();
        let law = power_law(&points).unwrap();
        assert!((law.factor - 1.5).abs() < 1e-9 && (law.exponent - 0.4).abs() < 1e-9);
        assert!(law.error < 1e-9);
        assert_eq!(power_law(&[(0.0, 1.0)]), None);
        assert_eq!(power_law(&[(4.0, 2.0)]).unwrap().exponent, 0.0);
    }
}
