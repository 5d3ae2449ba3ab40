//! A profile: all meters over one program's operations.

use std::collections::VecDeque;

use consort_ops::trace::{Trace, TraceInfo, TraceRecorder, TraceSampling};
use consort_ops::{Op, OpKind};

use crate::crew::MeterCrew;
use crate::figures::ExecutionFigures;
use crate::interval::{Intervals, ProgramInterval, ThreadInterval};
use crate::phases::phases;
use crate::recorder::{
    AtomicUpdate, BlockExecution, ExecutionSink, ProgramEvent, RecordedPart, RecordingStage,
    SystemCall,
};
use crate::sample::WindowSample;
use crate::thread_meter::{PendingInterval, ThreadMeter};
use crate::threads::{
    LockMeter, SharingMeter, TeamMeasurements, ThreadMeasurements, ThreadRelations, ThreadTeam,
};

/// Length of an interval if everything is recorded, instructions, as a power of two.
const INTERVAL_SHIFT: u32 = 20;
/// Number of the system call that ends a thread, on x86-64.
const EXIT: u64 = 60;

/// Records a program and keeps what its profile and its trace need.
#[derive(Debug)]
pub struct ProgramProfiler {
    /// `None` if everything is recorded.
    sample: Option<WindowSample>,
    /// True if operations before any stage count.
    counts_at_first: bool,
    received: u64,
    system_calls: u64,
    threads: Vec<ThreadMeter>,
    crew: MeterCrew,
    /// Ended intervals whose counts were not received yet, in the order of their numbers.
    ended: VecDeque<PendingInterval>,
    /// Number of the current interval, if everything is recorded.
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
    /// The whole program, all threads.
    pub figures: ExecutionFigures,
    /// Stretches that run different code, in order; together they are the whole program.
    pub phases: Vec<ExecutionFigures>,
    /// Parts of equal length, at most 512: sampled windows, or stretches of a program that was
    /// recorded as a whole.
    pub intervals: Vec<ExecutionFigures>,
    /// Windows that are kept; 1 if everything was recorded in one piece.
    pub windows: u64,
    /// Way in which these are a sample, so that there is an error; `None` if everything was recorded.
    pub sampling: Option<TraceSampling>,
    /// Share of the program's length that each phase has; they sum to 1.
    pub phase_shares: Vec<f64>,
    /// Relations of threads to each other, if there are several.
    pub threads: Option<ThreadRelations>,
    /// System calls; the work of the kernel in them is not measured.
    pub system_calls: u64,
}

impl ProgramProfile {
    /// Half widths of the 95 percent intervals of figures, from their spread over the sampled
    /// windows; `None` if everything was recorded, or only one window.
    #[must_use]
    pub fn errors(&self, of: impl Fn(&ExecutionFigures) -> Vec<f64>) -> Option<Vec<f64>> {
        if self.sampling.is_none() || self.intervals.len() < 2 {
            return None;
        }
        let rows: Vec<_> = self.intervals.iter().map(&of).collect();
        let columns = 0..rows[0].len();
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        Some(columns.map(|at| half_width(&column(at))).collect())
    }
}

impl ProgramProfiler {
    /// A profiler for the recorded part of a program, which also keeps a trace if `keeps_trace`.
    #[must_use]
    pub fn new(extent: RecordedPart, keeps_trace: bool) -> Self {
        Self::with_crew(MeterCrew::new(), extent, keeps_trace)
    }

