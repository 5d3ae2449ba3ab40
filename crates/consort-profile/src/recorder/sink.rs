//! Events of a program while it runs.

use consort_ops::{Branch, Op};

use crate::measure::{InstructionCounts, LocatedBranch, MemoryTouch};

/// Stage of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingStage {
    /// Nothing is recorded.
    Skip,
    /// Stage that warms caches and predictors.
    Warm,
    /// Stage that counts.
    Window,
}

/// A system call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemCall {
    /// Its number on x86-64.
    pub number: u64,
    /// Its first arguments; only their lower 60 bits are known if it is reported in order with
    /// operations.
    pub arguments: [u64; 3],
}

/// An atomic update of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicUpdate {
    /// Virtual address of the updated word.
    pub word: u64,
    /// Virtual address of its instruction.
    pub code: u64,
    /// True if it compares before it writes.
    pub compares: bool,
}

/// Action of a thread that affects others. Events come in the order of the whole program, separate
/// from the operations of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramEvent {
    /// The thread.
    pub thread: usize,
    /// Its action.
    pub deed: ThreadAction,
    /// Instructions that it has executed.
    pub executed: u64,
    /// Instructions that the first thread has executed.
    pub executed_by_first: u64,
}

/// Actions of a thread that affect others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadAction {
    /// It executes its first instruction.
    Began,
    /// It ends, or the recording does.
    Ended,
    /// It enters the kernel with a call that may take it off its processor.
    Called(SystemCall),
    /// It returns from that call with a result.
    Returned(i64),
}

/// One execution of a block of code from its first instruction to its last.
#[derive(Debug, Clone, Copy)]
pub struct BlockExecution<'a> {
    /// Counts of its operations without the outcome of its branch.
    pub mix: &'a InstructionCounts,
    /// Virtual addresses of instructions that lie in another line of code than the one before, and
    /// the number of instructions in that line before the next change; in order.
    pub lines: &'a [(u64, u64)],
    /// Accesses to data, in order.
    pub touches: &'a [MemoryTouch],
    /// Outcome of its branch, if it ends with one.
    pub turning: Option<LocatedBranch>,
}

impl BlockExecution<'_> {
    /// The branch that it ends with, if any.
    #[must_use]
    pub fn branch(&self) -> Option<Branch> {
        self.turning.map(|turning| turning.branch)
    }
}

/// Receives what threads execute. Threads are numbered from 0 as they begin; thread 0 is the
/// initial one.
pub trait ExecutionSink {
    /// `thread` executed an operation.
    fn record_op(&mut self, thread: usize, op: &Op);

    /// `thread` executed a block. Returns false if its operations should be reported instead.
    fn record_block(&mut self, thread: usize, run: &BlockExecution) -> bool {
        let _ = (thread, run);
        false
    }

    /// `thread` enters a stage; `number` counts the stages before it in the whole program.
    fn enter_stage(&mut self, thread: usize, stage: RecordingStage, number: u64);

    /// `thread` entered the kernel.
    fn record_system_call(&mut self, thread: usize, call: &SystemCall) {
        let _ = (thread, call);
    }

    /// `thread` returned from the kernel and found so many living threads.
    fn record_thread_count(&mut self, thread: usize, threads: u64) {
        let _ = (thread, threads);
    }

    /// `thread` executed an atomic update, whose operations were reported before.
    fn record_atomic(&mut self, thread: usize, atomic: AtomicUpdate) {
        let _ = (thread, atomic);
    }

    /// A thread did something that affects others.
    fn record_event(&mut self, event: &ProgramEvent) {
        let _ = event;
    }
}
