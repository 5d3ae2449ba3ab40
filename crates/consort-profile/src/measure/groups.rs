//! Meters in two groups that hear nothing of each other: each can be a thread of its own.
//!
//! Values are followed in some operations only, which the meters then take whole. Of all others each
//! group takes the part that its caches or predictors learn from.

use std::fmt::Debug;

use consort_ops::{Access, Branch, Kind, Op};

use super::{
    Branches, Dataflow, DataflowCounts, DistanceCounts, Distances, Memory, MemoryCounts,
    Mispredictions, Timing, TimingCounts,
};

/// Meters of one thread that belong together.
pub trait Group: Debug + Default + Send + 'static {
    /// Part of an operation that they take where values are not followed.
    type Part: Debug + Copy + Send;
    /// Counts of all of them.
    type Counts: Debug + Send;

    /// Has what follows count, or only warm caches and predictors.
    fn count(&mut self, counts: bool);

    /// Takes a part of an operation.
    fn part(&mut self, part: Self::Part);

    /// Takes an operation whose values are followed.
    fn op(&mut self, op: &Op);

    /// Counts so far.
    fn counts(&self) -> Self::Counts;
}

/// Meters of memory, and of what becomes of values.
#[derive(Debug, Clone, Default)]
pub struct AccessMeters {
    counting: bool,
    memory: Memory,
    dataflow: Dataflow,
    distances: Distances,
}

/// Counts of [`AccessMeters`].
pub type AccessCounts = (MemoryCounts, DataflowCounts, DistanceCounts);

/// Use of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Number of bytes of data.
    pub bytes: u16,
    /// Sort of use.
    pub sort: Sort,
}

/// Sort of a use of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// An instruction begins here, in another line of code than the one before.
    Code,
    /// Data is read.
    Load,
    /// Data is written.
    Store,
}

impl Touch {
    /// Use of a line of code.
    #[must_use]
    pub const fn code(address: u64) -> Self {
        Self {
            address,
            bytes: 0,
            sort: Sort::Code,
        }
    }

    /// Use of the data of an operation.
    #[must_use]
    pub const fn data(kind: Kind, data: Access) -> Self {
        let sort = match kind {
            Kind::Store => Sort::Store,
            _ => Sort::Load,
        };
        Self {
            address: data.address,
            bytes: data.bytes,
            sort,
        }
    }
}

impl Group for AccessMeters {
    type Part = Touch;
    type Counts = AccessCounts;

    fn count(&mut self, counts: bool) {
        self.counting = counts;
        self.memory.count(counts);
        self.dataflow.count(counts);
    }

    fn part(&mut self, touch: Touch) {
        match touch.sort {
            Sort::Code => self.memory.fetch(touch.address),
            sort => drop(
                self.memory
                    .touch(touch.address, touch.bytes, sort == Sort::Store),
            ),
        }
    }

    fn op(&mut self, op: &Op) {
        let is_long_miss = self.memory.op(op);
        self.dataflow.op(op, is_long_miss);
        if self.counting {
            self.distances.op(op);
        }
    }

    fn counts(&self) -> AccessCounts {
        let (dataflow, distances) = (self.dataflow.counts(), self.distances.counts());
        (self.memory.counts(), dataflow.clone(), distances.clone())
    }
}

/// Meters of branches, and of the time that they take to resolve.
#[derive(Debug, Clone, Default)]
pub struct BranchMeters {
    branches: Branches,
    timing: Timing,
}

/// Branch with the virtual address of its instruction, and that of what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turning {
    /// Address of the instruction.
    pub at: u64,
    /// Length of the instruction in bytes.
    pub length: u8,
    /// Outcome.
    pub branch: Branch,
}

impl Group for BranchMeters {
    type Part = Turning;
    type Counts = (Mispredictions, TimingCounts);

    fn count(&mut self, counts: bool) {
        self.branches.count(counts);
        self.timing.count(counts);
    }

    fn part(&mut self, turning: Turning) {
        let Turning { at, length, branch } = turning;
        self.branches.branch(at, u64::from(length), branch);
    }

    fn op(&mut self, op: &Op) {
        let is_mispredicted = self.branches.op(op);
        self.timing.op(op, is_mispredicted);
    }

    fn counts(&self) -> Self::Counts {
        (self.branches.missed(), self.timing.counts())
    }
}
