//! Meters of one thread of a program.

use consort_ops::Op;

use crate::crew::{MeterCrew, PendingCounts};
use crate::interval::{CodeHistogram, ThreadInterval, ThreadStretch};
use crate::measure::{InstructionCounts, MeterCounts, Stretches, line_of};
use crate::recorder::{BlockExecution, RecordingStage};

/// Instructions of each thread in each interval whose data flow and use distances are measured if
/// everything is recorded: they vary little and cost much.
const DATAFLOW: u64 = 1 << 16;

#[derive(Debug)]
pub(crate) struct ThreadMeter {
    /// Its number among the threads of the program.
    number: usize,
    /// False once it has ended: then it has no meters.
    lives: bool,
    mix: InstructionCounts,
    stretches: Stretches,
    /// Line of code of the last instruction.
    line: u64,
    stretch: ThreadStretch,
    counting: bool,
    /// Instructions counted when counts were last requested.
    asked_up_to: u64,
    /// Instructions recorded.
    pub(crate) received: u64,
    /// Instructions recorded in this interval.
    within: u64,
    /// Number of stages before this one.
    pub(crate) stage: u64,
    /// True if its operations may meet those of other threads.
    pub(crate) has_siblings: bool,
}

/// Interval of a thread that has ended, before its counts are known.
#[derive(Debug)]
pub(crate) struct PendingInterval {
    pub(crate) thread: usize,
    /// Number of the interval.
    pub(crate) number: u64,
    executed: CodeHistogram,
    requested: PendingCounts,
}

impl ThreadMeter {
    /// The thread with this number. If `counting`, it counts what comes before any stage. Only the
    /// initial thread may be without siblings.
    pub(crate) fn new(number: usize, counting: bool, crew: &mut MeterCrew) -> Self {
        crew.set_counting(number, counting);
        Self {
            number,
            lives: true,
            mix: InstructionCounts::default(),
            stretches: Stretches::default(),
            line: u64::MAX,
            stretch: ThreadStretch::default(),
            counting,
            asked_up_to: 0,
            received: 0,
            within: 0,
            stage: 0,
            has_siblings: number > 0,
        }
    }

    pub(crate) const fn is_counting(&self) -> bool {
        self.counting
    }

    /// Adds an operation; with `all_dataflow` its data flow is measured in any case.
    #[inline]
    pub(crate) fn add_op(&mut self, op: &Op, all_dataflow: bool, crew: &mut MeterCrew) {
        let is_new_line = op.first && self.enter_instruction(op.address);
        if !self.lives {
            return;
        }
        if self.counting {
            self.mix.add_op(op);
            self.stretches.add_op(op);
        }
        match all_dataflow || self.within <= DATAFLOW {
            true => crew.add_op(self.number, op),
            false => crew.add_op_parts(self.number, op, is_new_line),
        }
    }

    /// True if the data flow of the next operations is not measured, so that blocks can be added as
    /// a whole.
    pub(crate) const fn accepts_blocks(&self) -> bool {
        self.lives && self.within >= DATAFLOW
    }

    pub(crate) fn add_block(&mut self, run: &BlockExecution, crew: &mut MeterCrew) {
        self.received += run.mix.instructions;
        self.within += run.mix.instructions;
        if self.counting {
            self.mix.add_block(run.mix, run.branch());
            self.stretches.add_block(run.mix, run.branch());
            let lines = run.lines.iter();
            lines.for_each(|&(address, count)| self.stretch.count_instructions(address, count));
        }
        let line = &mut self.line;
        let is_new =
            |address: &u64| std::mem::replace(line, line_of(*address)) != line_of(*address);
        let addresses = run.lines.iter().map(|(address, _)| *address);
        crew.add_block(self.number, run, addresses.filter(is_new));
    }

    /// Adds the address of an instruction. Returns true if it lies in another line of code than the
    /// one before.
    fn enter_instruction(&mut self, address: u64) -> bool {
        self.received += 1;
        self.within += 1;
        if self.counting {
            self.stretch.count_instructions(address, 1);
        }
        std::mem::replace(&mut self.line, line_of(address)) != line_of(address)
    }

    /// Begins a stage. Returns true if anything before it was not recorded.
    pub(crate) fn enter_stage(
        &mut self,
        stage: RecordingStage,
        number: u64,
        crew: &mut MeterCrew,
    ) -> bool {
        let follows = self.stage + 1 == number && stage == RecordingStage::Window;
        self.stage = number;
        self.counting = stage == RecordingStage::Window;
        crew.set_counting(self.number, self.counting);
        !follows
    }

    /// Ends the interval with this number, and requests its counts; `None` if it has none.
    pub(crate) fn end_interval(
        &mut self,
        number: u64,
        crew: &mut MeterCrew,
    ) -> Option<PendingInterval> {
        self.within = 0;
        let before = std::mem::replace(&mut self.asked_up_to, self.mix.instructions);
        let is_counted = self.lives && self.mix.instructions > before;
        is_counted.then(|| PendingInterval {
            thread: self.number,
            number,
            executed: self.stretch.end(),
            requested: crew.request_counts(
                self.number,
                self.mix.clone(),
                self.stretches.counts().clone(),
            ),
        })
    }

    /// Receives the counts of an interval. Those of a thread must be received in order, because
    /// each is the difference to the one before.
    pub(crate) fn receive_interval(
        &mut self,
        ended: PendingInterval,
        crew: &mut MeterCrew,
    ) -> ThreadInterval {
        let counts = crew.receive_counts(ended.requested);
        self.stretch.close_interval(ended.executed, counts)
    }

    /// Ends the thread after an interval: its measurements are kept, its meters are dropped.
    pub(crate) fn finish_thread(&mut self, crew: &mut MeterCrew) {
        self.lives = false;
        crew.end_thread(self.number);
    }

    /// Keeps an interval.
    pub(crate) fn keep_interval(&mut self, ended: &ThreadInterval) {
        self.stretch.keep_interval(ended);
    }

    /// Instructions that were counted, in intervals that are kept or not.
    pub(crate) const fn counted(&self) -> u64 {
        self.mix.instructions
    }

    /// Instructions by line of code, in the intervals that are kept.
    pub(crate) fn code(&self) -> &[u64] {
        self.stretch.kept_code()
    }

    /// Counts of the intervals that are kept.
    pub(crate) const fn counts(&self) -> &MeterCounts {
        self.stretch.kept_counts()
    }
}
