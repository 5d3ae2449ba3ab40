//! The format of a program file (`programs/*.toml`).
//!
//! A profile describes a program, not a chip: nothing in it may depend on a
//! machine or a co-runner. Every key has its unit in its name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Capacities, KiB, at which the miss curves are given: powers of two from 8 KiB to 64 MiB.
pub const CURVE_KIB: [f64; 14] = [
    8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0,
    65536.0,
];

/// The window, in instructions, for which `mlp.value` is given.
pub const REFERENCE_WINDOW: f64 = 128.0;

/// The predictor, in KiB, for which `branch.mpki` is given.
pub const REFERENCE_PREDICTOR_KIB: f64 = 32.0;

/// A program with its phases and, where it has several, its threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// Name in workloads; the file's name without `.toml`.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// Suite it belongs to, for example `spec2006`.
    pub suite: String,
    /// Sources by the key with which comments behind the numbers cite them.
    pub sources: BTreeMap<String, String>,
    /// Phases in order; after the last comes the first.
    #[serde(rename = "phase")]
    pub phases: Vec<PhaseSpec>,
    /// Seeded variation within phases.
    #[serde(default)]
    pub burstiness: Option<Burstiness>,
    /// How it uses several threads; a single thread without.
    #[serde(default)]
    pub threads: Option<ThreadsSpec>,
    /// Input and output.
    #[serde(default)]
    pub io: Option<IoSpec>,
}

/// A stretch of execution with one behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// Length, 10^9 instructions of one thread.
    pub length_ginstr: f64,
    /// Shares of instruction classes; they sum to 1.
    pub mix: MixSpec,
    /// Parallelism of the instructions.
    pub ilp: IlpSpec,
    /// Branches.
    pub branch: BranchSpec,
    /// Data misses per kilo-instruction without prefetching, with LRU and lines of 64 bytes, at
    /// each of [`CURVE_KIB`]; non-increasing.
    pub data_mpki: Vec<f64>,
    /// Instruction misses per kilo-instruction with lines of 64 bytes at each of [`CURVE_KIB`];
    /// non-increasing.
    pub instruction_mpki: Vec<f64>,
    /// Overlap of long misses.
    pub mlp: MlpSpec,
    /// What prefetchers make of its misses.
    #[serde(default)]
    pub prefetch: PrefetchSpec,
    /// Written-back lines per line fetched from memory, 0 to 1.
    pub writeback_share: f64,
    /// Of the lines that miss beyond the TLB's reach, the share on a new page: 1 for random
    /// accesses, 1/64 for a stream over 4 KiB pages of 64-byte lines.
    pub page_spread: f64,
}

/// Shares of instruction classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// Floating point, scalar or packed.
    pub fp: f64,
    /// Integer SIMD.
    pub vector: f64,
    /// Integer and everything else.
    pub int: f64,
    /// Loads.
    pub load: f64,
    /// Stores.
    pub store: f64,
    /// Branches.
    pub branch: f64,
}

impl MixSpec {
    /// No instructions of any class.
    pub(crate) const NONE: Self = Self {
        fp: 0.0,
        vector: 0.0,
        int: 0.0,
        load: 0.0,
        store: 0.0,
        branch: 0.0,
    };
}

/// Inherent parallelism: ILP(w) = a·w^b instructions per cycle in a window of w instructions if
/// every instruction took one cycle (Karkhanis and Smith, ISCA 2004, section 3; Eyerman et al.,
/// TOCS 2009, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IlpSpec {
    /// Factor.
    pub a: f64,
    /// Exponent, 0 (a chain) to 1.
    pub b: f64,
    /// Mean distance from a value to its first use, instructions: how far an in-order pipe gets
    /// before it must wait.
    pub use_distance: f64,
}

/// Behaviour of branches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BranchSpec {
    /// Mispredictions per kilo-instruction with a predictor of [`REFERENCE_PREDICTOR_KIB`].
    pub mpki: f64,
    /// How mispredictions grow as the predictor shrinks: mpki·(reference/size)^exponent.
    pub capacity_exponent: f64,
}

