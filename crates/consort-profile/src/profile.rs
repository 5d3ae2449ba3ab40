//! A profile: all meters over one program's operations.

use std::collections::VecDeque;

use consort_ops::trace::{Trace, TraceInfo, TraceRecorder, TraceSampling};
use consort_ops::{Op, OpKind};

use crate::crew::MeterCrew;
use crate::figures::ExecutionFigures;
use crate::interval::{Intervals, ProgramInterval};
use crate::phases::phases;
use crate::recorder::{
    AtomicUpdate, BlockExecution, ExecutionSink, ProgramEvent, RecordedPart, RecordingStage,
    SystemCall,
};
use crate::spread::half_width;
use crate::thread_meter::{PendingInterval, ThreadMeter};
use crate::threads::{
    LockMeter, SharingMeter, TeamMeasurements, ThreadMeasurements, ThreadRelations, ThreadTeam,
};

/// Length of an interval where everything is recorded, instructions, as a power of two.
const INTERVAL_SHIFT: u32 = 20;
/// Number of the call that ends a thread, on x86-64.
const EXIT: u64 = 60;

/// Hears a program and keeps what its profile and its trace need.
#[derive(Debug)]
pub struct ProgramProfiler {
    sampling: Option<TraceSampling>,
    /// True where operations before any stage count.
    counts_at_first: bool,
    heard: u64,
    windows: u64,
    last_window: Option<u64>,
    system_calls: u64,
    threads: Vec<ThreadMeter>,
    crew: MeterCrew,
    /// Intervals that have ended and were not heard of yet, in the order of their numbers.
    ended: VecDeque<PendingInterval>,
    /// Number of the present interval where everything is recorded.
    present: u64,
    intervals: Intervals,
    team: ThreadTeam,
    sharing: SharingMeter,
    locks: LockMeter,
    trace: Option<TraceRecorder>,
}

/// Measurements of a program.
#[derive(Debug, Clone)]
pub struct ProgramProfile {
    /// All of it, every thread's.
    pub figures: ExecutionFigures,
    /// Stretches that run unlike code, in their order; together they are all of it.
    pub phases: Vec<ExecutionFigures>,
    /// Parts of equal length, at most 512: sampled windows, or where everything was recorded
    /// stretches of it.
    pub intervals: Vec<ExecutionFigures>,
    /// Windows in which was counted; 1 where everything was.
    pub windows: u64,
    /// True where these are a sample, so that there is an error.
    pub is_sampled: bool,
    /// Share of the program's length that each phase is; they sum to 1.
    pub phase_shares: Vec<f64>,
    /// Relations of threads to each other, where there are several.
    pub threads: Option<ThreadRelations>,
    /// System calls that were seen; what the kernel does in them is not.
    pub system_calls: u64,
}

impl ProgramProfile {
    /// Half widths of the 95 percent intervals of figures, from their spread over the sampled
    /// windows; nothing where everything was recorded, or only one window.
    #[must_use]
    pub fn errors(&self, of: impl Fn(&ExecutionFigures) -> Vec<f64>) -> Option<Vec<f64>> {
        if !self.is_sampled || self.intervals.len() < 2 {
            return None;
        }
        let rows: Vec<_> = self.intervals.iter().map(&of).collect();
        let columns = 0..rows[0].len();
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        Some(columns.map(|at| half_width(&column(at))).collect())
    }
}

impl ProgramProfiler {
    /// A profiler of what is recorded of a program, which also keeps a trace if asked.
    #[must_use]
    pub fn new(extent: RecordedPart, keeps_trace: bool) -> Self {
        Self::with_crew(MeterCrew::new(), extent, keeps_trace)
    }

    /// A profiler whose meters are those of `crew`.
    pub(crate) fn with_crew(mut crew: MeterCrew, extent: RecordedPart, keeps_trace: bool) -> Self {
        let warms = extent.sampling.is_some_and(|sampling| sampling.warm > 0);
        let counts_at_first = !warms && extent.skip == 0;
        Self {
            sampling: extent.sampling,
            counts_at_first,
            heard: 0,
            windows: u64::from(counts_at_first),
            last_window: counts_at_first.then_some(0),
            system_calls: 0,
            threads: vec![ThreadMeter::new(0, counts_at_first, &mut crew)],
            crew,
            ended: VecDeque::new(),
            present: 0,
            intervals: Intervals::default(),
            team: ThreadTeam::default(),
            sharing: SharingMeter::default(),
            locks: LockMeter::default(),
            trace: keeps_trace.then(TraceRecorder::new),
        }
    }

    /// The profile of what was heard.
    #[must_use]
    pub fn finish_profile(&mut self) -> ProgramProfile {
        self.end_intervals();
        self.receive_before(u64::MAX);
        self.intervals.close_all();
        let intervals = self.intervals.all();
        let codes: Vec<_> = intervals.iter().map(ProgramInterval::code).collect();
        let phases = phases(&codes).into_iter();
        let phases: Vec<_> = phases
            .map(|range| ProgramInterval::sum(&intervals[range]))
            .collect();
        let whole = ProgramInterval::sum(intervals);
        let share = |phase: &ProgramInterval| phase.longest as f64 / whole.longest.max(1) as f64;
        ProgramProfile {
            figures: ExecutionFigures::from_counts(&whole.counts),
            phases: phases
                .iter()
                .map(|i| ExecutionFigures::from_counts(&i.counts))
                .collect(),
            phase_shares: phases.iter().map(share).collect(),
            intervals: intervals
                .iter()
                .map(|i| ExecutionFigures::from_counts(&i.counts))
                .collect(),
            windows: self.windows,
            is_sampled: self.sampling.is_some(),
            threads: self.threads(),
            system_calls: self.system_calls,
        }
    }

