//! A program cut into intervals.

use consort_ops::Op;

use crate::measure::{Counts, Meters, Tally};

/// Numbers that tell which code an interval executes.
pub(crate) const DIMENSIONS: usize = 32;
/// Shares of an interval's instructions by the hash of their line of code.
pub(crate) type Code = [f64; DIMENSIONS];

/// Most intervals that are kept; with more, neighbours are put together.
const MOST: usize = 512;
/// Bits of an address within a line of code.
const LINE_SHIFT: u32 = 6;

/// A stretch of execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interval {
    pub(crate) counts: Counts,
    executed: [u64; DIMENSIONS],
}

impl Interval {
    pub(crate) fn code(&self) -> Code {
        let all = self.executed.iter().sum::<u64>().max(1) as f64;
        self.executed.map(|executed| executed as f64 / all)
    }

    /// Several as one.
    pub(crate) fn sum(intervals: &[Self]) -> Self {
        let mut sum = Self::default();
        intervals.iter().for_each(|interval| sum.add(interval));
        sum
    }

    fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.executed.add(&other.executed);
    }
}

/// Intervals of one thread, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intervals {
    done: Vec<Interval>,
    /// How many that were told of make one that is kept.
    per_kept: usize,
    /// Intervals told of.
    told: usize,
    before: Counts,
    executed: [u64; DIMENSIONS],
}

impl Intervals {
    /// Takes an operation that counts.
    pub(crate) fn op(&mut self, op: &Op) {
        let line = op.address >> LINE_SHIFT;
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
        self.executed[mixed as usize] += u64::from(op.first);
    }

    /// Ends an interval.
    pub(crate) fn end(&mut self, meters: &Meters) {
        let counts = meters.counts();
        let interval = Interval {
            counts: counts.since(&self.before),
            executed: std::mem::take(&mut self.executed),
        };
        if interval.counts.mix.instructions == 0 {
            return;
        }
        self.before = counts;
        self.keep(interval);
    }

    fn keep(&mut self, interval: Interval) {
        self.per_kept = self.per_kept.max(1);
        if self.done.len() == MOST && self.told.is_multiple_of(self.per_kept) {
            self.halve();
        }
        match self.done.last_mut() {
            Some(last) if !self.told.is_multiple_of(self.per_kept) => last.add(&interval),
            _ => self.done.push(interval),
        }
        self.told += 1;
    }

    fn halve(&mut self) {
        self.done = self.done.chunks(2).map(Interval::sum).collect();
        self.per_kept *= 2;
    }

    /// Intervals so far.
    pub(crate) fn all(&self) -> &[Interval] {
        &self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::Kind;

    #[test]
    fn many_intervals_are_put_together_and_none_is_lost() {
        let mut intervals = Intervals::default();
        let mut meters = Meters::default();
        meters.count(true);
        for _ in 0..5 * MOST / 2 {
            let op = Op::new(Kind::Integer, 0x1000);
            meters.op(&op, false);
            intervals.op(&op);
            intervals.end(&meters);
        }
        let kept = intervals.all();
        assert!(kept.len() <= MOST && kept.len() > MOST / 2);
        let all: u64 = kept.iter().map(|i| i.counts.mix.instructions).sum();
        assert_eq!(all, 5 * MOST as u64 / 2);
        assert!((kept[0].code().iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
