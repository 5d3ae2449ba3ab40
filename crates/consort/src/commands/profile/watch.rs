//! A profiler that shows how far it is.

use crate::progress::Counted;
use consort_ops::Op;
use consort_profile::Profiler;
use consort_profile::recorder::{Atomic, Call, Event, Run, Sink, Stage};

/// Instructions between two looks at the bar.
const STEP: u64 = 1 << 18;

/// Tells the profiler all that it hears, and the bar how much that was.
pub(super) struct Watched<'a> {
    pub(super) profiler: &'a mut Profiler,
    pub(super) bar: &'a Counted,
    pub(super) heard: u64,
}

impl Watched<'_> {
    fn instructions(&mut self, more: u64) {
        let before = self.heard / STEP;
        self.heard += more;
        if self.heard / STEP != before {
            self.bar.reach(self.heard);
        }
    }
}

impl Sink for Watched<'_> {
    fn op(&mut self, thread: usize, op: &Op) {
        if op.first {
            self.instructions(1);
        }
        self.profiler.op(thread, op);
    }

    fn run(&mut self, thread: usize, run: &Run) -> bool {
        let is_taken = self.profiler.run(thread, run);
        if is_taken {
            self.instructions(run.mix.instructions);
        }
        is_taken
    }

    fn stage(&mut self, thread: usize, stage: Stage, executed: u64) {
        self.profiler.stage(thread, stage, executed);
    }

    fn system_call(&mut self, thread: usize, call: &Call) {
        self.profiler.system_call(thread, call);
    }

    fn living(&mut self, thread: usize, threads: u64) {
        self.profiler.living(thread, threads);
    }

    fn atomic(&mut self, thread: usize, atomic: Atomic) {
        self.profiler.atomic(thread, atomic);
    }

    fn event(&mut self, event: &Event) {
        self.profiler.event(event);
    }
}
