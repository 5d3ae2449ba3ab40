//! Keys of a machine file that say how a core is built inside.
//!
//! All are optional: `tables` derives what is missing from what every file has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::VariantArray;

/// Work that an issue queue holds or an issue port takes.
///
/// A store computes an address (`store`) and, where any port takes `store-data`, hands over
/// data beside. Where a queue or port names `vector-load` or `vector-store`, loads and
/// stores of floating-point and vector registers need that in addition to their address.
///
/// Work from `count` to `square-root` is executed as the work named with it, unless a port takes it
/// by its own name, waits where that work waits, unless a queue holds it by its own name, and takes
/// as long, unless it has a time of its own.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    /// Integer arithmetic, logic, shifts, moves.
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
    Divide,
    /// Loads: address and access.
    Load,
    /// Stores: address, and data where nothing takes `store-data`.
    Store,
    /// Branches.
    Branch,
    /// Floating-point addition, comparison, conversion.
    FpAdd,
    /// Floating-point multiplication.
    FpMultiply,
    /// Fused multiplication and addition.
    FpFused,
    /// Floating-point division and square root.
    FpDivide,
    /// Integer arithmetic on vector registers.
    Vector,
    /// Moves, shuffles, logic of vector registers.
    VectorMove,
    /// Fences, system calls; what no port takes executes nowhere.
    Other,
    /// Population counts, bit scans, gathering and scattering of bits, checksums: `integer`.
    Count,
    /// Address computation of three operands: `integer`.
    Address,
    /// Shifts of two registers together: `integer`.
    DoubleShift,
    /// Integer division by 64 bits: `divide`.
    WideDivide,
    /// Conversion between integers in general registers and floating-point numbers: `fp-add`.
    Convert,
    /// Moves between general and vector registers: `vector-move`.
    Cross,
    /// Packed multiplication of integers, but for `wide-vector-multiply`: `vector`.
    VectorMultiply,
    /// Packed multiplication of integers of 32 bits or more into integers of the same length:
    /// `vector`.
    WideVectorMultiply,
    /// Square roots: `fp-divide`.
    SquareRoot,
    /// Data of stores.
    StoreData,
    /// Data of loads of floating-point and vector registers.
    VectorLoad,
    /// Data of stores of floating-point and vector registers.
    VectorStore,
}

impl WorkKind {
    /// Number of kinds of work.
    pub const COUNT: usize = Self::ALL.len();
    /// Every work, in the order of [`WorkKind::index`].
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// Position in [`WorkKind::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The work as which it is executed where a core does not distinguish it.
    pub const fn usual(self) -> Self {
        match self {
            Self::Count | Self::Address | Self::DoubleShift => Self::Integer,
            Self::WideDivide => Self::Divide,
            Self::Convert => Self::FpAdd,
            Self::Cross => Self::VectorMove,
            Self::VectorMultiply | Self::WideVectorMultiply => Self::Vector,
            Self::SquareRoot => Self::FpDivide,
            usual => usual,
        }
    }
}

/// Division of a buffer among the CPUs of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferSharing {
    /// Every CPU has a whole one of its own.
    Private,
    /// Equal parts among the CPUs that run something.
    Partitioned,
    /// Two halves, each for half of the CPUs that run something; from `halves_from_ways` on.
    Halved,
    /// One pool, less what is reserved for others.
    #[default]
    Shared,
}

/// Entries of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Entries, of one buffer.
    pub entries: u32,
    /// Division of it among CPUs.
    #[serde(default)]
    pub sharing: BufferSharing,
    /// Entries that every CPU which runs something can always have of a shared pool.
    #[serde(default)]
    pub reserve: u32,
}

/// An issue queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Work that waits here for its operands; where several queues hold it, the emptiest takes it.
    pub holds: Vec<WorkKind>,
    /// Entries, of one queue.
    pub entries: u32,
    /// Division of it among CPUs.
    #[serde(default)]
    pub sharing: BufferSharing,
    /// Entries that every CPU which runs something can always have of a shared pool.
    #[serde(default)]
    pub reserve: u32,
}

/// A physical register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistersSpec {
    /// Physical registers, of one file.
    pub entries: u32,
    /// Of these, what the state of one running CPU takes.
    pub architected: u32,
    /// Division of the rest among CPUs.
    #[serde(default)]
    pub sharing: BufferSharing,
}

