//! Parallelism of instructions: what a window finds of it, what waits, and what the longest chain is
//! made of.

use crate::math::{interpolate, pow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distances from a value to its first use that profiles distinguish, instructions.
pub const NEAR_USES: usize = 8;
/// Windows for which ILP is measured, instructions.
pub const ILP_WINDOWS: [f64; 7] = [16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// Sets of latencies at most for which a profile has its longest chains.
pub const MOST_CHAIN_SETS: usize = 4;
/// Cycles more than the L1D's that a load takes which gets some of its bytes from a store that is not
/// yet written, and not all: it waits until the store is written (some 12 in Fog's microarchitecture
/// manual).
pub const PARTIAL_LOAD_CYCLES: f64 = 11.0;
/// Mean of the traced programs: share of the instructions in a window that wait for operands.
pub(super) const WAITING: f64 = 0.41;
/// Mean of the traced programs: unevenness.
pub(super) const UNEVENNESS: f64 = 0.014;
/// Means of those traced programs that use floating-point or vector registers.
pub(super) const FP_SCHEDULER: FpSchedulerSpec = FpSchedulerSpec {
    waiting: 0.53,
    spread: 0.25,
};

/// Inherent parallelism: ILP(w) = a·w^b instructions per cycle in a window of w instructions if
/// every instruction took one cycle (Karkhanis and Smith, ISCA 2004, section 3; Eyerman et al.,
/// TOCS 2009, section 4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IlpSpec {
    /// Factor.
    pub a: f64,
    /// Exponent, 0 (a chain) to 1.
    pub b: f64,
    /// Mean distance from a value to its first use, instructions: how far an in-order pipe gets
    /// before it must wait.
    pub use_distance: f64,
    /// Shares of the values that are computed and used first 1, 2, ... 8 instructions later, where
    /// they were measured; else distances are distributed exponentially around `use_distance`.
    #[serde(default)]
    pub uses: Option<[f64; NEAR_USES]>,
    /// The same of values that are loaded.
    #[serde(default)]
    pub load_uses: Option<[f64; NEAR_USES]>,
    /// Unevenness, 0 to 1: 0 where dispatch and the longest chain limit all windows alike, so that
    /// the longer hides the shorter, 1 where each limits windows of its own, so that they add up.
    /// Where it is missing, the traced programs' mean.
    #[serde(default)]
    pub unevenness: Option<f64>,
    /// The same of a pipeline that dispatches eight operations per cycle; where it is missing, as of
    /// the one that dispatches four, for which `unevenness` and `miss_costs` are.
    #[serde(default)]
    pub wide_unevenness: Option<f64>,
    /// ILP in windows of each of [`ILP_WINDOWS`], where it was measured; it comes before the law.
    #[serde(default)]
    pub measured: Option<[f64; ILP_WINDOWS.len()]>,
    /// Share of the instructions in a window that wait for operands, 0 to 1: what issue queues
    /// hold of it. Where it is missing, the traced programs' mean.
    #[serde(default)]
    pub waiting: Option<f64>,
    /// Occupancy of a floating-point scheduler; where it is missing, the traced programs' means.
    #[serde(default)]
    pub fp_scheduler: Option<FpSchedulerSpec>,
    /// Divisions of integers, where they were measured; otherwise nothing waits for them.
    #[serde(default)]
    pub int_divisions: Option<DivisionSpec>,
    /// Divisions and square roots of floating point, likewise.
    #[serde(default)]
    pub fp_divisions: Option<DivisionSpec>,
    /// Cycles that a load costs which misses an L1D of 32 KiB, where it takes as many more as
    /// [`MISS_CYCLES`] has than one that hits; where it is missing, as far as loads are on the
    /// longest chain.
    #[serde(default)]
    pub miss_costs: Option<[f64; MISS_CYCLES.len()]>,
    /// The same where eight operations are dispatched per cycle.
    #[serde(default)]
    pub wide_miss_costs: Option<[f64; MISS_CYCLES.len()]>,
    /// Operations on the longest chain; where it is missing, as the traced programs' chains
    /// follow from their mixes.
    #[serde(default)]
    pub chain: Option<ChainSpec>,
    /// Operations per instruction of the program on the chains that take longest with each of
    /// several sets of latencies, each set in windows of each of [`ILP_WINDOWS`]. On any core the
    /// one of them that takes longest there counts. Where they are missing, the time of the longest
    /// chain follows from `chain` and the parallelism in a window.
    #[serde(default)]
    pub chains: Option<Vec<[ChainSpec; ILP_WINDOWS.len()]>>,
}

/// Operations that wait in a scheduler of floating point: arithmetic and moves of floating-point and
/// vector registers, their loads and stores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FpSchedulerSpec {
    /// Share of those in a window that wait for operands, 0 to 1.
    pub waiting: f64,
    /// Spread in time, 0 to 1: with n of them waiting on average, none is there with
    /// e^(−spread·n); 1 where they come at random, less where they come together.
    #[serde(default = "at_random")]
    pub spread: f64,
}

