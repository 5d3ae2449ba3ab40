//! Locks: a thread's acquisitions, and the returns from the kernel of threads that wait for them.
//!
//! Acquisitions are a Poisson process in the thread's own instructions outside critical sections,
//! critical sections have exponential lengths, and every lock is as likely as any other. The
//! queueing model of more frequent locks assumes the same, so that a program does not change its
//! nature at the limit between the two.
//!
//! If acquisitions are rare enough, they are events ([`are_events`]; [`super::sync`] handles them).
//! All others are a queueing model in the solution of rates. It says how likely an acquisition
//! finds a sibling in its way and how long it then waits on average. The wait is exponential, so
//! the share of the acquisitions that wait for longer than `spin_us`, go to sleep and come back
//! from the kernel is `busy · exp(−spin/wait)` (the distribution of the wait at an M/M/1:
//! Kleinrock, "Queueing Systems", volume 1, section 5.12). These returns are counted at that mean
//! rate, evenly, without the event: the wait is in the rate already, and the calls of the kernel,
//! by waiting and by waking threads, lengthen the instructions between them.

use super::PS_PER_NS;
use super::draw::RandomStream;
use crate::contention::{Demand, LockQueue};
use crate::math::exp;
use crate::program::LockSpec;
use std::collections::VecDeque;

/// One lock; threads by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramLock {
    pub(crate) holder: Option<usize>,
    /// Threads that wait, first come first.
    pub(crate) queue: VecDeque<usize>,
    pub(crate) waited: WaitTime,
}

pub(crate) fn locks(points: &LockAcquisitions) -> Vec<ProgramLock> {
    vec![ProgramLock::default(); points.count]
}

/// Least mean instructions between two acquisitions of a thread for which they are events, as for
/// input and output: about 50 µs on the cores of today.
pub(crate) const CLOSEST_INSTR: f64 = 1e5;

/// Relation of a thread to its program's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockState {
    /// It holds none and waits for none.
    Outside,
    /// It waits for the lock with this number.
    Waiting(usize),
    /// It holds the lock with this number.
    Inside(usize),
}

/// One thread's acquisitions.
#[derive(Clone, Debug)]
pub(crate) struct LockAcquisitions {
    draw: RandomStream,
    /// Mean instructions outside critical sections between two of them.
    gap_instr: f64,
    /// Mean instructions inside.
    hold_instr: f64,
    /// Number of locks; 0 if none is taken by events.
    pub(crate) count: usize,
    pub(crate) place: LockState,
    /// Instructions until it takes or releases a lock.
    pub(crate) left: f64,
}

impl LockAcquisitions {
    /// The acquisitions of a thread; without end in between if the program has no locks that are
    /// events.
    pub(crate) fn new(spec: Option<LockSpec>, mut draw: RandomStream) -> Self {
        let Some(spec) = spec.filter(are_events) else {
            return Self {
                draw,
                gap_instr: f64::INFINITY,
                hold_instr: 0.0,
                count: 0,
                place: LockState::Outside,
                left: f64::INFINITY,
            };
        };
        let gap_instr = (1e6 / spec.per_minstr - spec.hold_instr).max(0.0);
        Self {
            left: draw.exponential(gap_instr),
            draw,
            gap_instr,
            hold_instr: spec.hold_instr,
            count: spec.count as usize,
            place: LockState::Outside,
        }
    }

    pub(super) fn draw_lock(&mut self) -> usize {
        let number = self.draw.uniform_below(self.count);
        self.place = LockState::Waiting(number);
        self.left = f64::INFINITY;
        number
    }

    pub(super) fn enter(&mut self) {
        if let LockState::Waiting(number) = self.place {
            self.place = LockState::Inside(number);
            self.left = self.draw.exponential(self.hold_instr);
        }
    }

    pub(in crate::engine) fn give_up(&mut self) {
        if let LockState::Waiting(number) = self.place {
            self.place = LockState::Inside(number);
        }
        self.leave();
    }

    /// Ends its critical section, if it is in one; returns the number of the lock.
    pub(super) fn leave(&mut self) -> Option<usize> {
        let LockState::Inside(number) = self.place else {
            return None;
        };
        self.place = LockState::Outside;
        self.left = self.draw.exponential(self.gap_instr);
        Some(number)
    }
}

/// True if acquisitions of a program's locks are events. Locks that are never held need none, and
/// locks that are too frequent belong to the queueing model.
pub(crate) fn are_events(spec: &LockSpec) -> bool {
    let taken = spec.per_minstr > 0.0 && spec.hold_instr > 0.0;
    taken && 1e6 / spec.per_minstr >= CLOSEST_INSTR
}

/// Returns per instruction at which a thread that spins for `spin_s` comes back from sleeping for
/// locks.
pub(crate) fn returns_per_instr(demand: &Demand, queue: LockQueue, spin_s: f64) -> f64 {
    match demand.lock {
        Some(lock) if queue.busy > 0.0 && queue.wait_s > 0.0 => {
            lock.per_minstr / 1e6 * queue.busy * exp(-spin_s / queue.wait_s)
        }
        _ => 0.0,
    }
}