    fn threads(&self) -> Option<ThreadRelations> {
        let known = self.threads.iter().map(|thread| ThreadMeasurements {
            code: thread.all_code(),
            counts: thread.counts(),
        });
        ThreadRelations::from_measurements(&TeamMeasurements {
            threads: known.collect(),
            team: &self.team,
            sharing: &self.sharing,
            locks: &self.locks,
        })
    }

    /// The trace of what was heard, if one was kept.
    #[must_use]
    pub fn into_trace(self, about: TraceInfo) -> Option<Trace> {
        self.trace.map(|trace| trace.finish(about))
    }

    /// Has there be a thread with this number.
    #[inline]
    fn ensure_thread(&mut self, thread: usize) {
        while self.threads.len() <= thread {
            self.add_thread();
        }
    }

    #[cold]
    fn add_thread(&mut self) {
        let (number, counts) = (self.threads.len(), self.counts_at_first);
        let thread = ThreadMeter::new(number, counts, &mut self.crew);
        self.threads.push(thread);
    }

    /// Returns true where an interval ends here: where everything is recorded, intervals have a
    /// length.
    fn is_interval_end(&self) -> bool {
        self.sampling.is_none() && self.heard.trailing_zeros() >= INTERVAL_SHIFT
    }

    /// Ends the present interval of all threads. Meters go on while they come to its end, so it is
    /// heard of when the next one ends.
    fn end_intervals(&mut self) {
        self.receive_before(self.present);
        self.intervals.close_all();
        for thread in 0..self.threads.len() {
            self.end_interval(thread);
        }
        self.present += 1;
    }

    fn end_interval(&mut self, thread: usize) {
        let number = match self.sampling {
            Some(_) => self.threads[thread].stage,
            None => self.present,
        };
        let ended = self.threads[thread].end_interval(number, &mut self.crew);
        self.ended.extend(ended);
        if self.sampling.is_some() {
            self.receive_before(u64::MAX);
        }
    }

    /// Waits for the counts of the intervals before this one.
    fn receive_before(&mut self, number: u64) {
        while self
            .ended
            .front()
            .is_some_and(|ended| ended.number < number)
            && let Some(ended) = self.ended.pop_front()
        {
            let number = ended.number;
            let interval = self.threads[ended.thread].receive_interval(ended, &mut self.crew);
            self.intervals.merge_interval(number, &interval);
        }
    }

    /// Takes what other threads may meet: lines, and stores by a thread that holds a lock.
    fn record_shared_access(&mut self, thread: usize, op: &Op) {
        let metered = &self.threads[thread];
        self.sharing.add_op(thread, op);
        if op.kind == OpKind::Store
            && self.locks.holds_lock(thread)
            && let Some(data) = op.data
        {
            let (at, counts) = (metered.heard, metered.is_counting());
            self.locks.record_store(thread, data.address, at, counts);
        }
    }
}

impl ExecutionSink for ProgramProfiler {
    fn record_op(&mut self, thread: usize, op: &Op) {
        self.ensure_thread(thread);
        if op.first {
            self.heard += 1;
            if self.is_interval_end() {
                self.end_intervals();
            }
        }
        let metered = &mut self.threads[thread];
        if let Some(trace) = self.trace.as_mut().filter(|_| metered.is_counting()) {
            trace.push(thread, op);
        }
        metered.add_op(op, self.sampling.is_some(), &mut self.crew);
        if metered.has_siblings {
            self.record_shared_access(thread, op);
        }
    }

    fn record_block(&mut self, thread: usize, run: &BlockExecution) -> bool {
        self.ensure_thread(thread);
        let heard = self.heard + run.mix.instructions;
        let ends_interval = heard >> INTERVAL_SHIFT != self.heard >> INTERVAL_SHIFT;
        let metered = &mut self.threads[thread];
        let is_alone = self.trace.is_none() && !metered.has_siblings;
        let takes =
            is_alone && self.sampling.is_none() && !ends_interval && metered.accepts_blocks();
        if takes {
            self.heard = heard;
            metered.add_block(run, &mut self.crew);
        }
        takes
    }

    fn enter_stage(&mut self, thread: usize, stage: RecordingStage, number: u64) {
        self.ensure_thread(thread);
        self.end_interval(thread);
        let counts = stage == RecordingStage::Window;
        // Numbers are told by threads in any order.
        if counts && self.last_window.is_none_or(|last| number > last) {
            self.windows += 1;
            self.last_window = Some(number);
        }
        if self.threads[thread].enter_stage(stage, number, &mut self.crew) {
            self.locks.forget_thread(thread);
        }
    }

    fn record_system_call(&mut self, thread: usize, call: &SystemCall) {
        self.system_calls += 1;
        self.ensure_thread(thread);
        self.locks.record_call(thread, call);
        if call.number == EXIT {
            self.end_interval(thread);
            self.threads[thread].finish_thread(&mut self.crew);
        }
    }

    fn record_thread_count(&mut self, thread: usize, threads: u64) {
        self.ensure_thread(thread);
        self.threads[thread].has_siblings = threads > 1;
    }

    fn record_atomic(&mut self, thread: usize, atomic: AtomicUpdate) {
        self.ensure_thread(thread);
        let metered = &self.threads[thread];
        if metered.has_siblings {
            let (at, counts) = (metered.heard, metered.is_counting());
            self.locks.record_atomic(thread, atomic, at, counts);
        }
    }

    fn record_event(&mut self, event: &ProgramEvent) {
        self.team.record_event(event);
    }
}