/// The default of [`FpSchedulerSpec::spread`].
const fn at_random() -> f64 {
    1.0
}

/// Cycles that a division takes the only divider, for which [`DivisionSpec::lengthening`] is
/// measured.
pub const DIVIDERS: [f64; 4] = [4.0, 8.0, 16.0, 32.0];

/// Cycles that a load which misses takes more, for which [`IlpSpec::miss_costs`] is measured.
pub const MISS_CYCLES: [f64; 2] = [10.0, 40.0];

/// Divisions, which take a divider one after another and come in groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DivisionSpec {
    /// Per instruction.
    pub operations: f64,
    /// Share of them that are by 64 bits, of integers, or square roots, of floating point, 0 to 1.
    #[serde(default)]
    pub slow: f64,
    /// By what share the longest chain in a window of 128 instructions gets longer where there is
    /// one divider that each takes for 4, 8, 16 and 32 cycles.
    pub lengthening: [f64; DIVIDERS.len()],
}

/// Operations on the chain of instructions that takes longest with the latencies of a usual core,
/// per instruction of the chain of most instructions: with latencies l, the second is followed at
/// one instruction per `Σ n·l` cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainSpec {
    /// Integer, branch, store and everything else that takes a cycle or so.
    pub plain: f64,
    /// Loads.
    pub load: f64,
    /// Floating-point additions and multiplications.
    pub fp: f64,
    /// Integer multiplications.
    #[serde(default)]
    pub multiply: f64,
    /// Integer divisions by up to 32 bits.
    #[serde(default)]
    pub divide: f64,
    /// Floating-point divisions.
    #[serde(default)]
    pub fp_divide: f64,
    /// Moves and integer operations of vector registers.
    #[serde(default)]
    pub vector: f64,
    /// Population counts, bit scans, gathering and scattering of bits, checksums.
    #[serde(default)]
    pub count: f64,
    /// Address computations of three operands.
    #[serde(default)]
    pub address: f64,
    /// Shifts of two registers together.
    #[serde(default)]
    pub double_shift: f64,
    /// Integer divisions by 64 bits.
    #[serde(default)]
    pub wide_divide: f64,
    /// Conversions between integers in general registers and floating-point numbers.
    #[serde(default)]
    pub convert: f64,
    /// Moves between general and vector registers.
    #[serde(default)]
    pub cross: f64,
    /// Packed multiplications of integers, but for `wide_vector_multiply`.
    #[serde(default)]
    pub vector_multiply: f64,
    /// Packed multiplications of integers of 32 bits or more into integers of the same length.
    #[serde(default)]
    pub wide_vector_multiply: f64,
    /// Square roots.
    #[serde(default)]
    pub square_root: f64,
    /// Loads that get some of their bytes from a store that is not yet written, and not all; they are
    /// not among `load`.
    #[serde(default)]
    pub partial_load: f64,
}

impl IlpSpec {
    /// Instructions per cycle in a window, if every operation took one cycle: as measured, linear
    /// in the logarithm of the window between the measured ones and from 1 in a window of 1; else
    /// by the law.
    pub fn parallelism_at(&self, window: f64) -> f64 {
        match &self.measured {
            None => self.a * pow(window, self.b),
            Some([least, ..]) if window < ILP_WINDOWS[0] => {
                interpolate(&[1.0, ILP_WINDOWS[0]], &[least.min(1.0), *least], window)
            }
            Some(points) => interpolate(&ILP_WINDOWS, points, window),
        }
    }

