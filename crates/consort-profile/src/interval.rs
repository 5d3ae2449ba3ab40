//! Intervals of a program's execution.

use std::collections::BTreeMap;

use crate::measure::{MeterCounts, PartialTally};

/// Dimensions of the vector that shows which code an interval executes.
pub(crate) const DIMENSIONS: usize = 32;
/// Shares of an interval's instructions by the hash of their line of code.
pub(crate) type CodeVector = [f64; DIMENSIONS];

/// Dimensions of the vector that shows which code a thread executes, a multiple of [`DIMENSIONS`].
pub(crate) const FINE: usize = 1024;
/// Most intervals that are open, because threads reach their ends at different times.
const MOST_OPEN: usize = 64;
/// Most intervals that are kept; with more, neighbours are merged.
const MOST: usize = 512;
/// Bits of an address within a line of code.
const LINE_SHIFT: u32 = 6;

pub(crate) type CodeLineCounts = [u64; DIMENSIONS];

/// A stretch of execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramInterval {
    pub(crate) counts: MeterCounts,
    executed: CodeLineCounts,
    /// Instructions of the thread that executed most in it.
    pub(crate) longest: u64,
}

impl ProgramInterval {
    pub(crate) fn code(&self) -> CodeVector {
        let all = self.executed.iter().sum::<u64>().max(1) as f64;
        self.executed.map(|executed| executed as f64 / all)
    }

    pub(crate) fn sum(intervals: &[Self]) -> Self {
        let mut sum = Self::default();
        intervals.iter().for_each(|interval| sum.add(interval));
        sum
    }

    fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.executed.add(&other.executed);
        self.longest += other.longest;
    }

    /// Adds what another thread did at the same time.
    fn add_parallel(&mut self, other: &Self) {
        let longest = self.longest.max(other.longest);
        self.add(other);
        self.longest = longest;
    }
}

/// Counts and code of one thread in an interval.
#[derive(Debug, Clone)]
pub(crate) struct ThreadInterval {
    pub(crate) interval: ProgramInterval,
    code: CodeHistogram,
}

/// Instructions by the hash of their line of code, in [`FINE`] classes.
pub(crate) type CodeHistogram = Vec<u64>;

/// Counts of one thread in the current interval, and over all intervals that are kept.
#[derive(Debug, Clone)]
pub(crate) struct ThreadStretch {
    before: MeterCounts,
    code: CodeHistogram,
    kept: MeterCounts,
    kept_code: CodeHistogram,
}

impl Default for ThreadStretch {
    fn default() -> Self {
        Self {
            before: MeterCounts::default(),
            code: vec![0; FINE],
            kept: MeterCounts::default(),
            kept_code: vec![0; FINE],
        }
    }
}

impl ThreadStretch {
    /// Adds counted instructions in the line of code of an address.
    pub(crate) fn count_instructions(&mut self, address: u64, instructions: u64) {
        let line = address >> LINE_SHIFT;
        let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FINE.ilog2());
        if let Some(executed) = self.code.get_mut(mixed as usize) {
            *executed += instructions;
        }
    }

    /// Sum of the intervals that are kept.
    pub(crate) const fn kept_counts(&self) -> &MeterCounts {
        &self.kept
    }

    /// Code of the intervals that are kept.
    pub(crate) fn kept_code(&self) -> &[u64] {
        &self.kept_code
    }

    /// Ends the stretch. Returns the code that it executed.
    pub(crate) fn end(&mut self) -> CodeHistogram {
        std::mem::replace(&mut self.code, vec![0; FINE])
    }

    /// The stretch with this code that ends at these counts: the difference to the counts at the
    /// end of the last stretch.
    pub(crate) fn close_interval(
        &mut self,
        code: CodeHistogram,
        counts: MeterCounts,
    ) -> ThreadInterval {
        let since = counts.since(&self.before);
        self.before = counts;
        let mut executed = [0; DIMENSIONS];
        for (at, done) in code.iter().enumerate() {
            executed[at * DIMENSIONS / FINE] += *done;
        }
        let interval = ProgramInterval {
            longest: since.mix.instructions,
            counts: since,
            executed,
        };
        ThreadInterval { interval, code }
    }

    /// Keeps an interval of this thread.
    pub(crate) fn keep_interval(&mut self, ended: &ThreadInterval) {
        self.kept.add(&ended.interval.counts);
        for (all, executed) in self.kept_code.iter_mut().zip(&ended.code) {
            *all += executed;
        }
    }
}

/// Intervals of a program, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intervals {
    done: Vec<ProgramInterval>,
    /// Number of reported intervals that make one kept interval.
    per_kept: usize,
    /// Intervals reported so far.
    reported: usize,
    /// Intervals that threads may still add to, by number.
    open: BTreeMap<u64, ProgramInterval>,
    /// The earliest number that may be open.
    earliest: u64,
}

impl Intervals {
    /// Adds what a thread did in the interval with this number. What comes too late goes to the
    /// earliest open interval.
    pub(crate) fn merge_interval(&mut self, number: u64, interval: &ProgramInterval) {
        let is_full = self.open.len() == MOST_OPEN && !self.open.contains_key(&number);
        if is_full {
            self.close_earliest();
        }
        let number = number.max(self.earliest);
        self.open.entry(number).or_default().add_parallel(interval);
    }

    /// Closes all open intervals.
    pub(crate) fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close_earliest();
        }
    }

    fn close_earliest(&mut self) {
        if let Some((number, earliest)) = self.open.pop_first() {
            self.earliest = number + 1;
            self.store_interval(earliest);
        }
    }

    fn store_interval(&mut self, interval: ProgramInterval) {
        self.per_kept = self.per_kept.max(1);
        if self.done.len() == MOST && self.reported.is_multiple_of(self.per_kept) {
            self.done = self.done.chunks(2).map(ProgramInterval::sum).collect();
            self.per_kept *= 2;
        }
        match self.done.last_mut() {
            Some(last) if !self.reported.is_multiple_of(self.per_kept) => last.add(&interval),
            _ => self.done.push(interval),
        }
        self.reported += 1;
    }

    pub(crate) fn all(&self) -> &[ProgramInterval] {
        &self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::{Op, OpKind};

    #[test]
    fn many_intervals_are_merged_without_loss() {
        let mut intervals = Intervals::default();
        let mut thread = ThreadStretch::default();
        let mut counts = MeterCounts::default();
        for number in 0..5 * MOST as u64 / 2 {
            counts.mix.add_op(&Op::new(OpKind::Integer, 0x1000));
            thread.count_instructions(0x1000, 1);
            let executed = thread.end();
            let ended = thread.close_interval(executed, counts.clone());
            intervals.merge_interval(number, &ended.interval);
        }
        intervals.close_all();
        let kept = intervals.all();
        assert!(kept.len() <= MOST && kept.len() > MOST / 2);
        let all: u64 = kept.iter().map(|i| i.counts.mix.instructions).sum();
        assert_eq!(all, 5 * MOST as u64 / 2);
        assert!((kept[0].code().iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn late_threads_join_their_interval() {
        let mut intervals = Intervals::default();
        let of = |longest| ProgramInterval {
            longest,
            ..ProgramInterval::default()
        };
        for number in [1, 0, 2, 0, 1] {
            intervals.merge_interval(number, &of(10 + number));
        }
        intervals.close_all();
        let longest: Vec<_> = intervals.all().iter().map(|i| i.longest).collect();
        assert_eq!(longest, [10, 11, 12]);
        assert_eq!(ProgramInterval::sum(intervals.all()).longest, 33);
    }
}
