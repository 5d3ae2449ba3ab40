//! Keys of a machine file that say how a core is built inside.
//!
//! All are optional: `tables` derives what is missing from what every file has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Work that an issue queue holds or an issue port takes.
///
/// A store computes an address (`store`) and, where any port takes `store-data`, hands over
/// data beside. Where a queue or port names `vector-load` or `vector-store`, loads and
/// stores of floating-point and vector registers need that beside their address.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
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
    /// Data of stores.
    StoreData,
    /// Data of loads of floating-point and vector registers.
    VectorLoad,
    /// Data of stores of floating-point and vector registers.
    VectorStore,
}

impl WorkKind {
    /// Number of kinds of work.
    pub const COUNT: usize = 16;
    /// Every work, in the order of [`WorkKind::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Integer,
        Self::Multiply,
        Self::Divide,
        Self::Load,
        Self::Store,
        Self::Branch,
        Self::FpAdd,
        Self::FpMultiply,
        Self::FpFused,
        Self::FpDivide,
        Self::Vector,
        Self::VectorMove,
        Self::Other,
        Self::StoreData,
        Self::VectorLoad,
        Self::VectorStore,
    ];

    /// Position in [`WorkKind::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Division of a buffer among the PUs of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferSharing {
    /// Every PU has a whole one of its own.
    Private,
    /// Equal parts among the PUs that run something.
    Partitioned,
    /// Two halves, each for half of the PUs that run something; from `halves_from_ways` on.
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
    /// Division of it among PUs.
    #[serde(default)]
    pub sharing: BufferSharing,
    /// Entries that every PU which runs something can always have of a shared pool.
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
    /// Division of it among PUs.
    #[serde(default)]
    pub sharing: BufferSharing,
    /// Entries that every PU which runs something can always have of a shared pool.
    #[serde(default)]
    pub reserve: u32,
}

/// A physical register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistersSpec {
    /// Physical registers, of one file.
    pub entries: u32,
    /// Of these, what the state of one running PU takes.
    pub architected: u32,
    /// Division of the rest among PUs.
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
    /// Share of the reorder buffer beyond which a thread dispatches nothing while others run; no
    /// limit where it is missing.
    #[serde(default)]
    pub balance_percent: Option<u32>,
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
    /// Division of it among PUs.
    #[serde(default)]
    pub sharing: BufferSharing,
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
    /// Operations committed per cycle, over all PUs; the dispatch width where it is missing.
    #[serde(default)]
    pub commit_width: Option<u32>,
    /// Cache of decoded instructions; none where it is missing.
    #[serde(default)]
    pub op_cache: Option<OpCacheSpec>,
}

/// Owner of an issue port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortScope {
    /// Every PU has its own.
    Pu,
    /// Of one half of a core, in turn: for half of the PUs that run something, from
    /// `halves_from_ways` on.
    Half,
    /// All PUs of a core share it.
    #[default]
    Core,
}

/// Like issue ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Work that it takes.
    pub takes: Vec<WorkKind>,
    /// Number of these ports; of ports per PU, for one PU.
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

/// Latencies by work; of a load, that of the L1D counts.
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
