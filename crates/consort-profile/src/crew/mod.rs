//! Meters at work, each group in a thread of its own where there are processors for that.
//!
//! Operations come in the order in which they were executed, and each group takes them in that
//! order, in batches: what is measured is the same with threads and without.

mod batch;
mod meter_runner;
#[cfg(test)]
mod tests;
mod worker;

use std::num::NonZero;
use std::sync::mpsc::{Receiver, channel};
use std::thread::available_parallelism;

use consort_ops::Op;

use crate::measure::{
    AccessMeters, BranchMeters, InstructionCounts, LocatedBranch, MemoryTouch, MeterCounts,
    MeterGroup, MispredictionFeed, StretchCounts, TimingMeters,
};
use crate::recorder::BlockExecution;
use batch::SharedBatch;
use meter_runner::{MeterRunner, MeterTask};

/// All meters of all threads of a program, but for its mixes; and what waits for them, which is of one
/// thread at a time and either whole operations or parts of them.
#[derive(Debug)]
pub(crate) struct MeterCrew {
    accesses: MeterRunner<AccessMeters>,
    branches: MeterRunner<BranchMeters>,
    timing: MeterRunner<TimingMeters>,
    /// The thread that what waits is of.
    thread: usize,
    ops: SharedBatch<Op>,
    touches: SharedBatch<MemoryTouch>,
    turnings: SharedBatch<LocatedBranch>,
}

type CountsReceiver<G> = Receiver<<G as MeterGroup>::Counts>;

/// Counts of a thread that were asked for. Groups tell them when they have come so far, so whoever
/// waits for them at once has all groups run dry.
#[derive(Debug)]
pub(crate) struct PendingCounts {
    mix: InstructionCounts,
    stretches: StretchCounts,
    accesses: CountsReceiver<AccessMeters>,
    branches: CountsReceiver<BranchMeters>,
    timing: CountsReceiver<TimingMeters>,
}

impl MeterCrew {
    /// A crew that works while operations are heard, if there is more than one processor.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::with_workers(processors > 1)
    }

    /// A crew that works in threads of its own, if `is_apart`.
    pub(crate) fn with_workers(is_apart: bool) -> Self {
        let (told, wrong) = channel();
        Self {
            accesses: MeterRunner::new(is_apart, ()),
            branches: MeterRunner::new(is_apart, told),
            timing: MeterRunner::new(is_apart, MispredictionFeed::new(wrong)),
            thread: 0,
            ops: SharedBatch::default(),
            touches: SharedBatch::default(),
            turnings: SharedBatch::default(),
        }
    }

    /// Takes an operation of `thread` whose values are followed.
    #[inline]
    pub(crate) fn add_op(&mut self, thread: usize, op: &Op) {
        let parts_wait = !self.touches.is_empty() || !self.turnings.is_empty();
        if thread != self.thread || parts_wait {
            self.switch_thread(thread);
        }
        if self.ops.push(*op) {
            self.send_ops();
        }
    }

    /// Takes an operation of `thread` whose values are not followed.
    #[inline]
    pub(crate) fn add_op_parts(&mut self, thread: usize, op: &Op, is_new_line: bool) {
        self.begin_parts(thread);
        if is_new_line {
            self.push_touch(MemoryTouch::code(op.address));
        }
        if let Some(data) = op.data {
            self.push_touch(MemoryTouch::data(op.kind, data));
        }
        if let Some(branch) = op.branch {
            self.push_branch(LocatedBranch {
                at: op.address,
                length: op.length,
                branch,
            });
        }
    }

    /// Takes the data and the branch of a block that `thread` executed, and the virtual addresses
    /// of instructions in it that lie in another line than the one before.
    pub(crate) fn add_block(
        &mut self,
        thread: usize,
        run: &BlockExecution,
        lines: impl Iterator<Item = u64>,
    ) {
        self.begin_parts(thread);
        lines.for_each(|address| self.push_touch(MemoryTouch::code(address)));
        if !self.touches.extend(run.touches) {
            run.touches.iter().for_each(|touch| self.push_touch(*touch));
        }
        if let Some(turning) = run.turning {
            self.push_branch(turning);
        }
    }

    /// Has what follows of `thread` count, or only warm caches and predictors.
    pub(crate) fn set_counting(&mut self, thread: usize, counts: bool) {
        self.switch_thread(thread);
        self.accesses.send(thread, MeterTask::Count(counts));
        self.branches.send(thread, MeterTask::Count(counts));
        self.timing.send(thread, MeterTask::Count(counts));
    }

    /// Takes the meters away from a thread that has ended.
    pub(crate) fn end_thread(&mut self, thread: usize) {
        self.switch_thread(thread);
        self.accesses.send(thread, MeterTask::End);
        self.branches.send(thread, MeterTask::End);
        self.timing.send(thread, MeterTask::End);
    }

    /// Asks for the counts so far of `thread`, which has these mixes and has not ended.
    pub(crate) fn request_counts(
        &mut self,
        thread: usize,
        mix: InstructionCounts,
        stretches: StretchCounts,
    ) -> PendingCounts {
        self.switch_thread(thread);
        PendingCounts {
            mix,
            stretches,
            accesses: self.accesses.request_counts(thread),
            branches: self.branches.request_counts(thread),
            timing: self.timing.request_counts(thread),
        }
    }

    /// Waits for counts that were asked for.
    pub(crate) fn receive_counts(&mut self, asked: PendingCounts) -> MeterCounts {
        let (memory, dataflow, distances) = self.accesses.receive_counts(&asked.accesses);
        let tagged = self.branches.receive_counts(&asked.branches);
        let (gshare, lost_targets, timing) = self.timing.receive_counts(&asked.timing);
        MeterCounts {
            mix: asked.mix,
            stretches: asked.stretches,
            distances,
            memory,
            mispredictions: [tagged, gshare],
            lost_targets,
            dataflow,
            timing,
        }
    }

    /// Sends what waits unless parts of `thread` may be added to it.
    #[inline]
    fn begin_parts(&mut self, thread: usize) {
        if thread != self.thread || !self.ops.is_empty() {
            self.switch_thread(thread);
        }
    }

    #[inline]
    fn push_touch(&mut self, touch: MemoryTouch) {
        if self.touches.push(touch) {
            self.send_touches();
        }
    }

    #[inline]
    fn push_branch(&mut self, turning: LocatedBranch) {
        if self.turnings.push(turning) {
            self.send_branches();
        }
    }

    /// Sends what waits, and takes what comes for a thread.
    fn switch_thread(&mut self, thread: usize) {
        self.send_touches();
        self.send_branches();
        self.send_ops();
        self.thread = thread;
    }

    fn send_touches(&mut self) {
        if let Some(touches) = self.touches.take_batch() {
            self.accesses.send(self.thread, MeterTask::Parts(touches));
        }
    }

    fn send_branches(&mut self) {
        if let Some(turnings) = self.turnings.take_batch() {
            let parts = MeterTask::Parts(turnings.clone());
            self.branches.send(self.thread, parts);
            self.timing.send(self.thread, MeterTask::Parts(turnings));
        }
    }

    /// Sends operations; to those last who wait for what the others say of them.
    fn send_ops(&mut self) {
        if let Some(ops) = self.ops.take_batch() {
            self.accesses.send(self.thread, MeterTask::Ops(ops.clone()));
            self.branches.send(self.thread, MeterTask::Ops(ops.clone()));
            self.timing.send(self.thread, MeterTask::Ops(ops));
        }
    }
}