    /// Cycles that a load costs if it takes `cycles` more than one that hits the L1D, if it was
    /// measured: linear between the measured ones and beyond. `wide` is the share of the way from a
    /// dispatch of four operations per cycle to one of eight, by cycles per operation, 0 to 1.
    pub fn miss_cost(&self, cycles: f64, wide: f64) -> Option<f64> {
        let [short, long] = MISS_CYCLES;
        let beyond = (cycles - short).max(0.0) / (long - short);
        let cost = |[near, far]: [f64; MISS_CYCLES.len()]| {
            near * (cycles / short).clamp(0.0, 1.0) + (far - near).max(0.0) * beyond
        };
        let narrow = cost(self.miss_costs?);
        let widest = self.wide_miss_costs.map_or(narrow, cost);
        Some(narrow + wide * (widest - narrow))
    }

    /// The smallest window of so much parallelism, instructions; `most` if no window up to it has it.
    pub fn window_for(&self, parallelism: f64, most: f64) -> f64 {
        if parallelism >= self.parallelism_at(most) {
            return most;
        }
        match &self.measured {
            None if self.b <= 0.0 => most,
            None => pow(parallelism.max(1e-9) / self.a, 1.0 / self.b),
            Some(points) => {
                let after = points.partition_point(|&point| point <= parallelism);
                let before = after.checked_sub(1);
                let (low, from) =
                    before.map_or((points[0].min(1.0), 1.0), |i| (points[i], ILP_WINDOWS[i]));
                let (high, to) = (points[after.min(6)], ILP_WINDOWS[after.min(6)]);
                let share = (parallelism - low) / (high - low).max(1e-12);
                from * pow(to / from, share.clamp(0.0, 1.0))
            }
        }
        .clamp(1.0, most)
    }
}

impl DivisionSpec {
    /// By what share the longest chain gets longer with a divider that each takes for so many
    /// cycles: linear between the measured ones, from 0 where divisions are pipelined, and in
    /// proportion beyond the last.
    pub fn lengthening(&self, cycles: f64) -> f64 {
        const LAST: usize = DIVIDERS.len() - 1;
        if cycles <= 1.0 {
            return 0.0;
        }
        let beyond = (cycles / DIVIDERS[LAST]).max(1.0);
        let after = DIVIDERS.partition_point(|&taken| taken < cycles).min(LAST);
        let (low, from) = match after.checked_sub(1) {
            Some(before) => (self.lengthening[before], DIVIDERS[before]),
            None => (0.0, 1.0),
        };
        let share = (cycles - from) / (DIVIDERS[after] - from);
        beyond * (low + (self.lengthening[after] - low) * share.clamp(0.0, 1.0))
    }
}

impl ChainSpec {
    /// Number of classes.
    pub const CLASSES: usize = 17;

    /// Operations by class, with the key of the class and its cycles on the core for which chains
    /// are measured.
    pub fn classes(&self) -> [(&'static str, f64, f64); Self::CLASSES] {
        [
            ("plain", self.plain, 1.0),
            ("load", self.load, 4.0),
            ("fp", self.fp, 4.0),
            ("multiply", self.multiply, 3.0),
            ("divide", self.divide, 24.0),
            ("fp_divide", self.fp_divide, 14.0),
            ("vector", self.vector, 1.0),
            ("count", self.count, 3.0),
            ("address", self.address, 3.0),
            ("double_shift", self.double_shift, 3.0),
            ("wide_divide", self.wide_divide, 42.0),
            ("convert", self.convert, 6.0),
            ("cross", self.cross, 2.0),
            ("vector_multiply", self.vector_multiply, 5.0),
            ("wide_vector_multiply", self.wide_vector_multiply, 10.0),
            ("square_root", self.square_root, 18.0),
            ("partial_load", self.partial_load, 4.0 + PARTIAL_LOAD_CYCLES),
        ]
    }

    /// Cycles per instruction with the latencies for which chains are measured.
    pub fn reference_latency(&self) -> f64 {
        let cycles = self.classes().map(|(_, amount, cycles)| amount * cycles);
        cycles.iter().sum::<f64>().max(1e-3)
    }
}