/// Memory-level parallelism: long misses that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MlpSpec {
    /// Long misses that overlap in a window of [`REFERENCE_WINDOW`] instructions; at least 1.
    pub value: f64,
    /// How it scales: MLP(w) = max(1, value·(w/reference)^exponent).
    pub window_exponent: f64,
}

/// Effect of prefetchers of full coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Share of memory misses that prefetching removes; negative when it adds misses. What it
    /// removes follows a stream, so lines longer than 64 bytes save it too.
    pub effectiveness: f64,
    /// Lines fetched in vain, per line that would miss without prefetching.
    pub excess: f64,
}

/// An auto-correlated variation: every `interval_ginstr` a factor with mean 1 and log-normal
/// distribution scales misses per instruction and the length of dependence chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burstiness {
    /// Standard deviation of the factor's logarithm.
    pub log_sd: f64,
    /// Correlation of successive factors' logarithms, 0 to below 1.
    pub correlation: f64,
    /// Instructions between two draws, 10^9.
    pub interval_ginstr: f64,
}

/// How a program uses several threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadsSpec {
    /// Threads when a workload does not say.
    pub default: u32,
    /// Most threads that it can use; equal to `default` when it is not malleable.
    pub max: u32,
    /// Whether the work of one run is divided among the threads (strong scaling); else each
    /// thread does all of it.
    #[serde(default = "yes")]
    pub divide_work: bool,
    /// Share of the program's instructions that only its first thread executes, 0 to 1.
    #[serde(default)]
    pub serial_share: f64,
    /// Share of the data footprint that all threads use, 0 to 1.
    #[serde(default)]
    pub shared_data: f64,
    /// Share of the code that all threads use, 0 to 1; copies of the program use it too.
    #[serde(default = "all")]
    pub shared_code: f64,
    /// Barriers.
    #[serde(default)]
    pub barrier: Option<BarrierSpec>,
    /// Locks.
    #[serde(default)]
    pub lock: Option<LockSpec>,
    /// Time that a waiting thread spins before it leaves its PU, µs.
    #[serde(default)]
    pub spin_us: f64,
    /// Stages of a pipeline that do unlike work, one per group of threads; empty when all threads
    /// are alike.
    #[serde(default, rename = "stage")]
    pub stages: Vec<StageSpec>,
}

fn yes() -> bool {
    true
}

fn all() -> f64 {
    1.0
}

/// Barriers that all threads of the program meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BarrierSpec {
    /// Mean instructions of one thread between barriers, 10^6.
    pub spacing_minstr: f64,
    /// Standard deviation of a thread's work between two barriers, relative to its mean.
    pub imbalance: f64,
    /// Threads with which the spacing is what it is. Where the program divides its work, as many
    /// barriers are then spread over each thread's part with other numbers of threads; without this
    /// key the spacing is the same with any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_threads: Option<u32>,
}

/// Locks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockSpec {
    /// Acquisitions per 10^6 instructions of a thread.
    pub per_minstr: f64,
    /// Instructions while it is held.
    pub hold_instr: f64,
    /// How many there are, at most 65,536; acquisitions spread evenly.
    pub count: u32,
}

/// One stage of a pipelined program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// Name, which its threads bear.
    pub name: String,
    /// Share of the program's threads, relative to the other stages'.
    pub thread_share: f64,
    /// Work per item relative to the mean stage.
    pub work: f64,
    /// The stage's own mix, if it is unlike the phase's.
    #[serde(default)]
    pub mix: Option<MixSpec>,
}

/// Input and output of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoSpec {
    /// Operations per 10^9 instructions of a thread.
    pub per_ginstr: f64,
    /// Mean time that the thread is blocked, µs; exponentially distributed.
    pub blocked_us: f64,
}
