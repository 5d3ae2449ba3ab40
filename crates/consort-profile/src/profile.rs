//! A profile: all meters over one program's operations.

use consort_ops::Op;
use consort_ops::trace::{About, Recorder, Sampling, Trace};

use crate::interval::{Interval, Intervals};
use crate::measure::{
    Counts, LATENCIES, MemoryFigures, Meters, Mispredictions, Mix, NEAR, SCHEMES, WINDOWS,
};
use crate::phases::phases;
use crate::recorder::{Extent, Sink, Stage};
use crate::spread::half_width;

/// Where everything is recorded, an interval is so many instructions, as a power of two.
const INTERVAL_SHIFT: u32 = 20;
/// Where everything is recorded, data flow and use distances are measured in the first 65,536 instructions of each
/// interval: they vary little and cost much.
const DATAFLOW_SHIFT: u32 = 16;

/// Hears a program and keeps what its profile and its trace need.
#[derive(Debug)]
pub struct Profiler {
    sampling: Option<Sampling>,
    counting: bool,
    heard: u64,
    windows: u64,
    others: u64,
    system_calls: u64,
    meters: Meters,
    intervals: Intervals,
    trace: Option<Recorder>,
}

/// What was measured of the thread that a program started with.
#[derive(Debug, Clone)]
pub struct Profile {
    /// All of it.
    pub figures: Figures,
    /// Stretches that run unlike code, in their order; together they are all of it.
    pub phases: Vec<Figures>,
    /// Parts of equal length, at most 512: sampled windows, or where everything was recorded
    /// stretches of it.
    pub intervals: Vec<Figures>,
    /// Windows in which was counted; 1 where everything was.
    pub windows: u64,
    /// Whether these are a sample, so that there is an error.
    pub is_sampled: bool,
    /// Instructions of other threads that were seen and not profiled.
    pub others: u64,
    /// System calls that were seen; what the kernel does in them is not.
    pub system_calls: u64,
}

/// What was measured of a stretch of execution.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Instructions and operations.
    pub mix: Mix,
    /// Instructions per cycle in each of [`WINDOWS`].
    pub ilp: [f64; WINDOWS.len()],
    /// Long misses that overlap in each of [`WINDOWS`].
    pub mlp: [f64; WINDOWS.len()],
    /// Mean distance from a value to its first use, instructions.
    pub use_distance: f64,
    /// Mean distance from a load to the first use of what it loaded, instructions.
    pub load_use_distance: f64,
    /// Shares of values used first after 1, 2, ... [`NEAR`] instructions: computed, and loaded.
    pub near_uses: [[f64; NEAR]; 2],
    /// Mispredictions with each of [`PREDICTOR_KIB`](crate::measure::PREDICTOR_KIB), by scheme.
    pub mispredictions: Mispredictions,
    /// Operations of each class of [`LATENCIES`] on the chain that takes longest, per instruction
    /// of the chain of most instructions, both in a window of 128.
    pub chain: [f64; LATENCIES.len()],
    /// Share of the instructions in a window of 128 that wait for operands, 0 to 1.
    pub waiting: f64,
    /// Cycles from dispatch to result of mispredicted branches, by scheme, if there were any.
    pub resolution_cycles: [Option<f64>; SCHEMES.len()],
    /// Caches, prefetching and pages.
    pub memory: MemoryFigures,
}

impl Figures {
    fn of(counts: &Counts) -> Self {
        Self {
            mix: counts.mix.clone(),
            ilp: counts.dataflow.ilp(),
            mlp: counts.dataflow.mlp(),
            use_distance: counts.distances.mean(),
            load_use_distance: counts.distances.mean_of_loads(),
            near_uses: counts.distances.near(),
            mispredictions: counts.mispredictions,
            memory: counts.memory.figures(),
            chain: chain(counts),
            waiting: counts.timing.waiting_share(),
            resolution_cycles: counts.timing.resolution_cycles(),
        }
    }
}

