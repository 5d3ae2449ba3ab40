//! Figures of a stretch of execution, and those of a program file, worked out from its counts.

use consort_ops::OpKind;

use crate::measure::{
    DIVIDERS, InstructionCounts, LATENCIES, LostTargets, MemoryFigures, MeterCounts,
    Mispredictions, NEAR, PREDICTOR_KIB, PowerLaw, Resolution, SCHEMES, WINDOWS, power_law,
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
    /// Shares of values used first after 1, 2, ... [`NEAR`] instructions: computed, and loaded.
    pub near_uses: [[f64; NEAR]; 2],
    /// Mispredictions with each of [`PREDICTOR_KIB`], by scheme.
    pub mispredictions: Mispredictions,
    /// Mispredicted targets of indirect branches with each of
    /// [`TARGET_ENTRIES`](crate::measure::TARGET_ENTRIES).
    pub lost_targets: LostTargets,
    /// Operations of each class of [`LATENCIES`] on the chain that takes longest, per instruction
    /// of the chain of most instructions, both in a window of 128.
    pub chain: [f64; LATENCIES.len()],
    /// Share of the instructions in a window of 128 that wait for operands, 0 to 1.
    pub waiting: f64,
    /// The same of those that pass a floating-point scheduler, if any do.
    pub waiting_fp: Option<f64>,
    /// [`TimingCounts::fp_spread`](crate::measure::TimingCounts::fp_spread).
    pub fp_spread: Option<f64>,
    /// Divisions per instruction of integers and of floating point, and by what share the longest
    /// chain gets longer with one divider that each takes for as many cycles as [`DIVIDERS`] has.
    pub divisions: [(f64, [f64; DIVIDERS.len()]); 2],
    /// [`TimingCounts::unevenness`](crate::measure::TimingCounts::unevenness).
    pub unevenness: f64,
    /// [`TimingCounts::miss_costs`](crate::measure::TimingCounts::miss_costs).
    pub miss_costs: Option<[f64; 2]>,
    /// Behaviour of mispredicted branches, by scheme, if there were any.
    pub resolution: [Option<Resolution>; SCHEMES.len()],
    /// Caches, prefetching and pages.
    pub memory: MemoryFigures,
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
            waiting: counts.timing.waiting_share(),
            waiting_fp: counts.timing.fp.waiting_share(),
            fp_spread: counts.timing.fp_spread(),
            divisions: divisions(counts),
            unevenness: counts.timing.unevenness(),
            miss_costs: counts.timing.miss_costs(),
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
            of(|kind| matches!(kind, OpKind::Vector | OpKind::VectorMove)),
            of(|kind| kind == OpKind::Load),
            of(|kind| kind == OpKind::Store),
            of(|kind| kind == OpKind::Branch),
        ];
        // Strings have many accesses per instruction.
        let sum = raw.iter().sum::<f64>().max(1.0);
        let [fp, vector, load, store, branch] = raw.map(|share| round_share(share / sum));
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

    /// Mispredictions per kilo-instruction with each of [`PREDICTOR_KIB`], by
    /// [`SCHEMES`].
    #[must_use]
    pub fn branch_mpki(&self) -> [[f64; PREDICTOR_KIB.len()]; SCHEMES.len()] {
        let per_kilo = |missed| self.per_kilo(missed);
        self.mispredictions.map(|scheme| scheme.map(per_kilo))
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

fn chain(counts: &MeterCounts) -> [f64; LATENCIES.len()] {
    let longest = counts.dataflow.cycles()[WINDOW].max(1) as f64;
    counts.timing.path.map(|count| count as f64 / longest)
}

fn divisions(counts: &MeterCounts) -> [(f64, [f64; DIVIDERS.len()]); 2] {
    let instructions = counts.mix.instructions.max(1) as f64;
    let of = |kind: OpKind| counts.mix.kind_count(kind) as f64 / instructions;
    let [integers, fp] = counts.timing.lengthening();
    [(of(OpKind::Divide), integers), (of(OpKind::FpDivide), fp)]
}

/// The power law of measured values; constant and 0 where nothing was measured.
pub(crate) fn fit_law(x: &[f64], y: &[f64]) -> PowerLaw {
    let points: Vec<_> = x.iter().copied().zip(y.iter().copied()).collect();
    power_law(&points).unwrap_or(PowerLaw {
        factor: 0.0,
        exponent: 0.0,
        error: 0.0,
    })
}

/// Four decimals, as files have them.
fn round_share(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}
