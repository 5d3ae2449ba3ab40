//! A profile: all meters over one program's operations.

use consort_ops::Op;
use consort_ops::trace::{About, Recorder, Sampling, Trace};

use crate::measure::{Branches, Dataflow, Distances, Memory, MemoryFigures, Mix, WINDOWS};
use crate::recorder::{Extent, Sink, Stage};

/// Where everything is recorded, data flow is measured in one stretch of 65,536 instructions of
/// this many: it varies little and costs most.
const DATAFLOW_STRETCHES: u64 = 16;

/// Hears a program and keeps what its profile and its trace need.
#[derive(Debug)]
pub struct Profiler {
    sampling: Option<Sampling>,
    counting: bool,
    heard: u64,
    windows: u64,
    others: u64,
    system_calls: u64,
    mix: Mix,
    distances: Distances,
    memory: Memory,
    branches: Branches,
    dataflow: Dataflow,
    trace: Option<Recorder>,
}

/// What was measured of the thread that a program started with.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Instructions and operations.
    pub mix: Mix,
    /// Windows in which they were counted; 1 where everything was.
    pub windows: u64,
    /// Instructions of other threads that were seen and not profiled.
    pub others: u64,
    /// System calls that were seen; what the kernel does in them is not.
    pub system_calls: u64,
    /// Instructions per cycle in each of [`WINDOWS`].
    pub ilp: [f64; WINDOWS.len()],
    /// Long misses that overlap in each of [`WINDOWS`].
    pub mlp: [f64; WINDOWS.len()],
    /// Mean distance from a value to its first use, instructions.
    pub use_distance: f64,
    /// Mean distance from a load to the first use of what it loaded, instructions.
    pub load_use_distance: f64,
    /// Mispredictions with each of [`crate::measure::PREDICTOR_KIB`].
    pub mispredictions: [u64; 5],
    /// Caches, prefetching and pages.
    pub memory: MemoryFigures,
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
            mix: Mix::default(),
            distances: Distances::default(),
            memory: Memory::default(),
            branches: Branches::default(),
            dataflow: Dataflow::default(),
            trace: keeps_trace.then(Recorder::new),
        };
        profiler.count(!warms && extent.skip == 0);
        profiler
    }

    /// The profile of what was heard.
    #[must_use]
    pub fn profile(&mut self) -> Profile {
        self.dataflow.count(false);
        Profile {
            mix: self.mix.clone(),
            windows: self.windows,
            others: self.others,
            system_calls: self.system_calls,
            ilp: self.dataflow.ilp(),
            mlp: self.dataflow.mlp(),
            use_distance: self.distances.mean(),
            load_use_distance: self.distances.mean_of_loads(),
            mispredictions: self.branches.missed(),
            memory: self.memory.figures(),
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
        self.memory.count(counts);
        self.branches.count(counts);
        self.dataflow.count(counts);
    }

    fn measures_dataflow(&self) -> bool {
        self.sampling.is_some() || (self.heard >> 16).is_multiple_of(DATAFLOW_STRETCHES)
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
        self.heard += u64::from(op.first);
        let is_long_miss = self.memory.op(op);
        self.branches.op(op);
        if self.measures_dataflow() {
            self.dataflow.op(op, is_long_miss);
        }
        if self.counting {
            self.mix.op(op);
            self.distances.op(op);
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
