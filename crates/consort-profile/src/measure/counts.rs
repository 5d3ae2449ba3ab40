//! All meters over one thread's operations.

use consort_ops::Op;

use super::{
    Branches, Dataflow, DataflowCounts, DistanceCounts, Distances, LostTargets, Memory,
    MemoryCounts, Mispredictions, Mix, Tally, Timing, TimingCounts,
};

/// Counts of all meters in a stretch of execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions and operations.
    pub mix: Mix,
    /// Distances to first uses.
    pub distances: DistanceCounts,
    /// Caches, prefetching and pages.
    pub memory: MemoryCounts,
    /// Mispredictions.
    pub mispredictions: Mispredictions,
    /// Mispredicted targets of indirect branches.
    pub lost_targets: LostTargets,
    /// Data flow.
    pub dataflow: DataflowCounts,
    /// Data flow with latencies.
    pub timing: TimingCounts,
}

impl Tally for Counts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.mix.merge(&other.mix, with);
        self.distances.merge(&other.distances, with);
        self.memory.merge(&other.memory, with);
        self.mispredictions.merge(&other.mispredictions, with);
        self.lost_targets.merge(&other.lost_targets, with);
        self.dataflow.merge(&other.dataflow, with);
        self.timing.merge(&other.timing, with);
    }
}

/// All meters.
#[derive(Debug, Clone, Default)]
pub struct Meters {
    counting: bool,
    mix: Mix,
    distances: Distances,
    memory: Memory,
    branches: Branches,
    dataflow: Dataflow,
    timing: Timing,
}

impl Meters {
    /// Has what follows count, or only warm caches and predictors.
    pub fn count(&mut self, counts: bool) {
        self.counting = counts;
        self.memory.count(counts);
        self.branches.count(counts);
        self.dataflow.count(counts);
        self.timing.count(counts);
    }

    /// Takes an operation, and whether what becomes of its values is looked for.
    pub fn op(&mut self, op: &Op, with_dataflow: bool) {
        let is_long_miss = self.memory.op(op);
        let is_mispredicted = self.branches.op(op);
        if with_dataflow {
            self.dataflow.op(op, is_long_miss);
            self.timing.op(op, is_mispredicted);
        }
        if with_dataflow && self.counting {
            self.distances.op(op);
        }
        if self.counting {
            self.mix.op(op);
        }
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            mix: self.mix.clone(),
            distances: self.distances.counts().clone(),
            memory: self.memory.counts(),
            mispredictions: self.branches.missed(),
            lost_targets: self.branches.lost_targets(),
            dataflow: self.dataflow.counts().clone(),
            timing: self.timing.counts(),
        }
    }
}