/// A table of groups: operations are dispatched and committed in groups of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DispatchGroupSpec {
    /// Groups in flight; the reorder buffer's entries over `slots` where it is missing.
    pub entries: u32,
    /// Operations of a group alone on the core, branches among them.
    pub slots: u32,
    /// Of these, slots for branches; the last of them ends a group.
    pub branches: u32,
}

/// Buffers that operations occupy between dispatch and commit in an out-of-order core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BuffersSpec {
    /// Issue queues; one for all, a third of the reorder buffer, where there are none.
    #[serde(default)]
    pub issue: Vec<QueueSpec>,
    /// Loads from dispatch to commit; a third of the reorder buffer where it is missing.
    #[serde(default)]
    pub load_queue: Option<BufferSpec>,
    /// Stores from dispatch until they are written to the L1D; a quarter of the reorder buffer.
    #[serde(default)]
    pub store_queue: Option<BufferSpec>,
    /// Integer registers; enough where it is missing. In the reference, threads that share a window
    /// without `balance_percent` then rename to as many each as their equal part of it has entries.
    #[serde(default)]
    pub int_registers: Option<RegistersSpec>,
    /// Floating-point and vector registers; enough where it is missing.
    #[serde(default)]
    pub vector_registers: Option<RegistersSpec>,
    /// Group table, where the reorder buffer is one.
    #[serde(default)]
    pub group: Option<DispatchGroupSpec>,
    /// Share of any buffer that threads share beyond which a thread dispatches nothing while others
    /// run; no limit if it is missing.
    #[serde(default)]
    pub balance_percent: Option<u32>,
    /// Cycles from dispatch into an issue queue to issue at the earliest, in which every operation
    /// holds an entry; 1 where it is missing. They are a part of `pipeline_depth_cycles`.
    #[serde(default)]
    pub issue_delay_cycles: Option<u32>,
    /// Demand loads on their way from behind the L2 with which a thread dispatches nothing while
    /// others run; no limit if it is missing.
    #[serde(default)]
    pub balance_misses: Option<u32>,
}

/// Choice of the thread that fetches next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FetchPolicy {
    /// In turn, those that cannot fetch left out.
    #[default]
    RoundRobin,
    /// The one with the fewest operations between fetch and issue (Tullsen et al., ISCA 1996).
    Icount,
}

/// A cache of decoded instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpCacheSpec {
    /// Operations that it holds.
    pub ops: u32,
    /// Associativity.
    pub ways: u32,
    /// Operations per line; a line covers 32 bytes of code.
    pub line_ops: u32,
    /// Operations that it delivers per cycle.
    pub width: u32,
    /// Division of it among CPUs.
    #[serde(default)]
    pub sharing: BufferSharing,
}

/// Pair of operations in a row that take one slot of fetch, dispatch and commit, one operation of
/// the cache of decoded instructions, and one entry of the reorder buffer.
///
/// A load and its computation, or a computation and its store, are executed as two; a computation
/// and the branch on it are executed as one branch.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
pub enum FusionPair {
    /// A load from an address without an index, and its computation; not a constant operand next to
    /// an address relative to the instruction.
    Operand,
    /// A load from an address with an index, and a computation of two operands that updates one.
    IndexedUpdate,
    /// A load from an address with an index, and any other computation.
    Indexed,
    /// A computation and the store of its result by the same instruction.
    Result,
    /// A comparison of registers and constants, and a branch on an order or on equality.
    Compare,
    /// A test of registers and constants, and any branch on a condition.
    Test,
    /// A conjunction of registers and constants, and any branch on a condition.
    And,
    /// An addition or subtraction, and a branch on an order or on equality.
    Add,
    /// An increment or decrement, and a branch on equality or the order of signed numbers.
    Increment,
    /// A disjunction, and any branch on a condition.
    Logic,
    /// A comparison, test, conjunction, addition or subtraction of a register with an operand in
    /// memory, and a branch on an order or on equality.
    Memory,
}

