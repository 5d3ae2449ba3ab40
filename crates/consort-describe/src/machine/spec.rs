//! The format of a machine file (`machines/*.toml`).
//!
//! Every key has its unit in its name. Unknown keys are errors. Ranges are
//! checked in `validate/`, which names file, line, key and the valid range.

use super::Quantity;
use super::detail::{
    BuffersSpec, DramSpec, FrontEndSpec, LlcFill, PortSpec, PredictorKind, PrefetchInto,
    Replacement, WorkTimes, WritePolicy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A chip (or several, with their memory) and the events that its PMU counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Name on the command line; the file's name without `.toml`.
    pub name: String,
    /// Description in a line.
    pub title: String,
    /// Sources by the key with which comments behind the numbers cite them.
    pub sources: BTreeMap<String, String>,
    /// Nesting of packages, nodes, LLC domains, L2 domains and cores.
    pub layout: ChipLayout,
    /// Core types by name; [`ChipLayout::cluster`] refers to them.
    #[serde(rename = "core_type")]
    pub core_types: BTreeMap<String, CoreSpec>,
    /// The last-level cache, one per LLC domain.
    pub llc: LlcSpec,
    /// Interconnect of LLC domains and memory, one per package.
    pub interconnect: InterconnectSpec,
    /// Memory, one part per node.
    pub memory: MemorySpec,
    /// Distances between nodes; needed where there are several.
    #[serde(default)]
    pub numa: Option<NumaSpec>,
    /// Power of what is not a core, per package.
    pub uncore_power: UncorePower,
    /// Costs of switching and moving threads.
    pub os: OsCosts,
    /// The performance monitoring unit of each CPU.
    pub pmu: PmuSpec,
}

/// Nesting of the chip: every package and node is like every other, and so is every LLC domain unless
/// `llc_domain` lists them one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChipLayout {
    /// Sockets.
    pub packages: u32,
    /// NUMA nodes per package.
    pub nodes_per_package: u32,
    /// LLC domains per node, where they are alike.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub llc_domains_per_node: u32,
    /// The L2 domains that make up one LLC domain, in order, where LLC domains are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster: Vec<L2Group>,
    /// LLC domains of a node in order, where they differ in cores or capacity; instead of
    /// `llc_domains_per_node` and `cluster`.
    #[serde(default, rename = "llc_domain", skip_serializing_if = "Vec::is_empty")]
    pub llc_domains: Vec<LlcDomainSpec>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The cores that share a last-level cache, where LLC domains differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlcDomainSpec {
    /// Capacity, KiB, where it differs from `llc.size_kib`; 0 for cores behind whose L2 comes
    /// memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_kib: Option<f64>,
    /// The L2 domains of its cores, in order.
    pub cluster: Vec<L2Group>,
}

impl ChipLayout {
    /// The LLC domains of a node in order: capacity, KiB, if it is the domain's own, and cores.
    pub fn domains(&self) -> impl Iterator<Item = (Option<f64>, &[L2Group])> {
        let alike = if self.llc_domains.is_empty() {
            self.llc_domains_per_node
        } else {
            0
        };
        let alike = (0..alike).map(|_| (None, self.cluster.as_slice()));
        let listed = self.llc_domains.iter();
        alike.chain(listed.map(|domain| (domain.size_kib, domain.cluster.as_slice())))
    }

    /// All descriptions of L2 domains; those of LLC domains that are alike once.
    pub fn groups(&self) -> impl Iterator<Item = &L2Group> + Clone {
        let listed = self.llc_domains.iter().flat_map(|domain| &domain.cluster);
        self.cluster.iter().chain(listed)
    }
}

/// A run of like L2 domains inside an LLC domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L2Group {
    /// Name of a core type.
    pub core_type: String,
    /// Number of L2 domains.
    pub l2_domains: u32,
    /// Cores that share each L2; 1 where it is private or where there is none.
    pub cores_per_l2: u32,
}

