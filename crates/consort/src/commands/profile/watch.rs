//! A profiler that shows how far it is.

use crate::progress::Counted;
use consort_ops::Op;
use consort_profile::Profiler;
use consort_profile::recorder::{Atomic, Call, Event, Sink, Stage};

/// Instructions between two looks at the bar.
const STEP: u64 = 1 << 18;

/// Tells the profiler all that it hears, and the bar how much that was.
pub(super) struct Watched<'a> {
    pub(super) profiler: &'a mut Profiler,
    pub(super) bar: &'a Counted,
    pub(super) heard: u64,
}

impl Sink for Watched<'_> {
    fn op(&mut self, thread: usize, op: &Op) {
        if op.first {
            self.heard += 1;
            if self.heard.is_multiple_of(STEP) {
                self.bar.reach(self.heard);
            }
        }
        self.profiler.op(thread, op);
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