    /// A profiler whose meters run in `crew`.
    pub(crate) fn with_crew(mut crew: MeterCrew, extent: RecordedPart, keeps_trace: bool) -> Self {
        let sample = WindowSample::new(extent);
        let counts_at_first = match &sample {
            Some(sample) => sample.begins_with_window(),
            None => extent.skip == 0,
        };
        Self {
            sample,
            counts_at_first,
            received: 0,
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

    /// The profile of what was recorded.
    #[must_use]
    pub fn finish_profile(&mut self) -> ProgramProfile {
        self.end_intervals();
        self.receive_before(u64::MAX);
        if let Some(sample) = &mut self.sample {
            let kept = sample.take_kept();
            self.keep_all(kept);
        }
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
            windows: self.sample.as_ref().map_or(1, WindowSample::windows),
            sampling: self.sample.as_ref().and_then(WindowSample::sampling),
            threads: self.threads(),
            system_calls: self.system_calls,
        }
    }

    fn threads(&self) -> Option<ThreadRelations> {
        let known = self.threads.iter().map(|thread| ThreadMeasurements {
            code: thread.code(),
            counts: thread.counts(),
        });
        ThreadRelations::from_measurements(&TeamMeasurements {
            threads: known.collect(),
            counted: self.threads.iter().map(ThreadMeter::counted).sum(),
            team: &self.team,
            sharing: &self.sharing,
            locks: &self.locks,
        })
    }

    /// The trace of what was recorded, if one was kept.
    #[must_use]
    pub fn into_trace(self, about: TraceInfo) -> Option<Trace> {
        self.trace.map(|trace| trace.finish(about))
    }

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

    /// Ends the current interval of all threads. Its counts are received when the next one ends, so
    /// that the meters are not waited for.
    fn end_intervals(&mut self) {
        self.receive_before(self.present);
        self.intervals.close_all();
        for thread in 0..self.threads.len() {
            self.end_interval(thread);
        }
        self.present += 1;
    }

    fn end_interval(&mut self, thread: usize) {
        let number = match self.sample {
            Some(_) => self.threads[thread].stage,
            None => self.present,
        };
        let ended = self.threads[thread].end_interval(number, &mut self.crew);
        self.ended.extend(ended);
        if self.sample.is_some() {
            self.receive_before(u64::MAX);
        }
    }

    /// Receives the counts of the intervals before this one.
    fn receive_before(&mut self, number: u64) {
        while self
            .ended
            .front()
            .is_some_and(|ended| ended.number < number)
            && let Some(ended) = self.ended.pop_front()
        {
            let (number, thread) = (ended.number, ended.thread);
            let interval = self.threads[thread].receive_interval(ended, &mut self.crew);
            let kept = match &mut self.sample {
                Some(sample) => sample.add_window(number, thread, interval),
                None => vec![(number, thread, interval)],
            };
            self.keep_all(kept);
        }
    }

    /// Adds threads' intervals, with their numbers, to the profile.
    fn keep_all(&mut self, kept: Vec<(u64, usize, ThreadInterval)>) {
        for (number, thread, ended) in kept {
            self.threads[thread].keep_interval(&ended);
            self.intervals.merge_interval(number, &ended.interval);
        }
    }

    /// Records what other threads may share: lines, and stores by a thread that holds a lock.
    fn record_shared_access(&mut self, thread: usize, op: &Op) {
        let metered = &self.threads[thread];
        self.sharing.add_op(thread, op);
        if op.kind == OpKind::Store
            && self.locks.holds_lock(thread)
            && let Some(data) = op.data
        {
            let (at, counts) = (metered.received, metered.is_counting());
            self.locks.record_store(thread, data.address, at, counts);
        }
    }
}

impl ExecutionSink for ProgramProfiler {
    fn record_op(&mut self, thread: usize, op: &Op) {
        self.ensure_thread(thread);
        if op.first {
            self.received += 1;
            // Only a program that is recorded as a whole has intervals of a fixed length.
            if self.sample.is_none() && self.received.trailing_zeros() >= INTERVAL_SHIFT {
                self.end_intervals();
            }
        }
        let metered = &mut self.threads[thread];
        if let Some(trace) = self.trace.as_mut().filter(|_| metered.is_counting()) {
            trace.push(thread, op);
        }
        metered.add_op(op, self.sample.is_some(), &mut self.crew);
        if metered.has_siblings {
            self.record_shared_access(thread, op);
        }
    }

    fn record_block(&mut self, thread: usize, run: &BlockExecution) -> bool {
        self.ensure_thread(thread);
        let received = self.received + run.mix.instructions;
        let ends_interval = received >> INTERVAL_SHIFT != self.received >> INTERVAL_SHIFT;
        let metered = &mut self.threads[thread];
        let is_alone = self.trace.is_none() && !metered.has_siblings;
        let takes = is_alone && self.sample.is_none() && !ends_interval && metered.accepts_blocks();
        if takes {
            self.received = received;
            metered.add_block(run, &mut self.crew);
        }
        takes
    }

    fn enter_stage(&mut self, thread: usize, stage: RecordingStage, number: u64) {
        self.ensure_thread(thread);
        self.end_interval(thread);
        if stage == RecordingStage::Window
            && let Some(sample) = &mut self.sample
        {
            sample.enter_window(number);
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
            let (at, counts) = (metered.received, metered.is_counting());
            self.locks.record_atomic(thread, atomic, at, counts);
        }
    }

    fn record_event(&mut self, event: &ProgramEvent) {
        self.team.record_event(event);
    }
}

/// Quantiles of Student's t for two-sided 95 percent, by degrees of freedom from 1 (NIST/SEMATECH
/// e-Handbook of Statistical Methods, 1.3.6.7.2).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same quantile of the normal distribution, for more.
const NORMAL: f64 = 1.960;

/// Half width of the 95 percent interval of the mean of `values`, which are assumed to be
/// independent; 0 for fewer than two.
fn half_width(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let student = STUDENT.get(values.len() - 2).unwrap_or(&NORMAL);
    student * (squares / (n - 1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::half_width;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Mean 2, standard deviation 1, three values: 4.303/sqrt(3).
        assert!((half_width(&[1.0, 2.0, 3.0]) - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
        assert_eq!(half_width(&[5.0]), 0.0);
        let many: Vec<_> = (0..1000).map(|i| f64::from(i % 2)).collect();
        assert!((half_width(&many) - 1.96 * 0.5 / 1000_f64.sqrt()).abs() < 1e-4);
    }
}