/// Order in which a core executes instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PipelineSpec {
    /// Instructions issue in program order and stop at the first that must wait.
    InOrder,
    /// Instructions issue when their operands are there, within the reorder buffer.
    OutOfOrder,
}

/// Division of the reorder buffer among SMT threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RobSharing {
    /// One pool; a thread that waits for memory can fill it.
    Shared,
    /// Equal parts among the CPUs that run something.
    Partitioned,
    /// Two halves, each for half of the CPUs that run something; from `halves_from_ways` on.
    Halved,
    /// Every CPU has a whole one of its own.
    Private,
}

/// A kind of core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// In order or out of order.
    pub pipeline: PipelineSpec,
    /// Clock, GHz.
    pub frequency_ghz: f64,
    /// Instructions that can be dispatched per cycle, over all CPUs of the core.
    pub dispatch_width: f64,
    /// Reorder-buffer entries (out-of-order cores), of one buffer.
    #[serde(default)]
    pub rob_entries: Option<u32>,
    /// Division of it among SMT threads.
    #[serde(default = "shared")]
    pub rob_sharing: RobSharing,
    /// Stages from fetch to execution: what refilling after a mispredicted branch takes, cycles.
    pub pipeline_depth_cycles: f64,
    /// Most misses to beyond the L2 (LLC or memory) that one core can have outstanding.
    pub outstanding_misses: u32,
    /// SMT modes, by how many CPUs of the core run something; at least the one with `ways = 1`.
    pub smt: Vec<SmtMode>,
    /// CPUs that run something from which on the halves of buffers and ports serve half of them
    /// each; 2 where it is missing. With fewer, both halves serve all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halves_from_ways: Option<u32>,
    /// Functional units.
    pub units: UnitsSpec,
    /// L1 instruction cache.
    pub l1i: CacheSpec,
    /// L1 data cache.
    pub l1d: CacheSpec,
    /// L2 cache, one per L2 domain; none where the LLC comes next.
    #[serde(default)]
    pub l2: Option<CacheSpec>,
    /// Data TLB, the last level of it.
    pub tlb: TlbSpec,
    /// Branch predictor.
    pub branch_predictor: PredictorSpec,
    /// Prefetchers that fetch from beyond the L2 (or into the LLC).
    #[serde(default)]
    pub prefetcher: Option<PrefetcherSpec>,
    /// Front end, which brings operations to dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<FrontEndSpec>,
    /// Buffers that operations in flight occupy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<BuffersSpec>,
    /// Issue ports; those that `units` make where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortSpec>,
    /// Latencies by work; those of `units` where one is missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: WorkTimes,
    /// Power and energy.
    pub power: CorePower,
}

fn shared() -> RobSharing {
    RobSharing::Shared
}

/// Mode of a core with `ways` of its CPUs running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SmtMode {
    /// CPUs that run something, at most; the mode with the smallest sufficient `ways` applies.
    pub ways: u32,
    /// Instructions per cycle that one thread can dispatch in this mode (POWER8: a group of 8
    /// alone, one of two groups of 4 in SMT2).
    pub thread_dispatch_width: f64,
}

/// Functional units by class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitsSpec {
    /// Integer arithmetic and logic.
    pub int: UnitSpec,
    /// Floating point.
    pub fp: UnitSpec,
    /// Loads and stores.
    pub load_store: UnitSpec,
    /// Branches; none where integer units resolve them.
    #[serde(default)]
    pub branch: Option<UnitSpec>,
    /// Integer SIMD; none where the floating-point units do it.
    #[serde(default)]
    pub vector: Option<UnitSpec>,
}

/// Owner of a unit, a cache or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every CPU has its own.
    Pu,
    /// All CPUs of a core share it.
    Core,
}

/// The units of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitSpec {
    /// Number of units per CPU or per core; see `per`.
    pub count: u32,
    /// Cycles from operands to result.
    pub latency_cycles: f64,
    /// Cycles until a unit can take the next operation: 1 when fully pipelined.
    pub interval_cycles: f64,
    /// Owner of the units.
    pub per: Scope,
}

