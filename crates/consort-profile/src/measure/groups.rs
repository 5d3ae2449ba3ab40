//! Groups of meters that exchange little, so that each can run in a thread of its own.
//!
//! Values are followed only in some operations, which the meters take whole. For all others each
//! group takes the part from which its caches or predictors learn.

use std::fmt::Debug;
use std::sync::mpsc::{Receiver, Sender};

use consort_ops::{Access, Branch, Op, OpKind};

use super::{
    ChainCounts, ChainSchedules, Dataflow, DataflowCounts, DistanceCounts, Distances,
    LatencySchedule, LostTargets, MemoryMeter, MemoryMeterCounts, SCHEMES, SchemeCounts,
    SchemePredictors, TargetTables, TimingCounts,
};

/// Meters of one thread that belong together.
pub trait MeterGroup: Debug + Default + Send + 'static {
    /// Part of an operation, for operations whose values are not followed.
    type Part: Debug + Copy + Send + Sync;
    /// Counts of all of them.
    type Counts: Debug + Send;
    /// Link between groups, for operations whose values are followed.
    type Link: Debug + Send + 'static;

    /// Lets what follows count, or only warm caches and predictors.
    fn set_counting(&mut self, counts: bool);

    /// Adds a part of an operation.
    fn add_part(&mut self, part: Self::Part);

    /// Adds operations whose values are followed.
    fn add_ops(&mut self, ops: &[Op], link: &mut Self::Link);

    /// Counts so far.
    fn counts(&mut self) -> Self::Counts;
}

/// Meters of memory and of the use of values.
#[derive(Debug, Clone, Default)]
pub struct AccessMeters {
    counting: bool,
    memory: MemoryMeter,
    dataflow: Dataflow,
    distances: Distances,
}

/// Counts of [`AccessMeters`].
pub type AccessCounts = (MemoryMeterCounts, DataflowCounts, DistanceCounts);

/// Access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryTouch {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Number of bytes of data.
    pub bytes: u16,
    /// Kind of access.
    pub sort: TouchKind,
}

/// Kind of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    /// An instruction begins here, in another line of code than the one before.
    Code,
    /// Data is read.
    Load,
    /// Data is written.
    Store,
}

impl MemoryTouch {
    /// Access to a line of code.
    #[must_use]
    pub const fn code(address: u64) -> Self {
        Self {
            address,
            bytes: 0,
            sort: TouchKind::Code,
        }
    }

    /// Access to the data of an operation.
    #[must_use]
    pub const fn data(kind: OpKind, data: Access) -> Self {
        let sort = match kind {
            OpKind::Store => TouchKind::Store,
            _ => TouchKind::Load,
        };
        Self {
            address: data.address,
            bytes: data.bytes,
            sort,
        }
    }
}

impl MeterGroup for AccessMeters {
    type Part = MemoryTouch;
    type Counts = AccessCounts;
    type Link = ();

    fn set_counting(&mut self, counts: bool) {
        self.counting = counts;
        self.memory.set_counting(counts);
        self.dataflow.set_counting(counts);
    }

    fn add_part(&mut self, touch: MemoryTouch) {
        match touch.sort {
            TouchKind::Code => self.memory.fetch(touch.address),
            sort => drop(self.memory.access_data(
                touch.address,
                touch.bytes,
                sort == TouchKind::Store,
            )),
        }
    }

    fn add_ops(&mut self, ops: &[Op], (): &mut ()) {
        for op in ops {
            let is_long_miss = self.memory.add_op(op);
            self.dataflow.add_op(op, is_long_miss);
            if self.counting {
                self.distances.add_op(op);
            }
        }
    }

    fn counts(&mut self) -> AccessCounts {
        let (dataflow, distances) = (self.dataflow.counts(), self.distances.counts());
        (self.memory.counts(), dataflow.clone(), distances.clone())
    }
}

/// Branch with the virtual address and the length of its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocatedBranch {
    /// Address of the instruction.
    pub at: u64,
    /// Length of the instruction in bytes.
    pub length: u8,
    /// Outcome.
    pub branch: Branch,
}

