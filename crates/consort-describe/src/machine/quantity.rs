//! Quantities that events can count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Quantity that an event counts and the simulation accounts for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Core cycles in which the thread was on a CPU.
    Cycles,
    /// Instructions completed.
    Instructions,
    /// Cycles in which no floating-point operation of the thread was in the FPU, neither in its
    /// scheduler nor in execution.
    #[doc(alias = "empty FPU cycles")]
    FpuEmptyCycles,
    /// Floating-point operations completed.
    FpOperations,
    /// Accesses to the L1 data cache.
    L1dAccesses,
    /// Misses of the L1 data cache.
    L1dMisses,
    /// Misses of the L1 instruction cache.
    L1iMisses,
    /// Demand data misses of the L2, after prefetching: a line that a prefetcher of the core or
    /// of the L2 has brought into the L2 in time is none. Where the prefetchers are the LLC's, or
    /// there is no L2, all that misses before the LLC.
    L2Misses,
    /// Data that the L2 requests from the LLC: by demand, or for the core's and the L2's prefetchers.
    L2DataMisses,
    /// Demand misses of the LLC.
    LlcMisses,
    /// Accesses to the LLC: data, prefetched into the L2 or not, and code.
    LlcAccesses,
    /// Lines fetched by prefetchers from memory.
    PrefetchedLines,
    /// Lines to and from memory: demand, prefetched, written back.
    MemoryLines,
    /// Lines read from memory: data by demand or prefetched, and code.
    BurstReads,
    /// Lines of code read from memory.
    CodeLines,
    /// Lines written back to memory.
    WrittenLines,
    /// Core cycles during which reads of data from memory were under way, summed over the reads.
    OutstandingCycles,
    /// Cycles in which memory's data moved over the bus for this thread.
    BusBusyCycles,
    /// Cycles that this thread's requests waited for the bus or the controller.
    BusQueueCycles,
    /// Branches completed.
    Branches,
    /// Branches mispredicted.
    BranchMisses,
    /// Cycles that mispredicted branches cost, in no stack that policies see; `stack-branch` is.
    BranchMissCycles,
    /// Cycles that instruction fetch cost, in no stack that policies see; `stack-fetch` is.
    FetchStallCycles,
    /// Data TLB misses that took a page walk.
    TlbMisses,
    /// Cycles that page walks take, whether others hide them or not.
    TlbWalkCycles,
    /// Cycles of the stack: work.
    StackBase,
    /// Cycles of the stack: waiting for functional units, ports or a larger window.
    StackUnits,
    /// Cycles of the stack: instruction fetch, turns of it that co-runners have included.
    StackFetch,
    /// Cycles of the stack: mispredicted branches.
    StackBranch,
    /// Cycles of the stack: data from L2, LLC, memory, page walks.
    StackData,
    /// Cycles of the stack: dispatch or commit taken by co-runners.
    StackCoRunners,
    /// Cycles of the stack: groups completed, at most one a cycle. With it, the time that operations
    /// depend on each other is a stall, not work.
    StackGroups,
    /// Cycles of the stack: completion waits for an integer operation or a branch; in
    /// addition to `stack-groups`.
    StackFixedPoint,
    /// Cycles of the stack: completion waits for a floating-point or vector operation; in
    /// addition to `stack-groups`.
    StackFloatingPoint,
    /// Cycles of the stack: completion waits for a load that hits the L1; in addition to
    /// `stack-groups`.
    StackLoads,
    /// Cycles of the stack: completion stalled by operations or data, where one event has all;
    /// in addition to `stack-groups`.
    StackCompletion,
    /// Cycles of the stack: empty pipeline, for instruction fetch or a mispredicted branch,
    /// where one event has both.
    StackEmpty,
    /// Cycles of the stack: all instructions finished, none completed. The simulation completes
    /// what has finished at once, so there are none; a PMU spends a counter on them all the same.
    StackFinished,
    /// Cycles that misses of the LLC stall a thread, queueing included; a part of what
    /// `stack-data` counts.
    LlcMissCycles,
    /// Distances in instructions from values to their first uses, summed over all instructions.
    UseDistances,
    /// Cycles that the instructions would take in order with this core's width and units, were all
    /// data in the L1 and all branches predicted.
    InOrderCycles,
}
