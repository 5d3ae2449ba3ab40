//! Runs the meters, each group in a thread of its own if there are processors for that.
//!
//! Operations come in the order in which they were executed, and each group takes them in that
//! order, in batches. The measurements are therefore the same with threads and without.

mod meter_runner;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::available_parallelism;

use consort_ops::Op;

use crate::measure::{
    AccessMeters, BranchMeters, InstructionCounts, LocatedBranch, MemoryTouch, MeterCounts,
    MeterGroup, MispredictionFeed, StretchCounts, TimingMeters,
};
use crate::recorder::BlockExecution;
use meter_runner::{MeterRunner, MeterTask};

/// All meters of all threads of a program, except its mixes, and the operations that wait to be
/// sent. These belong to one thread at a time and are either whole operations or parts of them.
#[derive(Debug)]
pub(crate) struct MeterCrew {
    accesses: MeterRunner<AccessMeters>,
    branches: MeterRunner<BranchMeters>,
    timing: MeterRunner<TimingMeters>,
    /// The thread that the waiting operations belong to.
    thread: usize,
    ops: SharedBatch<Op>,
    touches: SharedBatch<MemoryTouch>,
    turnings: SharedBatch<LocatedBranch>,
}

type CountsReceiver<G> = Receiver<<G as MeterGroup>::Counts>;

/// Counts of a thread that were requested. Groups answer when they reach the request, so waiting
/// for an answer at once leaves all groups without work.
#[derive(Debug)]
pub(crate) struct PendingCounts {
    mix: InstructionCounts,
    stretches: StretchCounts,
    accesses: CountsReceiver<AccessMeters>,
    branches: CountsReceiver<BranchMeters>,
    timing: CountsReceiver<TimingMeters>,
}

impl MeterCrew {
    /// A crew that works in parallel with the emulator, if there is more than one processor.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::with_workers(processors > 1)
    }

    /// A crew that works in threads of its own, if `is_apart`.
    pub(crate) fn with_workers(is_apart: bool) -> Self {
        let (reported, wrong) = channel();
        Self {
            accesses: MeterRunner::new(is_apart, ()),
            branches: MeterRunner::new(is_apart, reported),
            timing: MeterRunner::new(is_apart, MispredictionFeed::new(wrong)),
            thread: 0,
            ops: SharedBatch::default(),
            touches: SharedBatch::default(),
            turnings: SharedBatch::default(),
        }
    }

    /// Adds an operation of `thread` whose values are followed.
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

    /// Adds an operation of `thread` whose values are not followed.
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

    /// Adds the data accesses and the branch of a block that `thread` executed, and the virtual
    /// addresses of instructions in it that lie in another line than the one before.
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

    /// Lets the following operations of `thread` count, or only warm caches and predictors.
    pub(crate) fn set_counting(&mut self, thread: usize, counts: bool) {
        self.switch_thread(thread);
        self.accesses.send(thread, MeterTask::Count(counts));
        self.branches.send(thread, MeterTask::Count(counts));
        self.timing.send(thread, MeterTask::Count(counts));
    }

    /// Drops the meters of a thread that has ended.
    pub(crate) fn end_thread(&mut self, thread: usize) {
        self.switch_thread(thread);
        self.accesses.send(thread, MeterTask::End);
        self.branches.send(thread, MeterTask::End);
        self.timing.send(thread, MeterTask::End);
    }

    /// Requests the counts so far of `thread`, which has these mixes and has not ended.
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

    /// Waits for requested counts.
    pub(crate) fn receive_counts(&mut self, requested: PendingCounts) -> MeterCounts {
        let (memory, dataflow, distances) = self.accesses.receive_counts(&requested.accesses);
        let tagged = self.branches.receive_counts(&requested.branches);
        let (gshare, lost_targets, timing, chains) = self.timing.receive_counts(&requested.timing);
        MeterCounts {
            mix: requested.mix,
            stretches: requested.stretches,
            distances,
            memory,
            mispredictions: [tagged, gshare],
            lost_targets,
            dataflow,
            timing,
            chains,
        }
    }

    /// Sends what waits, unless parts of `thread` may be added to it.
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

    /// Sends what waits, and continues with operations of `thread`.
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

    /// Sends operations. Timing comes last because it waits for the mispredictions that the branch
    /// meters find.
    fn send_ops(&mut self) {
        if let Some(ops) = self.ops.take_batch() {
            self.accesses.send(self.thread, MeterTask::Ops(ops.clone()));
            self.branches.send(self.thread, MeterTask::Ops(ops.clone()));
            self.timing.send(self.thread, MeterTask::Ops(ops));
        }
    }
}

/// Bytes that are sent at a time.
const BYTES: usize = 1 << 16;

/// A batch that is being filled, and sent batches that may still be read. Buffers are reused when
/// all readers have dropped them.
#[derive(Debug)]
struct SharedBatch<T> {
    open: Vec<T>,
    sent: VecDeque<Arc<Vec<T>>>,
}

impl<T> Default for SharedBatch<T> {
    fn default() -> Self {
        Self {
            open: Vec::with_capacity(BYTES / size_of::<T>()),
            sent: VecDeque::new(),
        }
    }
}

impl<T: Copy> SharedBatch<T> {
    /// Adds several if there is room for all of them and one more. Returns false if there is not.
    #[inline]
    fn extend(&mut self, new: &[T]) -> bool {
        let has_room = new.len() < self.open.capacity() - self.open.len();
        if has_room {
            self.open.extend_from_slice(new);
        }
        has_room
    }
}

impl<T> SharedBatch<T> {
    /// Adds to the batch. Returns true if it is full.
    #[inline]
    fn push(&mut self, new: T) -> bool {
        self.open.push(new);
        self.open.len() == self.open.capacity()
    }

    const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the batch and begins another; `None` if it is empty.
    fn take_batch(&mut self) -> Option<Arc<Vec<T>>> {
        if self.is_empty() {
            return None;
        }
        let next = self.reuse_buffer();
        let full = Arc::new(std::mem::replace(&mut self.open, next));
        self.sent.push_back(full.clone());
        Some(full)
    }

    /// An empty buffer: that of the earliest sent batch if all readers have dropped it.
    fn reuse_buffer(&mut self) -> Vec<T> {
        let is_read = |sent: &Arc<Vec<T>>| Arc::strong_count(sent) == 1;
        let is_read = self.sent.front().is_some_and(is_read);
        let read = is_read.then(|| self.sent.pop_front()).flatten();
        let mut room = read.and_then(Arc::into_inner);
        room.iter_mut().for_each(Vec::clear);
        room.unwrap_or_else(|| Self::default().open)
    }
}
