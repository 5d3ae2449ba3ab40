//! Counts of all meters over one thread's operations.

use super::{
    DataflowCounts, DistanceCounts, InstructionCounts, LostTargets, MemoryMeterCounts,
    Mispredictions, PartialTally, StretchCounts, TimingCounts,
};

/// Counts of all meters in a stretch of execution.
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
    }
}