/// Predictors of the first of [`SCHEMES`], which take as long as all of [`TimingMeters`].
#[derive(Debug, Clone)]
pub struct BranchMeters(SchemePredictors);

impl Default for BranchMeters {
    fn default() -> Self {
        Self(SchemePredictors::new(SCHEMES[0]))
    }
}

impl MeterGroup for BranchMeters {
    type Part = LocatedBranch;
    type Counts = SchemeCounts;
    type Link = Sender<Vec<bool>>;

    fn set_counting(&mut self, counts: bool) {
        self.0.set_counting(counts);
    }

    fn add_part(&mut self, turning: LocatedBranch) {
        let LocatedBranch { at, length, branch } = turning;
        self.0.predict_branch(at, length, branch);
    }

    fn add_ops(&mut self, ops: &[Op], reported: &mut Self::Link) {
        let is_wrong = |op: &Op| Some(self.0.predict_branch(op.address, op.length, op.branch?));
        // The receiver may have failed.
        let _ = reported.send(ops.iter().filter_map(is_wrong).collect());
    }

    fn counts(&mut self) -> Self::Counts {
        self.0.counts()
    }
}

/// Predictors of the second of [`SCHEMES`], tables of targets, and the time that branches take to
/// resolve with both schemes.
#[derive(Debug, Clone)]
pub struct TimingMeters {
    branches: SchemePredictors,
    targets: TargetTables,
    timing: LatencySchedule,
    chains: ChainSchedules,
}

/// Mispredictions of [`BranchMeters`], as a stream from their thread.
#[derive(Debug)]
pub struct MispredictionFeed {
    from: Receiver<Vec<bool>>,
    reported: std::vec::IntoIter<bool>,
}

impl MispredictionFeed {
    /// A stream from which nothing has come yet.
    #[must_use]
    pub fn new(from: Receiver<Vec<bool>>) -> Self {
        let reported = Vec::new().into_iter();
        Self { from, reported }
    }

    /// Returns true if the next branch is mispredicted; false if the sender has failed, because
    /// then the whole profile fails.
    fn next(&mut self) -> bool {
        loop {
            if let Some(is_wrong) = self.reported.next() {
                return is_wrong;
            }
            match self.from.recv() {
                Ok(reported) => self.reported = reported.into_iter(),
                Err(_) => return false,
            }
        }
    }
}

impl Default for TimingMeters {
    fn default() -> Self {
        Self {
            branches: SchemePredictors::new(SCHEMES[1]),
            targets: TargetTables::default(),
            timing: LatencySchedule::default(),
            chains: ChainSchedules::default(),
        }
    }
}

impl MeterGroup for TimingMeters {
    type Part = LocatedBranch;
    type Counts = (SchemeCounts, LostTargets, TimingCounts, ChainCounts);
    type Link = MispredictionFeed;

    fn set_counting(&mut self, counts: bool) {
        self.branches.set_counting(counts);
        self.targets.set_counting(counts);
        self.timing.set_counting(counts);
        self.chains.set_counting(counts);
    }

    fn add_part(&mut self, turning: LocatedBranch) {
        let LocatedBranch { at, length, branch } = turning;
        self.branches.predict_branch(at, length, branch);
        self.targets.predict_target(at, branch);
    }

    fn add_ops(&mut self, ops: &[Op], wrong: &mut MispredictionFeed) {
        for op in ops {
            let is_wrong = |branch| {
                let own = self.branches.predict_branch(op.address, op.length, branch);
                self.targets.predict_target(op.address, branch);
                [wrong.next(), own]
            };
            let is_wrong = op.branch.map_or([false; SCHEMES.len()], is_wrong);
            self.timing.add_op(op, is_wrong);
            self.chains.add_op(op);
        }
    }

    fn counts(&mut self) -> Self::Counts {
        let (missed, lost) = (self.branches.counts(), self.targets.lost_targets());
        (missed, lost, self.timing.counts(), self.chains.counts())
    }
}
