//! Observers that measure what the result of a run does not contain.
//!
//! Usage: give a clone to [`Experiment::run`](crate::Experiment::run), and read the one that was
//! kept when the run has ended. They are called once for every thread between two events, so they
//! are part of the simulator's speed.

use consort_core::ThreadId;
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::engine::{Observer, PuUse, RunSegment};
use consort_sim::machine::PipelineSpec;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

mod fpu;
mod returns;

pub use fpu::{FpuUse, FpuWatch};
pub use returns::{ReturnTally, ReturnWatch};

/// A kind of core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreKind {
    /// Core that executes out of order.
    Large,
    /// Core that executes in order.
    Small,
}

impl CoreKind {
    /// The kind of a CPU's core.
    pub fn from_pu(chip: &Chip, pu: usize) -> Self {
        match chip.core_spec(chip.places()[pu]).pipeline {
            PipelineSpec::OutOfOrder => Self::Large,
            PipelineSpec::InOrder => Self::Small,
        }
    }

    /// By CPU, true for those of a large core.
    pub(super) fn large_pus(chip: &Chip) -> Vec<bool> {
        let pus = 0..chip.places().len();
        pus.map(|pu| Self::from_pu(chip, pu) == Self::Large)
            .collect()
    }
}

/// Measures the time that threads share a core, by pairs of threads; clones measure the same run.
#[derive(Clone)]
pub struct CoRunnerWatch(Rc<RefCell<CoRunnerMeter>>);

impl CoRunnerWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        Self(Rc::new(RefCell::new(CoRunnerMeter::new(chip))))
    }

    /// For every thread in the order of the workload, the shares of its time with co-runners that it
    /// spent with each thread; rows add up to 1 with two threads on a core.
    pub fn shares(&self) -> Vec<Vec<f64>> {
        let mut meter = self.0.borrow_mut();
        meter.flush();
        meter.shares()
    }
}

impl Observer for CoRunnerWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        // Segments of all threads between two events begin at the same time and come in a row.
        if segment.from_ps != meter.from_ps {
            meter.flush();
        }
        (meter.from_ps, meter.to_ps) = (segment.from_ps, segment.to_ps);
        let core = meter.core_of[segment.pu];
        meter.threads.insert(segment.thread);
        meter.on.push((core, segment.thread));
    }
}

struct CoRunnerMeter {
    core_of: Vec<usize>,
    threads: BTreeSet<ThreadId>,
    /// Threads that are on a core in the interval, with the core.
    on: Vec<(usize, ThreadId)>,
    from_ps: u64,
    to_ps: u64,
    /// Time that two threads were on one core, ps; under both orders.
    together_ps: BTreeMap<(ThreadId, ThreadId), u64>,
}

impl CoRunnerMeter {
    fn new(chip: &Chip) -> Self {
        Self {
            core_of: chip.places().iter().map(|place| place.core).collect(),
            threads: BTreeSet::new(),
            on: Vec::new(),
            from_ps: 0,
            to_ps: 0,
            together_ps: BTreeMap::new(),
        }
    }

    fn flush(&mut self) {
        let time = self.to_ps - self.from_ps;
        for &(core, one) in &self.on {
            for &(_, other) in self.on.iter().filter(|(c, o)| *c == core && *o != one) {
                *self.together_ps.entry((one, other)).or_default() += time;
            }
        }
        self.on.clear();
        self.from_ps = self.to_ps;
    }

    fn shares(&self) -> Vec<Vec<f64>> {
        let time = |one: ThreadId, other: ThreadId| {
            self.together_ps.get(&(one, other)).copied().unwrap_or(0) as f64
        };
        let row = |&one: &ThreadId| {
            let times: Vec<f64> = { self.threads.iter() }.map(|&o| time(one, o)).collect();
            let all: f64 = times.iter().sum();
            times.iter().map(|time| time / all.max(1.0)).collect()
        };
        self.threads.iter().map(row).collect()
    }
}

/// Measures the large cores' share of a run, and moves between cores; clones measure the same run.
#[derive(Clone)]
pub struct LargeCoreWatch(Rc<RefCell<LargeCoreMeter>>);

struct LargeCoreMeter {
    is_large: Vec<bool>,
    /// Accesses by large cores and by all.
    accesses: [f64; 2],
    /// Instructions on large cores and on all.
    instructions: [f64; 2],
    last: BTreeMap<ThreadId, usize>,
    moves: u64,
}

impl LargeCoreWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        Self(Rc::new(RefCell::new(LargeCoreMeter {
            is_large: CoreKind::large_pus(chip),
            accesses: [0.0; 2],
            instructions: [0.0; 2],
            last: BTreeMap::new(),
            moves: 0,
        })))
    }

    /// Times that a thread came onto another CPU of the chip, by whatever cause.
    pub fn moves(&self) -> u64 {
        self.0.borrow().moves
    }

    /// Share of the accesses to LLCs that large cores make, 0 to 1; not a number without any.
    pub fn access_share(&self) -> f64 {
        let [large, all] = self.0.borrow().accesses;
        large / all
    }

    /// Share of the instructions that large cores execute, 0 to 1.
    pub fn instruction_share(&self) -> f64 {
        let [large, all] = self.0.borrow().instructions;
        large / all
    }
}

