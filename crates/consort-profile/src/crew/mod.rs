//! Meters at work, each group in a thread of its own where there are processors for that.
//!
//! Operations come in the order in which they were executed, and each group takes them in that
//! order, in batches: what is measured is the same with threads and without.

mod batch;
mod station;
#[cfg(test)]
mod tests;
mod worker;

use std::num::NonZero;
use std::sync::mpsc::{Receiver, channel};
use std::thread::available_parallelism;

use consort_ops::Op;

use crate::measure::{
    AccessMeters, BranchMeters, Counts, Group, Mix, StretchCounts, TimingMeters, Touch, Turning,
    Wrong,
};
use crate::recorder::Run;
use batch::Batch;
use station::{Station, Work};

/// All meters of all threads of a program, but for its mixes; and what waits for them, which is of one
/// thread at a time and either whole operations or parts of them.
#[derive(Debug)]
pub(crate) struct Crew {
    accesses: Station<AccessMeters>,
    branches: Station<BranchMeters>,
    timing: Station<TimingMeters>,
    /// The thread that what waits is of.
    thread: usize,
    ops: Batch<Op>,
    touches: Batch<Touch>,
    turnings: Batch<Turning>,
}

type Answer<G> = Receiver<<G as Group>::Counts>;

/// Counts of a thread that were asked for. Groups tell them when they have come so far, so whoever
/// waits for them at once has all groups run dry.
#[derive(Debug)]
pub(crate) struct Asked {
    mix: Mix,
    stretches: StretchCounts,
    accesses: Answer<AccessMeters>,
    branches: Answer<BranchMeters>,
    timing: Answer<TimingMeters>,
}

impl Crew {
    /// A crew that works while operations are heard, if there is more than one processor.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::of(processors > 1)
    }

    /// A crew that works in threads of its own, if `is_apart`.
    pub(crate) fn of(is_apart: bool) -> Self {
        let (told, wrong) = channel();
        Self {
            accesses: Station::new(is_apart, ()),
            branches: Station::new(is_apart, told),
            timing: Station::new(is_apart, Wrong::new(wrong)),
            thread: 0,
            ops: Batch::default(),
            touches: Batch::default(),
            turnings: Batch::default(),
        }
    }

    /// Takes an operation of `thread` whose values are followed.
    #[inline]
    pub(crate) fn op(&mut self, thread: usize, op: &Op) {
        let parts_wait = !self.touches.is_empty() || !self.turnings.is_empty();
        if thread != self.thread || parts_wait {
            self.turn_to(thread);
        }
        if self.ops.push(*op) {
            self.send_ops();
        }
    }

    /// Takes an operation of `thread` whose values are not followed.
    #[inline]
    pub(crate) fn part(&mut self, thread: usize, op: &Op, is_new_line: bool) {
        self.begin_parts(thread);
        if is_new_line {
            self.touch(Touch::code(op.address));
        }
        if let Some(data) = op.data {
            self.touch(Touch::data(op.kind, data));
        }
        if let Some(branch) = op.branch {
            self.turning(Turning {
                at: op.address,
                length: op.length,
                branch,
            });
        }
    }

    /// Takes the data and the branch of a block that `thread` executed, and the virtual addresses
    /// of instructions in it that lie in another line than the one before.
    pub(crate) fn run(&mut self, thread: usize, run: &Run, lines: impl Iterator<Item = u64>) {
        self.begin_parts(thread);
        lines.for_each(|address| self.touch(Touch::code(address)));
        if !self.touches.extend(run.touches) {
            run.touches.iter().for_each(|touch| self.touch(*touch));
        }
        if let Some(turning) = run.turning {
            self.turning(turning);
        }
    }

    /// Has what follows of `thread` count, or only warm caches and predictors.
    pub(crate) fn count(&mut self, thread: usize, counts: bool) {
        self.turn_to(thread);
        self.accesses.send(thread, Work::Count(counts));
        self.branches.send(thread, Work::Count(counts));
        self.timing.send(thread, Work::Count(counts));
    }

    /// Takes the meters away from a thread that has ended.
    pub(crate) fn end(&mut self, thread: usize) {
        self.turn_to(thread);
        self.accesses.send(thread, Work::End);
        self.branches.send(thread, Work::End);
        self.timing.send(thread, Work::End);
    }

    /// Asks for the counts so far of `thread`, which has these mixes and has not ended.
    pub(crate) fn ask(&mut self, thread: usize, mix: Mix, stretches: StretchCounts) -> Asked {
        self.turn_to(thread);
        Asked {
            mix,
            stretches,
            accesses: self.accesses.ask(thread),
            branches: self.branches.ask(thread),
            timing: self.timing.ask(thread),
        }
    }

    /// Waits for counts that were asked for.
    pub(crate) fn hear(&mut self, asked: Asked) -> Counts {
        let (memory, dataflow, distances) = self.accesses.hear(&asked.accesses);
        let tagged = self.branches.hear(&asked.branches);
        let (gshare, lost_targets, timing) = self.timing.hear(&asked.timing);
        Counts {
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
            self.turn_to(thread);
        }
    }

    #[inline]
    fn touch(&mut self, touch: Touch) {
        if self.touches.push(touch) {
            self.send_touches();
        }
    }

    #[inline]
    fn turning(&mut self, turning: Turning) {
        if self.turnings.push(turning) {
            self.send_turnings();
        }
    }

    /// Sends what waits, and takes what comes for a thread.
    fn turn_to(&mut self, thread: usize) {
        self.send_touches();
        self.send_turnings();
        self.send_ops();
        self.thread = thread;
    }

    fn send_touches(&mut self) {
        if let Some(touches) = self.touches.send() {
            self.accesses.send(self.thread, Work::Parts(touches));
        }
    }

    fn send_turnings(&mut self) {
        if let Some(turnings) = self.turnings.send() {
            let parts = Work::Parts(turnings.clone());
            self.branches.send(self.thread, parts);
            self.timing.send(self.thread, Work::Parts(turnings));
        }
    }

    /// Sends operations; to those last who wait for what the others say of them.
    fn send_ops(&mut self) {
        if let Some(ops) = self.ops.send() {
            self.accesses.send(self.thread, Work::Ops(ops.clone()));
            self.branches.send(self.thread, Work::Ops(ops.clone()));
            self.timing.send(self.thread, Work::Ops(ops));
        }
    }
}
