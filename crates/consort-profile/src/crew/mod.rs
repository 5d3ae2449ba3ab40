//! Meters at work, each group in a thread of its own where there are processors for that.
//!
//! Operations come in the order in which they were executed, and each group takes them in that
//! order, in batches: what is measured is the same with threads and without.

mod station;
#[cfg(test)]
mod tests;
mod worker;

use std::num::NonZero;
use std::thread::available_parallelism;

use consort_ops::Op;

use crate::measure::{AccessMeters, BranchMeters, Counts, Mix, Touch, Turning};
use crate::recorder::Run;
use station::Station;

/// All meters of all threads of a program, but for its mix.
#[derive(Debug)]
pub(crate) struct Crew {
    accesses: Station<AccessMeters>,
    branches: Station<BranchMeters>,
}

impl Crew {
    /// A crew that works while operations are heard, if there is more than one processor.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::of(processors > 1)
    }

    /// A crew that works in threads of its own, if `is_apart`.
    pub(crate) fn of(is_apart: bool) -> Self {
        Self {
            accesses: Station::new(is_apart),
            branches: Station::new(is_apart),
        }
    }

    /// Takes an operation of `thread` whose values are followed.
    pub(crate) fn op(&mut self, thread: usize, op: &Op) {
        self.accesses.op(thread, op);
        self.branches.op(thread, op);
    }

    /// Takes an operation of `thread` whose values are not followed.
    #[inline]
    pub(crate) fn part(&mut self, thread: usize, op: &Op, is_new_line: bool) {
        if is_new_line {
            self.touch(thread, Touch::code(op.address));
        }
        if let Some(data) = op.data {
            self.touch(thread, Touch::data(op.kind, data));
        }
        if let Some(branch) = op.branch {
            let turning = Turning {
                at: op.address,
                length: op.length,
                branch,
            };
            self.branches.part(thread, turning);
        }
    }

    /// Takes a use of memory by `thread`.
    #[inline]
    pub(crate) fn touch(&mut self, thread: usize, touch: Touch) {
        self.accesses.part(thread, touch);
    }

    /// Takes the data and the branch of a block that `thread` executed.
    pub(crate) fn run(&mut self, thread: usize, run: &Run) {
        for &touch in run.touches {
            self.touch(thread, touch);
        }
        if let Some(turning) = run.turning {
            self.branches.part(thread, turning);
        }
    }

    /// Has what follows of `thread` count, or only warm caches and predictors.
    pub(crate) fn count(&mut self, thread: usize, counts: bool) {
        self.accesses.count(thread, counts);
        self.branches.count(thread, counts);
    }

    /// Takes the meters away from a thread that has ended.
    pub(crate) fn end(&mut self, thread: usize) {
        self.accesses.end(thread);
        self.branches.end(thread);
    }

    /// Counts so far of `thread`, which has this mix and has not ended.
    pub(crate) fn counts(&mut self, thread: usize, mix: &Mix) -> Counts {
        let accesses = self.accesses.ask(thread);
        let branches = self.branches.ask(thread);
        let (memory, dataflow, distances) = self.accesses.hear(&accesses);
        let (mispredictions, timing) = self.branches.hear(&branches);
        Counts {
            mix: mix.clone(),
            distances,
            memory,
            mispredictions,
            dataflow,
            timing,
        }
    }
}
