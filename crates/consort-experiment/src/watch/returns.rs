//! Cores on which threads go on after they return from the kernel, and the split of their time.
//!
//! Usage: watch a run with [`ReturnWatch`], then read [`ReturnWatch::tally`]. A return is one from a futex
//! call, a wait or one that wakes others, or from blocking input and output. Pitfall: returns
//! from locks that are too frequent to be events are counted where the thread is when they are
//! due, without a sleep between.

use super::CoreKind;
use consort_core::ThreadId;
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, PuUse, RunSegment};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Within this time of a return a thread counts as having come to a large core, ps: the hardware
/// quantum of 1 ms, because a scheduler acts at the end of a quantum at the latest.
const SOON_PS: u64 = 1_000_000_000;

/// Counts and times of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReturnTally {
    /// Returns of all threads.
    pub returns: u64,
    /// Number of returns after which the thread went on on a large core.
    pub at_once: u64,
    /// Number of returns after which the thread was on a large core within 1 ms.
    pub soon: u64,
    /// Time of work on CPUs, all threads, ps.
    pub work_ps: u64,
    /// Time of spinning for siblings, ps.
    pub spin_ps: u64,
    /// Time in the kernel on CPUs, ps.
    pub kernel_ps: u64,
    /// Time of refills after switches and moves, ps.
    pub refill_ps: u64,
    /// End of the run, ps.
    pub end_ps: u64,
    /// Threads that ran.
    pub threads: u64,
}

impl ReturnTally {
    /// Adds what was seen in another run, in which the same threads ran.
    pub fn add(&mut self, other: &Self) {
        self.returns += other.returns;
        self.at_once += other.at_once;
        self.soon += other.soon;
        self.work_ps += other.work_ps;
        self.spin_ps += other.spin_ps;
        self.kernel_ps += other.kernel_ps;
        self.refill_ps += other.refill_ps;
        self.end_ps += other.end_ps;
        self.threads = other.threads;
    }

    /// A part of the time of all threads from the beginning to the end, percent.
    pub fn percent(&self, part_ps: u64) -> f64 {
        100.0 * part_ps as f64 / self.thread_ps()
    }

    /// Time off CPUs, asleep or waiting for one, percent.
    pub fn off_percent(&self) -> f64 {
        100.0 - self.percent(self.work_ps + self.spin_ps + self.switch_ps())
    }

    /// Time that switches and moves took, kernel and refills, ps.
    pub fn switch_ps(&self) -> u64 {
        self.kernel_ps + self.refill_ps
    }

    /// Time of all threads from the beginning to the end, ps.
    pub fn thread_ps(&self) -> f64 {
        (self.end_ps * self.threads) as f64
    }
}

/// Counts returns from the kernel and times of threads; clones measure the same run.
#[derive(Clone)]
pub struct ReturnWatch(Rc<RefCell<ReturnMeter>>);

struct ReturnMeter {
    is_large: Vec<bool>,
    threads: BTreeMap<ThreadId, ThreadReturns>,
    tally: ReturnTally,
}

#[derive(Default)]
struct ThreadReturns {
    /// Its returns so far.
    returns: u64,
    /// Returns since its last segment.
    fresh: u64,
    /// Returns since which it has been on small cores only, with the end of their time.
    pending: VecDeque<(u64, u64)>,
}

impl ReturnWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        Self(Rc::new(RefCell::new(ReturnMeter {
            is_large: CoreKind::large_pus(chip),
            threads: BTreeMap::new(),
            tally: ReturnTally::default(),
        })))
    }

    /// Counts and times until now.
    pub fn tally(&self) -> ReturnTally {
        let meter = self.0.borrow();
        ReturnTally {
            threads: meter.threads.len() as u64,
            ..meter.tally
        }
    }
}

