//! Checksums that can be known without doing the work again.
//!
//! A unit's result depends on its seed alone, and seeds repeat with [`PERIOD`].
//! The checksum is the wrapping sum of the results, so after any number of
//! units it follows from the results of one period.

use crate::kernel::{Kernel, KernelBuilder, KernelSetup, make_builders};

/// Number of units until a kernel's seeds repeat.
pub const PERIOD: u64 = 256;

/// Units done, and the sum of their results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnitTally {
    done: u64,
    sum: u64,
}

impl UnitTally {
    /// The seed of the next unit, for a kernel whose results repeat with `period`.
    pub(crate) fn seed(self, period: u64) -> u64 {
        self.done % period
    }

    /// Adds the result of one unit.
    pub(crate) fn add(&mut self, result: u64) {
        self.done += 1;
        self.sum = self.sum.wrapping_add(result);
    }

    pub(crate) fn sum(self) -> u64 {
        self.sum
    }

    /// Returns the value that `sum` must have if every unit with seed `s` gave `result(s)`: whole
    /// periods times the period's sum, plus the rest.
    pub(crate) fn expected(self, period: u64, result: impl Fn(u64) -> u64) -> u64 {
        let rest = self.done % period;
        (0..period.min(self.done)).fold(0, |sum: u64, seed| {
            let times = self.done / period + u64::from(seed < rest);
            sum.wrapping_add(result(seed).wrapping_mul(times))
        })
    }
}

/// A kernel whose unit is a pure function of its seed.
#[derive(Debug)]
pub(crate) struct PureKernel {
    unit: fn(u64) -> u64,
    tally: UnitTally,
}

impl PureKernel {
    pub(crate) fn new(unit: fn(u64) -> u64) -> Self {
        Self {
            unit,
            tally: UnitTally::default(),
        }
    }

    /// Builders for threads that share nothing.
    pub(crate) fn builders(setup: &KernelSetup, unit: fn(u64) -> u64) -> Vec<KernelBuilder> {
        make_builders(setup, move |_| Ok(Self::new(unit)))
    }
}

impl Kernel for PureKernel {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            self.tally.add((self.unit)(self.tally.seed(PERIOD)));
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally.expected(PERIOD, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn expected_is_the_sum_of_all_results(units in 0_u64..2_000, period in 1_u64..300) {
            let result = |seed: u64| (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut tally = UnitTally::default();
            for _ in 0..units {
                tally.add(result(tally.seed(period)));
            }
            prop_assert_eq!(tally.sum(), tally.expected(period, result));
        }
    }

    #[test]
    fn wrong_result_is_noticed() {
        let mut tally = UnitTally::default();
        for unit in 0..1_000 {
            tally.add(u64::from(unit == 437));
        }
        assert_ne!(tally.sum(), tally.expected(PERIOD, |_| 0));
    }
}