/// A cache of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Capacity, KiB.
    pub size_kib: f64,
    /// Associativity.
    pub ways: u32,
    /// Load-to-use latency of a hit, cycles of the core.
    pub latency_cycles: f64,
    /// Owner of the cache; an L2 is the L2 domain's whatever this says.
    #[serde(default = "core")]
    pub per: Scope,
    /// Lines on their way here at once; `outstanding_misses` where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss_queue: Option<u32>,
    /// Replacement of lines; the least recently used where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,
    /// Policy for stores; keeps them where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<WritePolicy>,
    /// Bytes per cycle that it can hand to the level before it; no limit where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_cycle: Option<f64>,
    /// Lines in which stores gather before a cache that passes them on does; 1 where missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gathered_lines: Option<u32>,
}

fn core() -> Scope {
    Scope::Core
}

/// The last level of a data TLB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// Entries.
    pub entries: u32,
    /// Bytes that an entry maps, KiB.
    pub page_kib: f64,
    /// Cycles of a page walk that finds its entries in caches.
    pub walk_cycles: f64,
    /// Owner of the TLB.
    #[serde(default = "core")]
    pub per: Scope,
    /// Entries of the level before it; none where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_entries: Option<u32>,
    /// Cycles that finding an entry here and not in the level before adds; 0 where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_cycles: Option<f64>,
}

/// A branch predictor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictorSpec {
    /// Storage, KiB.
    pub size_kib: f64,
    /// Owner of the predictor.
    #[serde(default = "core")]
    pub per: Scope,
    /// Kind of predictor; by address and history where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PredictorKind>,
    /// Branches whose targets are kept; 4096 where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<u32>,
    /// Cycles without fetch behind a taken branch whose target is computed from the instruction;
    /// `targets` are then those of indirect branches alone. Where it is missing, targets of all
    /// taken branches are kept, and fetch goes on at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_bubble_cycles: Option<u32>,
    /// Calls whose returns are kept, per thread; 16 where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_stack: Option<u32>,
}

/// The prefetchers of a core taken together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetcherSpec {
    /// Share of what a program's `prefetch.effectiveness` promises that these achieve, 0 to 1.
    pub coverage: f64,
    /// Prefetched lines that can be on their way at once: how far queueing is hidden.
    pub depth_lines: u32,
    /// Owners of prefetchers: each core, or all cores of an L2 or LLC domain together.
    pub per: PrefetchScope,
    /// Streams followed at once; 16 where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Level into which lines come; the L2 where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<PrefetchInto>,
}

/// Owner of prefetchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchScope {
    /// Of each core.
    Core,
    /// Of the cores that share an L2.
    L2,
    /// Of the cores that share an LLC.
    Llc,
}

/// Power of a core and energy of what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorePower {
    /// Watts while any of its CPUs runs something, without the work itself.
    pub static_w: f64,
    /// Share of `static_w` that an idle core draws, 0 to 1.
    pub idle_fraction: f64,
    /// Energy per instruction by class, nJ.
    pub instruction_nj: InstructionEnergy,
    /// Energy of an L1 access, nJ.
    pub l1_nj: f64,
    /// Energy of an L2 access, nJ; 0 where there is none.
    pub l2_nj: f64,
}

/// Energy per instruction by class, nJ: fetch, rename, execution, commit; caches apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstructionEnergy {
    /// Integer.
    pub int: f64,
    /// Floating point.
    pub fp: f64,
    /// Integer SIMD.
    pub vector: f64,
    /// Loads.
    pub load: f64,
    /// Stores.
    pub store: f64,
    /// Branches.
    pub branch: f64,
}