/// Index of the window of 128 instructions.
const WINDOW: usize = 3;

fn chain(counts: &Counts) -> [f64; LATENCIES.len()] {
    let longest = counts.dataflow.cycles()[WINDOW].max(1) as f64;
    counts.timing.path.map(|count| count as f64 / longest)
}

impl Profile {
    /// Half widths of the 95 percent intervals of figures, from their spread over the sampled
    /// windows; nothing where everything was recorded, or only one window.
    #[must_use]
    pub fn errors(&self, of: impl Fn(&Figures) -> Vec<f64>) -> Option<Vec<f64>> {
        if !self.is_sampled || self.intervals.len() < 2 {
            return None;
        }
        let rows: Vec<_> = self.intervals.iter().map(&of).collect();
        let columns = 0..rows[0].len();
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        Some(columns.map(|at| half_width(&column(at))).collect())
    }
}

impl Profiler {
    /// A profiler of what is recorded of a program, which also keeps a trace if asked.
    #[must_use]
    pub fn new(extent: Extent, keeps_trace: bool) -> Self {
        let warms = extent.sampling.is_some_and(|sampling| sampling.warm > 0);
        let mut profiler = Self {
            sampling: extent.sampling,
            counting: true,
            heard: 0,
            windows: 0,
            others: 0,
            system_calls: 0,
            meters: Meters::default(),
            intervals: Intervals::default(),
            trace: keeps_trace.then(Recorder::new),
        };
        profiler.count(!warms && extent.skip == 0);
        profiler
    }

    /// The profile of what was heard.
    #[must_use]
    pub fn profile(&mut self) -> Profile {
        self.meters.count(false);
        self.intervals.end(&self.meters);
        let intervals = self.intervals.all();
        let codes: Vec<_> = intervals.iter().map(Interval::code).collect();
        let phases = phases(&codes).into_iter();
        let figures = |intervals: &[Interval]| Figures::of(&Interval::sum(intervals).counts);
        Profile {
            figures: Figures::of(&self.meters.counts()),
            phases: phases.map(|phase| figures(&intervals[phase])).collect(),
            intervals: intervals.iter().map(|i| Figures::of(&i.counts)).collect(),
            windows: self.windows,
            is_sampled: self.sampling.is_some(),
            others: self.others,
            system_calls: self.system_calls,
        }
    }

    /// The trace of what was heard, if one was kept.
    #[must_use]
    pub fn into_trace(self, about: About) -> Option<Trace> {
        self.trace.map(|trace| trace.finish(about))
    }

    fn count(&mut self, counts: bool) {
        self.windows += u64::from(counts);
        self.counting = counts;
        self.meters.count(counts);
        self.intervals.end(&self.meters);
    }

    fn measures_dataflow(&self) -> bool {
        let within = self.heard & ((1 << INTERVAL_SHIFT) - 1);
        self.sampling.is_some() || within >> DATAFLOW_SHIFT == 0
    }

    /// Where everything is recorded, intervals have a length.
    fn ends_interval(&self) -> bool {
        self.sampling.is_none() && self.heard.trailing_zeros() >= INTERVAL_SHIFT
    }
}

impl Sink for Profiler {
    fn op(&mut self, thread: usize, op: &Op) {
        if let Some(trace) = self.trace.as_mut().filter(|_| self.counting) {
            trace.push(thread, op);
        }
        if thread != 0 {
            self.others += u64::from(op.first);
            return;
        }
        if op.first {
            self.heard += 1;
            if self.ends_interval() {
                self.intervals.end(&self.meters);
            }
        }
        self.meters.op(op, self.measures_dataflow());
        if self.counting {
            self.intervals.op(op);
        }
    }

    fn stage(&mut self, thread: usize, stage: Stage, _: u64) {
        if thread == 0 {
            self.count(stage == Stage::Window);
        }
    }

    fn system_call(&mut self, _: usize, _: u64) {
        self.system_calls += 1;
    }
}
