//! A thread's next acquisition of a lock: its time, the lock, and the duration.
//!
//! Acquisitions are a Poisson process in the thread's own instructions outside critical sections,
//! critical sections have exponential lengths, and every lock is as likely as any other: what the
//! queueing model of the more frequent locks assumes, so that a program does not change its nature
//! where the one takes over from the other.

use crate::engine::draw::RandomStream;
use crate::program::LockSpec;

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
    /// Locks; 0 when none is taken by events.
    pub(crate) count: usize,
    pub(crate) place: LockState,
    /// Instructions until it takes a lock or lets go of one.
    pub(crate) left: f64,
}

impl LockAcquisitions {
    /// The acquisitions of a thread; none by events where the program has no such locks.
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

    /// Draws the lock that it wants now.
    pub(super) fn draw_lock(&mut self) -> usize {
        let number = self.draw.uniform_below(self.count);
        self.place = LockState::Waiting(number);
        self.left = f64::INFINITY;
        number
    }

    /// Gives it the lock that it asked for.
    pub(super) fn enter(&mut self) {
        if let LockState::Waiting(number) = self.place {
            self.place = LockState::Inside(number);
            self.left = self.draw.exponential(self.hold_instr);
        }
    }

    /// Gives up the lock that it holds or waits for.
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

/// True if acquisitions of a program's locks are events: nobody ever waits for a lock that is
/// never held, and what is too frequent is the queueing model's.
pub(crate) fn are_events(spec: &LockSpec) -> bool {
    let taken = spec.per_minstr > 0.0 && spec.hold_instr > 0.0;
    taken && 1e6 / spec.per_minstr >= CLOSEST_INSTR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draw::Purpose;

    const SPEC: LockSpec = LockSpec {
        per_minstr: 5.0,
        hold_instr: 50_000.0,
        count: 3,
    };

    fn points(spec: LockSpec) -> LockAcquisitions {
        LockAcquisitions::new(Some(spec), RandomStream::new(1, Purpose::Lock, 0, 0))
    }

    #[test]
    fn rate_length_and_number_are_as_described() {
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
    fn what_is_too_frequent_or_never_held_is_no_event() {
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
}
