//! Events told of a program while it runs.

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
    /// Its first arguments, of which the lower 60 bits are known where it is told in order with
    /// operations.
    pub arguments: [u64; 3],
}

/// An atomic update of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomicUpdate {
    /// Virtual address of what it updates.
    pub word: u64,
    /// Virtual address of its instruction.
    pub code: u64,
    /// True where it compares before it writes.
    pub compares: bool,
}

/// Deed of a thread that others feel. Events come in the order of the whole program, apart from
/// the operations of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramEvent {
    /// The thread.
    pub thread: usize,
    /// The deed.
    pub deed: ThreadAction,
    /// Instructions that it has executed.
    pub executed: u64,
    /// Instructions that the first thread has executed.
    pub executed_by_first: u64,
}

/// Deeds of a thread that others feel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadAction {
    /// It executes its first instruction.
    Began,
    /// It ends, or the recording does.
    Ended,
    /// It enters the kernel for what may take it off its processor.
    Called(SystemCall),
    /// It is back from that with a result.
    Returned(i64),
}

/// One execution of a block of code from its first instruction to its last.
#[derive(Debug, Clone, Copy)]
pub struct BlockExecution<'a> {
    /// Counts of its operations but for where its branch went.
    pub mix: &'a InstructionCounts,
    /// Virtual addresses of instructions that lie in another line of code than the one before, and
    /// how many instructions are in that line before the next change; in order.
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

/// Hears what threads execute. Threads are counted from 0 as they begin, the first being the one
/// that the program started with.
pub trait ExecutionSink {
    /// `thread` executed an operation.
    fn record_op(&mut self, thread: usize, op: &Op);

    /// `thread` executed a block. Returns false where that is to be told by its operations instead.
    fn record_block(&mut self, thread: usize, run: &BlockExecution) -> bool {
        let _ = (thread, run);
        false
    }

    /// `thread` executes in a stage before which the program had so many.
    fn enter_stage(&mut self, thread: usize, stage: RecordingStage, number: u64);

    /// `thread` entered the kernel.
    fn record_system_call(&mut self, thread: usize, call: &SystemCall) {
        let _ = (thread, call);
    }

    /// `thread` came back from the kernel and found so many threads living.
    fn record_thread_count(&mut self, thread: usize, threads: u64) {
        let _ = (thread, threads);
    }

    /// `thread` executed an atomic update, whose operations were told before.
    fn record_atomic(&mut self, thread: usize, atomic: AtomicUpdate) {
        let _ = (thread, atomic);
    }

    /// A thread did what others feel.
    fn record_event(&mut self, event: &ProgramEvent) {
        let _ = event;
    }
}