impl Observer for LargeCoreWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        let before = meter.last.insert(segment.thread, segment.pu);
        meter.moves += u64::from(before.is_some_and(|pu| pu != segment.pu));
        if segment.doing != PuUse::Work {
            return;
        }
        let time_s = (segment.to_ps - segment.from_ps) as f64 * 1e-12;
        let instructions = segment.rates.ips * time_s;
        let accesses = instructions * segment.rates.flow.llc_accesses;
        let sides = if meter.is_large[segment.pu] { 0 } else { 1 };
        for side in sides..2 {
            meter.accesses[side] += accesses;
            meter.instructions[side] += instructions;
        }
    }
}

/// Measures the share of their time that threads spend away from the node that holds their memory;
/// clones measure the same run.
#[derive(Clone)]
pub struct RemoteMemoryWatch(Rc<RefCell<RemoteMemoryMeter>>);

struct RemoteMemoryMeter {
    /// Node of each CPU, and the node of the memory that is first touched there.
    node_of: Vec<(usize, usize)>,
    /// Node of each thread's memory, by thread: the first that the thread was on, or the nearest to
    /// it with memory.
    home: Vec<(ThreadId, usize)>,
    /// Place of the thread that the next segment is likely to be of: they come in the order of the
    /// threads.
    next: usize,
    away_ps: u64,
    all_ps: u64,
}

impl RemoteMemoryWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        let nodes = |place: &PuPlace| (place.node, chip.memory_node(place.node));
        Self(Rc::new(RefCell::new(RemoteMemoryMeter {
            node_of: chip.places().iter().map(nodes).collect(),
            home: Vec::new(),
            next: 0,
            away_ps: 0,
            all_ps: 0,
        })))
    }

    /// Share of the time that threads were on CPUs, 0 to 1.
    pub fn share(&self) -> f64 {
        let meter = self.0.borrow();
        meter.away_ps as f64 / (meter.all_ps as f64).max(1.0)
    }
}

impl RemoteMemoryMeter {
    /// The node of a thread's memory; `node`, that of the memory that it touches now, if it was
    /// nowhere before.
    fn home_of(&mut self, thread: ThreadId, node: usize) -> usize {
        let is_next = { self.home.get(self.next) }.is_some_and(|(id, _)| *id == thread);
        if !is_next {
            let found = self.home.binary_search_by_key(&thread, |(id, _)| *id);
            self.next = found.unwrap_or_else(|place| {
                self.home.insert(place, (thread, node));
                place
            });
        }
        let home = self.home[self.next].1;
        self.next = (self.next + 1) % self.home.len();
        home
    }
}

impl Observer for RemoteMemoryWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        let (node, touched) = meter.node_of[segment.pu];
        let home = meter.home_of(segment.thread, touched);
        let time = segment.to_ps - segment.from_ps;
        meter.all_ps += time;
        meter.away_ps += if node == home { 0 } else { time };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, segment};
    use consort_sim::contention::ThreadRates;

    fn tell(watch: &mut CoRunnerWatch, on: &[(u32, usize)], span_ps: [u64; 2]) {
        let rates = ThreadRates::default();
        for &(tid, pu) in on {
            watch.note_segment(&segment(tid, pu, span_ps, &rates));
        }
    }

    /// CPUs 0 and 1 are of core 0, 2 and 3 of core 1.
    #[test]
    fn shares_are_of_the_time_with_company() {
        let mut watch = CoRunnerWatch::new(&chip("power8:smt=2"));
        tell(&mut watch, &[(1, 0), (2, 1), (3, 2)], [0, 30]);
        tell(&mut watch, &[(1, 0), (3, 1), (2, 2)], [30, 40]);
        let expect = [[0.0, 0.75, 0.25], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]];
        assert_eq!(watch.shares(), expect);
    }

    #[test]
    fn large_cores_have_their_share() {
        let mut watch = LargeCoreWatch::new(&chip("acmp-1+3"));
        let mut rates = ThreadRates {
            ips: 1e9,
            ..ThreadRates::default()
        };
        for (pu, llc_accesses, doing) in [
            (0, 0.02, PuUse::Work),
            (1, 0.01, PuUse::Work),
            (3, 0.01, PuUse::Work),
            (2, 0.5, PuUse::Spin),
        ] {
            rates.flow.llc_accesses = llc_accesses;
            watch.note_segment(&RunSegment {
                doing,
                ..segment(1, pu, [0, 1000], &rates)
            });
        }
        assert!((watch.access_share() - 0.5).abs() < 1e-12);
        assert!((watch.instruction_share() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(watch.moves(), 3);
    }

    #[test]
    fn home_is_where_a_thread_was_first() {
        let chip = chip("power8:smt=2");
        let places = chip.places();
        let far = { places.iter() }.position(|place| place.node != places[0].node);
        let far = far.expect("there are two nodes");
        let mut watch = RemoteMemoryWatch::new(&chip);
        let rates = ThreadRates::default();
        for (tid, pu, from_ps, to_ps) in [
            (1, 0, 0, 10),
            (2, far + 2, 0, 10),
            (1, far + 1, 10, 40),
            (2, far, 10, 40),
        ] {
            watch.note_segment(&segment(tid, pu, [from_ps, to_ps], &rates));
        }
        assert_eq!(watch.share(), 30.0 / 80.0);
    }
}