/// One thread's returns from the kernel for one reason: whole ones at a mean rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelReturns {
    /// Cycles in the kernel for each.
    cycles: f64,
    /// Returns per instruction.
    rate: f64,
    /// Part of the next return that had passed at the anchor, 0 to 1.
    begun: f64,
}

impl KernelReturns {
    pub(crate) fn new(cycles: f64, rate: f64) -> Self {
        Self {
            cycles,
            rate,
            begun: 0.0,
        }
    }

    /// Cycles per instruction in the kernel.
    pub(crate) fn kernel_cycles(&self) -> f64 {
        self.rate * self.cycles
    }

    /// Whole returns between two numbers of instructions since the anchor; the same whatever
    /// steps they are split into.
    pub(crate) fn between(&self, before: f64, after: f64) -> u64 {
        if self.rate == 0.0 {
            return 0;
        }
        (libm::floor(self.at(after)) - libm::floor(self.at(before))) as u64
    }

    pub(crate) fn rebase(&mut self, passed: f64) {
        let begun = self.at(passed);
        self.begun = begun - libm::floor(begun);
    }

    /// Sets the rate from the anchor on, which must be now.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    pub(crate) fn differs(&self, rate: f64) -> bool {
        self.rate.to_bits() != rate.to_bits()
    }

    fn at(&self, passed: f64) -> f64 {
        self.begun + passed * self.rate
    }
}

/// A sum of waiting times; exact however time is split into steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitTime {
    waiters: u64,
    /// Instant since which there have been so many, ps.
    since: u64,
    /// Waited until then and not yet taken, thread·ps.
    ps: u64,
}

impl WaitTime {
    pub(crate) fn set(&mut self, now: u64, waiters: usize) {
        let passed = now.saturating_sub(self.since);
        self.ps = self.ps.saturating_add(passed.saturating_mul(self.waiters));
        self.since = now;
        self.waiters = waiters as u64;
    }

    /// Time waited since the last call, thread·ns; the rest below one counts the next time.
    pub(crate) fn take_ns(&mut self, now: u64) -> u64 {
        self.set(now, self.waiters as usize);
        let ns = self.ps / PS_PER_NS;
        self.ps %= PS_PER_NS;
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draw::Purpose;
    use proptest::prelude::*;

    const SPEC: LockSpec = LockSpec {
        per_minstr: 5.0,
        hold_instr: 50_000.0,
        count: 3,
    };

    fn points(spec: LockSpec) -> LockAcquisitions {
        LockAcquisitions::new(Some(spec), RandomStream::new(1, Purpose::Lock, 0, 0))
    }

    #[test]
    fn acquisitions_match_description() {
        let mut points = points(SPEC);
        let (n, mut outside, mut inside, mut taken) = (20_000, 0.0, 0.0, [0; 3]);
        for _ in 0..n {
            outside += points.left;
            taken[points.draw_lock()] += 1;
            points.enter();
            inside += points.left;
            points.leave();
        }
        let each = |sum: f64| sum / f64::from(n);
        assert!((each(outside) / 150_000.0 - 1.0).abs() < 0.02);
        assert!((each(inside) / 50_000.0 - 1.0).abs() < 0.02);
        assert!(taken.iter().all(|&k: &i32| (k - n / 3).abs() < n / 50));
    }

    #[test]
    fn frequent_or_unheld_locks_are_no_events() {
        let with = |per_minstr, hold_instr| LockSpec {
            per_minstr,
            hold_instr,
            ..SPEC
        };
        assert!(are_events(&with(10.0, 1.0)));
        for none in [with(10.1, 1.0), with(1.0, 0.0), with(0.0, 1.0)] {
            assert!(!are_events(&none));
            assert_eq!(points(none).left, f64::INFINITY);
        }
    }

    proptest! {
        #[test]
        fn returns_are_independent_of_steps(
            rate in 0.0f64..1e-3,
            parts in prop::collection::vec(1.0f64..1e6, 1..40),
        ) {
            let whole: f64 = parts.iter().sum();
            let mut returns = KernelReturns::default();
            returns.set_rate(rate);
            let at_once = returns.between(0.0, whole);
            let (mut passed, mut sum) = (0.0, 0);
            for part in parts {
                sum += returns.between(passed, passed + part);
                passed += part;
            }
            prop_assert_eq!(sum, at_once);
            prop_assert!((at_once as f64 - whole * rate).abs() <= 1.0);
            returns.rebase(whole);
            prop_assert!((0.0..1.0).contains(&returns.begun));
        }
    }

    #[test]
    fn two_waiters_count_twice_without_loss() {
        let mut waited = WaitTime::default();
        waited.set(1_000, 1);
        waited.set(3_500, 2);
        assert_eq!(waited.take_ns(4_000), 3);
        waited.set(4_250, 0);
        assert_eq!(waited.take_ns(9_000), 1);
        assert_eq!(waited.take_ns(10_000), 0);
    }
}