impl Observer for ReturnWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        let large = meter.is_large[segment.pu];
        meter.tally.add_segment(segment);
        let track = meter.threads.entry(segment.thread).or_default();
        let fresh = std::mem::take(&mut track.fresh);
        let soon = track.count_timely_returns(segment.from_ps, fresh, large);
        meter.tally.returns += fresh;
        meter.tally.soon += soon;
        meter.tally.at_once += if large { fresh } else { 0 };
    }

    fn note_returns(&mut self, thread: ThreadId, so_far: u64) {
        let mut meter = self.0.borrow_mut();
        let track = meter.threads.entry(thread).or_default();
        track.fresh += so_far - track.returns;
        track.returns = so_far;
    }
}

impl ThreadReturns {
    /// Adds `fresh` returns at a time. Returns the number of pending returns for which the thread is
    /// now on a large core in time.
    fn count_timely_returns(&mut self, now_ps: u64, fresh: u64, large: bool) -> u64 {
        while self.pending.front().is_some_and(|(end, _)| *end < now_ps) {
            self.pending.pop_front();
        }
        if fresh > 0 {
            self.pending.push_back((now_ps + SOON_PS, fresh));
        }
        if !large {
            return 0;
        }
        self.pending.drain(..).map(|(_, count)| count).sum()
    }
}

impl ReturnTally {
    fn add_segment(&mut self, segment: &RunSegment<'_>) {
        let time = segment.to_ps - segment.from_ps;
        // Locks too frequent to be events take their calls' time from the work.
        let called = (segment.kernel_share * time as f64) as u64;
        self.kernel_ps += called;
        let part = match segment.doing {
            PuUse::Work => &mut self.work_ps,
            PuUse::Spin => &mut self.spin_ps,
            PuUse::Kernel => &mut self.kernel_ps,
            PuUse::Overhead => &mut self.refill_ps,
        };
        *part += time - called;
        self.end_ps = self.end_ps.max(segment.to_ps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, segment, thread};
    use consort_sim::contention::ThreadRates;

    const MS: u64 = 1_000_000_000;

    /// Segments of a thread: CPU, begin and end in ms, what it does, returns so far. CPU 0 is
    /// large.
    fn watch(segments: &[(u32, usize, [u64; 2], PuUse, u64)]) -> ReturnTally {
        let mut watch = ReturnWatch::new(&chip("acmp-1+3"));
        let rates = ThreadRates::default();
        for &(tid, pu, [from, to], doing, so_far) in segments {
            watch.note_returns(thread(tid), so_far);
            watch.note_segment(&RunSegment {
                doing,
                ..segment(tid, pu, [from * MS, to * MS], &rates)
            });
        }
        watch.tally()
    }

    #[test]
    fn returns_reach_large_core_at_once_or_soon() {
        let tally = watch(&[
            (1, 0, [0, 4], PuUse::Work, 1),
            (2, 1, [0, 1], PuUse::Work, 1),
            (2, 0, [1, 2], PuUse::Work, 1),
            (3, 2, [0, 2], PuUse::Work, 2),
            (3, 0, [2, 3], PuUse::Work, 2),
        ]);
        assert_eq!((tally.returns, tally.at_once, tally.soon), (4, 1, 2));
    }

    #[test]
    fn each_return_counts_once() {
        let tally = watch(&[
            (1, 1, [0, 1], PuUse::Work, 3),
            (1, 0, [1, 2], PuUse::Work, 3),
            (1, 0, [2, 3], PuUse::Work, 3),
        ]);
        assert_eq!((tally.returns, tally.at_once, tally.soon), (3, 0, 3));
    }

    #[test]
    fn time_is_split_by_activity() {
        let tally = watch(&[
            (1, 0, [0, 4], PuUse::Work, 0),
            (2, 1, [0, 1], PuUse::Overhead, 0),
            (2, 1, [1, 3], PuUse::Spin, 0),
            (2, 1, [3, 4], PuUse::Kernel, 0),
        ]);
        let parts = [
            tally.work_ps,
            tally.spin_ps,
            tally.refill_ps,
            tally.kernel_ps,
        ];
        let percent = parts.map(|part| tally.percent(part));
        assert_eq!(percent, [50.0, 25.0, 12.5, 12.5]);
        assert_eq!(tally.off_percent(), 0.0);
    }
}