/// The last-level cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlcSpec {
    /// Capacity per LLC domain, KiB; of those that give none of their own in `layout.llc_domain`.
    pub size_kib: f64,
    /// Associativity.
    pub ways: u32,
    /// Load-to-use latency of a hit, ns.
    pub latency_ns: f64,
    /// Latency of a hit in another LLC domain of the package, ns, where evicted lines are kept
    /// there (POWER7's remote regions); none where other domains do not help.
    #[serde(default)]
    pub remote_latency_ns: Option<f64>,
    /// Energy of an access, nJ.
    pub access_nj: f64,
    /// Lines on their way here at once; no limit where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss_queue: Option<u32>,
    /// Replacement of lines; the least recently used where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,
    /// Lines that come in; all that are fetched where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<LlcFill>,
    /// Bytes per ns (GB/s) that it can hand to its cores; no limit where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_gb_s: Option<f64>,
}

/// Kinds of interconnect; for people, the numbers decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterconnectKind {
    /// One bus for all.
    FrontSideBus,
    /// A ring.
    Ring,
    /// A mesh.
    Mesh,
    /// A crossbar.
    Crossbar,
}

/// Interconnect of the LLC domains and memory controllers of a package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterconnectSpec {
    /// Its kind.
    pub kind: InterconnectKind,
    /// Bytes per ns (GB/s) that it can carry in all, per package.
    pub bandwidth_gb_s: f64,
    /// Buses that this is the sum of; one where it is missing. No filter keeps snoops from them: a
    /// line that is read by one takes a slot of each other as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buses: Option<u32>,
}

/// Memory of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Latency from the LLC's miss to data in an idle system, ns.
    pub latency_ns: f64,
    /// Bandwidth that can be had of one controller, GB/s.
    pub bandwidth_gb_s: f64,
    /// Controllers per node.
    pub controllers_per_node: u32,
    /// Bytes per line, of the caches and of what moves to and from memory.
    pub line_bytes: u32,
    /// Energy of a line's transfer, nJ.
    pub access_nj: f64,
    /// Banks and rows; 16 banks of rows of 8 KiB that all take equally long where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram: Option<DramSpec>,
}

/// Distances and links between nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumaSpec {
    /// Latency that a miss to another node of the same package adds, ns.
    pub same_package_ns: f64,
    /// Latency that a miss to a node of another package adds, ns.
    pub other_package_ns: f64,
    /// Bandwidth out of one node to all others, GB/s.
    pub link_bandwidth_gb_s: f64,
    /// Nodes that have memory, by their numbers over all packages from 0; all without. What a
    /// thread touches first elsewhere comes to lie on the nearest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_nodes: Option<Vec<u32>>,
}

/// Power of the uncore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UncorePower {
    /// Watts per package, always.
    pub static_w: f64,
}

/// Costs of the operating system's handling of threads on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OsCosts {
    /// Time slice of the default scheduler, ms.
    pub slice_ms: f64,
    /// Saving and restoring a thread's registers, with the kernel's way there, cycles.
    pub switch_cycles: f64,
    /// Calling the kernel to sleep, up to leaving the CPU, cycles.
    #[serde(default)]
    pub call_cycles: f64,
    /// Calling the kernel to wake another thread, per thread woken, cycles.
    #[serde(default)]
    pub wake_cycles: f64,
    /// Handling a page fault that needs no input, cycles.
    #[serde(default)]
    pub fault_cycles: f64,
    /// True where locks and barriers tell who holds them and who waits, as instrumented libraries do;
    /// policies see them only then.
    #[serde(default)]
    pub instrumented_locks: bool,
}

/// The performance monitoring unit of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PmuSpec {
    /// Events that can be counted at once besides the fixed ones.
    pub programmable: u32,
    /// Standard deviation of a count's relative error.
    pub read_noise: f64,
    /// Events that can be counted.
    pub events: Vec<PmuEventSpec>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PmuEventSpec {
    /// The vendor's name, for example `PM_CYC`.
    pub name: String,
    /// Quantity that it counts.
    pub counts: Quantity,
    /// True for an event with a counter of its own.
    #[serde(default)]
    pub fixed: bool,
}
