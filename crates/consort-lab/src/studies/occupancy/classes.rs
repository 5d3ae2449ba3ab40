//! What the programs of one class did.

use super::runs::Outcome;
use super::{LINUX, Measured};
use crate::experiment::Counters;
use crate::report::Cell;
use consort_core::stats::{Interval, RatioInterval};
use std::ops::Range;

/// The programs of a class under one policy.
pub(super) struct Class<'a> {
    pub(super) measured: &'a Measured<'a>,
    pub(super) policy: usize,
    pub(super) programs: Range<usize>,
}

impl<'a> Class<'a> {
    /// All programs of a case.
    pub(super) fn all(measured: &'a Measured<'a>, policy: usize) -> Self {
        Self {
            measured,
            policy,
            programs: measured.case.programs(),
        }
    }
}

impl Class<'_> {
    /// The mean of a number over the runs.
    pub(super) fn mean(&self, value: impl Fn(&Counters) -> f64) -> Option<Interval> {
        Interval::of(&self.each(self.policy, value))
    }

    /// The mean slowdown of the programs.
    pub(super) fn slowdown(&self) -> Option<Interval> {
        let mean = |outcome: &Outcome| {
            let programs = &outcome.result.programs[self.programs.clone()];
            programs.iter().map(|p| p.slowdown).sum::<f64>() / programs.len() as f64
        };
        Interval::of(&self.measured.over(self.policy, mean))
    }

    /// L2 misses per instruction over those under `linux`, less 1, in percent.
    pub(super) fn l2_change_percent(&self) -> Cell {
        let ours = self.each(self.policy, Counters::l2_mpki);
        let theirs = self.each(LINUX, Counters::l2_mpki);
        match RatioInterval::paired(&ours, &theirs) {
            Some(ratio) => percent_change(ratio).into(),
            None => Cell::missing("there are no L2 misses to compare with"),
        }
    }

    fn each(&self, policy: usize, value: impl Fn(&Counters) -> f64) -> Vec<f64> {
        let of = |outcome: &Outcome| value(&self.sum(outcome));
        self.measured.over(policy, of)
    }

    fn sum(&self, outcome: &Outcome) -> Counters {
        let mut sum = Counters::default();
        for program in &outcome.result.programs[self.programs.clone()] {
            sum.add(&program.counters);
        }
        sum
    }
}

fn percent_change(ratio: RatioInterval) -> Interval {
    let interval = ratio.symmetric();
    Interval {
        mean: 100.0 * (interval.mean - 1.0),
        ci95: interval.ci95.map(|half| 100.0 * half),
        n: interval.n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_in_percent_of_the_ratio() {
        let change = percent_change(RatioInterval::of(&[1.1, 1.1]).unwrap());
        assert!((change.mean - 10.0).abs() < 1e-9);
        assert_eq!(change.n, 2);
    }
}
