//! Time that threads share a core, by pairs of threads.

use consort_core::ThreadId;
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, RunSegment};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Watches a run; its clones see the same.
#[derive(Clone)]
pub struct CoRunnerWatch(Rc<RefCell<CoRunnerMeter>>);

impl CoRunnerWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        Self(Rc::new(RefCell::new(CoRunnerMeter::new(chip))))
    }

    /// Share, for every thread in the order of the workload, of the time that it had company in
    /// which it was beside each thread; rows add up to 1 with two threads on a core.
    pub fn shares(&self) -> Vec<Vec<f64>> {
        let mut meter = self.0.borrow_mut();
        meter.flush();
        meter.shares()
    }
}

impl Observer for CoRunnerWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
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
    /// Core of each PU.
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

    /// Ends the interval.
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

    /// PUs 0 and 1 are of core 0, 2 and 3 of core 1.
    #[test]
    fn shares_are_of_the_time_with_company() {
        let mut watch = CoRunnerWatch::new(&chip("power8:smt=2"));
        tell(&mut watch, &[(1, 0), (2, 1), (3, 2)], [0, 30]);
        tell(&mut watch, &[(1, 0), (3, 1), (2, 2)], [30, 40]);
        let expect = [[0.0, 0.75, 0.25], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]];
        assert_eq!(watch.shares(), expect);
    }
}
