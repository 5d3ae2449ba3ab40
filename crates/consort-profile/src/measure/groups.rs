//! Meters in groups that hear little of each other: each can be a thread of its own.
//!
//! Values are followed in some operations only, which the meters then take whole. Of all others each
//! group takes the part that its caches or predictors learn from.

use std::fmt::Debug;
use std::sync::mpsc::{Receiver, Sender};

use consort_ops::{Access, Branch, Kind, Op};

use super::{
    Branches, Dataflow, DataflowCounts, DistanceCounts, Distances, LostTargets, Memory,
    MemoryCounts, PREDICTOR_KIB, SCHEMES, TargetTables, Timing, TimingCounts,
};

/// Meters of one thread that belong together.
pub trait Group: Debug + Default + Send + 'static {
    /// Part of an operation that they take where values are not followed.
    type Part: Debug + Copy + Send + Sync;
    /// Counts of all of them.
    type Counts: Debug + Send;
    /// Word between groups on operations whose values are followed.
    type Link: Debug + Send + 'static;

    /// Has what follows count, or only warm caches and predictors.
    fn count(&mut self, counts: bool);

    /// Takes a part of an operation.
    fn part(&mut self, part: Self::Part);

    /// Takes operations whose values are followed.
    fn ops(&mut self, ops: &[Op], link: &mut Self::Link);

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
    type Link = ();

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

    fn ops(&mut self, ops: &[Op], (): &mut ()) {
        for op in ops {
            let is_long_miss = self.memory.op(op);
            self.dataflow.op(op, is_long_miss);
            if self.counting {
                self.distances.op(op);
            }
        }
    }

    fn counts(&self) -> AccessCounts {
        let (dataflow, distances) = (self.dataflow.counts(), self.distances.counts());
        (self.memory.counts(), dataflow.clone(), distances.clone())
    }
}

/// Branch with the virtual address and the length of its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turning {
    /// Address of the instruction.
    pub at: u64,
    /// Length of the instruction in bytes.
    pub length: u8,
    /// Outcome.
    pub branch: Branch,
}

/// Predictors of the first of [`SCHEMES`], which take as long as all of [`TimingMeters`].
#[derive(Debug, Clone)]
pub struct BranchMeters(Branches);

impl Default for BranchMeters {
    fn default() -> Self {
        Self(Branches::new(SCHEMES[0]))
    }
}

impl Group for BranchMeters {
    type Part = Turning;
    type Counts = [u64; PREDICTOR_KIB.len()];
    type Link = Sender<Vec<bool>>;

    fn count(&mut self, counts: bool) {
        self.0.count(counts);
    }

    fn part(&mut self, turning: Turning) {
        let Turning { at, length, branch } = turning;
        self.0.take(at, length, branch);
    }

    fn ops(&mut self, ops: &[Op], told: &mut Self::Link) {
        let is_wrong = |op: &Op| Some(self.0.take(op.address, op.length, op.branch?));
        // Who was told may have failed.
        let _ = told.send(ops.iter().filter_map(is_wrong).collect());
    }

    fn counts(&self) -> Self::Counts {
        self.0.missed()
    }
}

/// Predictors of the second of [`SCHEMES`], tables of targets, and the time that branches take to resolve with both.
#[derive(Debug, Clone)]
pub struct TimingMeters {
    branches: Branches,
    targets: TargetTables,
    timing: Timing,
}

/// Branches that the predictors of [`BranchMeters`] mispredict, as they are told.
#[derive(Debug)]
pub struct Wrong {
    from: Receiver<Vec<bool>>,
    told: std::vec::IntoIter<bool>,
}

impl Wrong {
    /// Nothing told yet.
    #[must_use]
    pub fn new(from: Receiver<Vec<bool>>) -> Self {
        let told = Vec::new().into_iter();
        Self { from, told }
    }

    /// Returns true where the next branch is mispredicted. Where nobody tells any more all fails.
    fn next(&mut self) -> bool {
        loop {
            if let Some(is_wrong) = self.told.next() {
                return is_wrong;
            }
            match self.from.recv() {
                Ok(told) => self.told = told.into_iter(),
                Err(_) => return false,
            }
        }
    }
}

impl Default for TimingMeters {
    fn default() -> Self {
        Self {
            branches: Branches::new(SCHEMES[1]),
            targets: TargetTables::default(),
            timing: Timing::default(),
        }
    }
}

impl Group for TimingMeters {
    type Part = Turning;
    type Counts = ([u64; PREDICTOR_KIB.len()], LostTargets, TimingCounts);
    type Link = Wrong;

    fn count(&mut self, counts: bool) {
        self.branches.count(counts);
        self.targets.count(counts);
        self.timing.count(counts);
    }

    fn part(&mut self, turning: Turning) {
        let Turning { at, length, branch } = turning;
        self.branches.take(at, length, branch);
        self.targets.take(at, branch);
    }

    fn ops(&mut self, ops: &[Op], wrong: &mut Wrong) {
        for op in ops {
            let is_wrong = |branch| {
                let own = self.branches.take(op.address, op.length, branch);
                self.targets.take(op.address, branch);
                [wrong.next(), own]
            };
            let is_wrong = op.branch.map_or([false; SCHEMES.len()], is_wrong);
            self.timing.op(op, is_wrong);
        }
    }

    fn counts(&self) -> Self::Counts {
        let (missed, lost) = (self.branches.missed(), self.targets.lost());
        (missed, lost, self.timing.counts())
    }
}
