//! Costs of two threads that share a core, for all pairs.

use crate::MatchingError;

/// Most threads of one matching; beyond it scaled costs would overflow.
pub const MAX_THREADS: usize = 1 << 14;

/// Symmetric costs of all pairs of `n` threads, in any unit.
///
/// Infinity marks a pair that should not meet: it is chosen only if every complete matching needs
/// such a pair, and then as rarely as possible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairCosts {
    threads: usize,
    /// Row by row the pairs (i, j) with i < j.
    values: Vec<f64>,
}

impl PairCosts {
    /// Collects the costs of `threads` threads; calls `cost` once for each pair (i, j) with i < j.
    ///
    /// # Errors
    /// [`MatchingError::Cost`] for a cost that is not a number or minus
    /// infinity, [`MatchingError::TooMany`] beyond [`MAX_THREADS`].
    pub fn from_fn(
        threads: usize,
        mut cost: impl FnMut(usize, usize) -> f64,
    ) -> Result<Self, MatchingError> {
        let mut costs = Self::default();
        costs.refill(threads, |first, row| {
            for (at, value) in row.iter_mut().enumerate() {
                *value = cost(first, first + 1 + at);
            }
        })?;
        Ok(costs)
    }

    /// Replaces the costs row by row and reuses memory: `fill` gets each thread, and a slice to
    /// write its costs with every thread after it, in their order.
    ///
    /// # Errors
    /// Those of [`PairCosts::from_fn`]; no thread is left then.
    pub fn refill(
        &mut self,
        threads: usize,
        mut fill: impl FnMut(usize, &mut [f64]),
    ) -> Result<(), MatchingError> {
        self.threads = 0;
        check_count(threads)?;
        self.values
            .resize(threads * threads.saturating_sub(1) / 2, 0.0);
        let mut rest = self.values.as_mut_slice();
        let mut wrong = 0;
        for first in 0..threads {
            let (row, after) = rest.split_at_mut(threads - first - 1);
            fill(first, row);
            // Counting has no early exit, so it runs on several costs at once.
            wrong += row.iter().filter(|value| is_wrong(**value)).count();
            rest = after;
        }
        self.threads = threads;
        if wrong > 0 { self.refuse() } else { Ok(()) }
    }

    /// Returns an error that names the first invalid pair, and forgets all costs.
    fn refuse(&mut self) -> Result<(), MatchingError> {
        let found = (0..self.threads)
            .flat_map(|i| (i + 1..self.threads).map(move |j| (i, j)))
            .find(|&(i, j)| is_wrong(self.at(i, j)));
        let (first, second) = found.unwrap_or_default();
        let value = self.at(first, second);
        *self = Self::default();
        Err(MatchingError::Cost {
            first,
            second,
            value,
        })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Cost of the pair; 0 for a thread and itself.
    ///
    /// # Panics
    /// Like a slice, if there is no such thread.
    pub fn at(&self, first: usize, second: usize) -> f64 {
        if first == second {
            return 0.0;
        }
        let (low, high) = (first.min(second), first.max(second));
        self.row(low)[high - low - 1]
    }

    /// Costs of `first` with each thread after it, in their order.
    pub(crate) fn row(&self, first: usize) -> &[f64] {
        let start = first * (2 * self.threads - first - 1) / 2;
        &self.values[start..start + self.threads - first - 1]
    }

    /// All pairs' costs.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }
}

fn is_wrong(value: f64) -> bool {
    value.is_nan() || value == f64::NEG_INFINITY
}

fn check_count(threads: usize) -> Result<(), MatchingError> {
    if threads > MAX_THREADS {
        return Err(MatchingError::TooMany {
            threads,
            most: MAX_THREADS,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_in_either_order() {
        let costs = PairCosts::from_fn(4, |i, j| (10 * i + j) as f64).unwrap();
        for i in 0..4 {
            for j in i + 1..4 {
                assert_eq!(costs.at(i, j), (10 * i + j) as f64);
                assert_eq!(costs.at(j, i), costs.at(i, j));
            }
        }
        assert_eq!(costs.at(2, 2), 0.0);
    }

    #[test]
    fn invalid_cost_is_named() {
        let nan = PairCosts::from_fn(3, |i, j| if (i, j) == (1, 2) { f64::NAN } else { 1.0 });
        let text = nan.unwrap_err().to_string();
        assert!(text.contains("threads 1 and 2"), "{text}");
        assert!(PairCosts::from_fn(2, |_, _| f64::NEG_INFINITY).is_err());
        assert!(PairCosts::from_fn(MAX_THREADS + 1, |_, _| 0.0).is_err());
        assert!(PairCosts::from_fn(2, |_, _| f64::INFINITY).is_ok());
    }
}
