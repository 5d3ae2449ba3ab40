//! A profiler that shows how far it is.

use crate::progress::ProgressMeter;
use consort_ops::Op;
use consort_profile::ProgramProfiler;
use consort_profile::recorder::{
    AtomicUpdate, BlockExecution, ExecutionSink, ProgramEvent, RecordingStage, SystemCall,
};

/// Instructions between two looks at the bar.
const STEP: u64 = 1 << 18;

/// Tells the profiler all that it hears, and the bar how much that was.
pub(super) struct ProgressSink<'a> {
    pub(super) profiler: &'a mut ProgramProfiler,
    pub(super) bar: &'a ProgressMeter,
    pub(super) received: u64,
}

impl ProgressSink<'_> {
    fn count_instructions(&mut self, more: u64) {
        let before = self.received / STEP;
        self.received += more;
        if self.received / STEP != before {
            self.bar.set_position(self.received);
        }
    }
}

impl ExecutionSink for ProgressSink<'_> {
    fn record_op(&mut self, thread: usize, op: &Op) {
        if op.first {
            self.count_instructions(1);
        }
        self.profiler.record_op(thread, op);
    }

    fn record_block(&mut self, thread: usize, run: &BlockExecution) -> bool {
        let is_taken = self.profiler.record_block(thread, run);
        if is_taken {
            self.count_instructions(run.mix.instructions);
        }
        is_taken
    }

    fn enter_stage(&mut self, thread: usize, stage: RecordingStage, executed: u64) {
        self.profiler.enter_stage(thread, stage, executed);
    }

    fn record_system_call(&mut self, thread: usize, call: &SystemCall) {
        self.profiler.record_system_call(thread, call);
    }

    fn record_thread_count(&mut self, thread: usize, threads: u64) {
        self.profiler.record_thread_count(thread, threads);
    }

    fn record_atomic(&mut self, thread: usize, atomic: AtomicUpdate) {
        self.profiler.record_atomic(thread, atomic);
    }

    fn record_event(&mut self, event: &ProgramEvent) {
        self.profiler.record_event(event);
    }
}
