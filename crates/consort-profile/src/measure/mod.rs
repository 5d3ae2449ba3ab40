//! Meters of a stream of operations. Every meter takes operations one at a time and returns its
//! counts at any time; none depends on another.

mod branches;
mod chains;
mod dataflow;
mod distance;
mod groups;
mod instruction_counts;
mod memory;
mod pipelines;
mod recent_values;
mod sets;
mod stack;
mod stretches;
mod timing;
mod timing_counts;

pub use branches::{
    LostTargets, Mispredictions, PREDICTOR_KIB, SCHEMES, SchemeCounts, SchemePredictors,
    TARGET_ENTRIES, TargetTables,
};
pub use chains::{ChainCounts, ChainSchedules, SETS};
pub use dataflow::{Dataflow, DataflowCounts, WINDOWS};
pub use distance::{DistanceCounts, Distances, NEAR};
pub use groups::{
    AccessCounts, AccessMeters, BranchMeters, LocatedBranch, MemoryTouch, MeterGroup,
    MispredictionFeed, TimingMeters, TouchKind,
};
pub use instruction_counts::InstructionCounts;
pub(crate) use memory::line_of;
pub use memory::{MemoryFigures, MemoryMeter, MemoryMeterCounts, PAGE_COUNTS};
pub use pipelines::{DIVIDERS, PipelineCounts, Resolution};
pub use sets::{SET_CAPACITIES, SetMisses};
pub use stack::{CAPACITIES, CapacityCounts, LruStack};
pub use stretches::{StretchCounts, Stretches};
pub use timing::LatencySchedule;
pub use timing_counts::{FETCH_WIDTHS, SchedulerCounts, TimingCounts};

/// Misses per kilo-instruction below which ratios per miss mean nothing.
pub const FEW_MPKI: f64 = 0.05;

/// Counts that can be subtracted and added.
pub trait PartialTally: Clone {
    /// Combines each count with its counterpart.
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64);

    /// Adds other counts.
    fn add(&mut self, other: &Self) {
        self.merge(other, u64::saturating_add);
    }

    /// Counts since `before`.
    #[must_use]
    fn since(&self, before: &Self) -> Self {
        let mut rest = self.clone();
        rest.merge(before, u64::saturating_sub);
        rest
    }
}

impl PartialTally for u64 {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        *self = with(*self, *other);
    }
}

impl<T: PartialTally, const N: usize> PartialTally for [T; N] {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (own, other) in self.iter_mut().zip(other) {
            own.merge(other, with);
        }
    }
}

/// Counts of all meters in a stretch of one thread's execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterCounts {
    /// Instructions and operations.
    pub mix: InstructionCounts,
    /// Mixes of short stretches.
    pub stretches: StretchCounts,
    /// Distances to first uses.
    pub distances: DistanceCounts,
    /// Caches, prefetching and pages.
    pub memory: MemoryMeterCounts,
    /// Mispredictions.
    pub mispredictions: Mispredictions,
    /// Mispredicted targets of indirect branches.
    pub lost_targets: LostTargets,
    /// Data flow.
    pub dataflow: DataflowCounts,
    /// Data flow with latencies.
    pub timing: TimingCounts,
    /// Longest chains by latencies and windows.
    pub chains: ChainCounts,
}

impl PartialTally for MeterCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.mix.merge(&other.mix, with);
        self.stretches.merge(&other.stretches, with);
        self.distances.merge(&other.distances, with);
        self.memory.merge(&other.memory, with);
        self.mispredictions.merge(&other.mispredictions, with);
        self.lost_targets.merge(&other.lost_targets, with);
        self.dataflow.merge(&other.dataflow, with);
        self.timing.merge(&other.timing, with);
        self.chains.merge(&other.chains, with);
    }
}