impl FusionPair {
    /// Every pair, in the order of [`FusionPair::index`].
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// Position in [`FusionPair::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Front end, which brings operations to dispatch, and commit, which retires them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrontEndSpec {
    /// Bytes of aligned code that can be fetched per cycle; 4 per dispatch slot, at least 16.
    #[serde(default)]
    pub fetch_bytes: Option<u32>,
    /// Operations that can be fetched per cycle; the dispatch width where it is missing.
    #[serde(default)]
    pub fetch_width: Option<u32>,
    /// Choice of the thread that fetches next.
    #[serde(default)]
    pub fetch_policy: FetchPolicy,
    /// Threads that can fetch in one cycle; 1 where it is missing.
    #[serde(default)]
    pub fetch_threads: Option<u32>,
    /// Operations that wait for dispatch, per thread; four cycles' worth where it is missing.
    #[serde(default)]
    pub buffer_ops: Option<u32>,
    /// Threads that can dispatch in one cycle; all where it is missing.
    #[serde(default)]
    pub dispatch_threads: Option<u32>,
    /// True if the operations that are ready for a thread in a cycle, up to its width, are
    /// dispatched together or not at all: a thread waits until every buffer has room for all of
    /// them, and leaves the cycle to others. A core with a group table always dispatches like this.
    #[serde(default)]
    pub whole_groups: bool,
    /// Operations committed per cycle, over all CPUs; the dispatch width where it is missing.
    #[serde(default)]
    pub commit_width: Option<u32>,
    /// Cache of decoded instructions; none where it is missing.
    #[serde(default)]
    pub op_cache: Option<OpCacheSpec>,
    /// Pairs of operations that count as one; none where it is missing.
    #[serde(default)]
    pub fusion: Vec<FusionPair>,
}

/// Owner of an issue port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortScope {
    /// Every CPU has its own.
    Pu,
    /// Of one half of a core, in turn: for half of the CPUs that run something, from
    /// `halves_from_ways` on.
    Half,
    /// All CPUs of a core share it.
    #[default]
    Core,
}

/// Like issue ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Work that it takes.
    pub takes: Vec<WorkKind>,
    /// Number of these ports; of ports per CPU, for one CPU.
    #[serde(default = "one")]
    pub count: u32,
    /// Owner of these ports.
    #[serde(default)]
    pub per: PortScope,
}

fn one() -> u32 {
    1
}

/// Time that work takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkSpec {
    /// Cycles from operands to result.
    pub latency_cycles: u32,
    /// Cycles until the port can take the next.
    #[serde(default = "one")]
    pub interval_cycles: u32,
}

/// Times by work; of a load, the latency of the L1D counts.
pub type WorkTimes = BTreeMap<WorkKind, WorkSpec>;

/// Kinds of branch predictor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PredictorKind {
    /// A table of two-bit counters by address.
    Bimodal,
    /// A table of two-bit counters by address and global history (McFarling, 1993).
    #[default]
    Gshare,
    /// Tagged tables by geometrically longer histories (Seznec and Michaud, JILP 2006).
    Tage,
}

/// Choice of the line of a set that makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used.
    #[default]
    Lru,
    /// One that was not used since all others were, as tree bits and used bits find it.
    PseudoLru,
    /// Any.
    Random,
}

/// Policy of a cache for stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Keeps them until the line is evicted; a store that misses fetches its line.
    #[default]
    Back,
    /// Passes them on to the next level; a store that misses fetches nothing.
    Through,
}

/// Lines that come into an LLC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LlcFill {
    /// All that are fetched through it; what it evicts may stay in caches before it.
    #[default]
    Fetched,
    /// All that are fetched through it; what it evicts leaves the caches before it.
    Inclusive,
    /// Lines that the caches before it evict.
    Victims,
}

/// Level into which prefetchers bring lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchInto {
    /// The L1D.
    L1,
    /// The L2, or the LLC where there is none.
    #[default]
    L2,
    /// The LLC.
    Llc,
}

/// Rows and banks of a memory controller's DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// Banks per controller, over all ranks.
    pub banks: u32,
    /// Bytes that a row holds, KiB.
    pub row_kib: f64,
    /// Time that an access saves whose row is open, ns.
    pub row_hit_saves_ns: f64,
    /// Time from opening a row to opening another of the same bank, ns.
    pub bank_cycle_ns: f64,
}
