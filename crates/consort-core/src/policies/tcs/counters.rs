//! Counters of tcs, in real numbers or as the hardware has them.

use std::cmp::Ordering;

/// Highest count of instructions and of timer ticks (ns) in hardware: 32 bits.
const MOST: f64 = u32::MAX as f64;
/// Bits behind the point of the hardware's long-term sums.
const FRACTION_BITS: u32 = 16;

/// Arithmetic of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Arithmetic {
    /// Real numbers.
    #[default]
    Real,
    /// The hardware's integers, which saturate: 32 bits for instructions and ns, 64 bits with 16 of
    /// them behind the point for sums.
    Integer,
}

/// A criticality; those of one arithmetic can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CriticalityValue {
    /// ns per instruction.
    Real(f64),
    /// The hardware's number for it: larger is more critical.
    Whole(u64),
}

impl CriticalityValue {
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Real(_), Self::Whole(_)) => Ordering::Less,
            (Self::Whole(_), Self::Real(_)) => Ordering::Greater,
        }
    }

    /// Reverses the order, for those who want the least critical.
    pub(super) fn reverse(self) -> Self {
        match self {
            Self::Real(weight) => Self::Real(-weight),
            Self::Whole(weight) => Self::Whole(u64::MAX - weight),
        }
    }
}

impl Arithmetic {
    /// No criticality.
    pub(super) fn zero(self) -> CriticalityValue {
        match self {
            Self::Real => CriticalityValue::Real(0.0),
            Self::Integer => CriticalityValue::Whole(0),
        }
    }

    /// Value of a counter after so much more; both are exact in 53 bits.
    pub(super) fn add_to_counter(self, counter: f64, more: f64) -> f64 {
        match self {
            Self::Real => counter + more,
            Self::Integer => (counter + libm::round(more)).min(MOST),
        }
    }

    /// Short-term criticality: quantum over instructions. All quanta are alike, so that the
    /// hardware compares the instructions: the fewer, the more critical.
    pub(super) fn short_term_criticality(self, quantum_ns: u64, done: f64) -> CriticalityValue {
        match self {
            Self::Real => CriticalityValue::Real(quantum_ns as f64 / done),
            Self::Integer => CriticalityValue::Whole(u64::MAX - done as u64),
        }
    }
}

/// Long-term criticality of a software thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTermCriticality {
    arithmetic: Arithmetic,
    /// Active intervals over the instructions committed in them, ns per instruction, summed.
    sum: CriticalityValue,
    /// Length of the active interval so far, ns.
    active_ns: f64,
    /// Instructions committed in it.
    done: f64,
}

impl LongTermCriticality {
    pub(super) fn new(arithmetic: Arithmetic) -> Self {
        Self {
            arithmetic,
            sum: arithmetic.zero(),
            active_ns: 0.0,
            done: 0.0,
        }
    }

    /// The sum over the intervals that have ended.
    pub(super) fn sum(&self) -> CriticalityValue {
        self.sum
    }

    pub(super) fn add_interval(&mut self, interval_ns: u64, done: f64) {
        self.active_ns = self
            .arithmetic
            .add_to_counter(self.active_ns, interval_ns as f64);
        self.done = self.arithmetic.add_to_counter(self.done, done);
    }

    /// Ends the active interval; one without instructions adds nothing.
    pub(super) fn end_interval(&mut self) {
        if self.done > 0.0 {
            self.sum = match self.sum {
                CriticalityValue::Real(sum) => {
                    CriticalityValue::Real(sum + self.active_ns / self.done)
                }
                CriticalityValue::Whole(sum) => {
                    let quotient = ((self.active_ns as u64) << FRACTION_BITS) / self.done as u64;
                    CriticalityValue::Whole(sum.saturating_add(quotient))
                }
            };
        }
        (self.active_ns, self.done) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(intervals: &[(u64, f64)], arithmetic: Arithmetic) -> CriticalityValue {
        let mut own = LongTermCriticality::new(arithmetic);
        for &(ns, done) in intervals {
            own.add_interval(ns, done);
            own.end_interval();
        }
        own.sum()
    }

    #[test]
    fn integers_saturate_and_are_rounded_down() {
        let of = |intervals: &[_]| sum(intervals, Arithmetic::Integer);
        assert_eq!(of(&[(1, 3.0)]), CriticalityValue::Whole(65536 / 3));
        assert_eq!(of(&[(7, 0.0), (0, 5.0)]), CriticalityValue::Whole(0));
        let long = u64::from(u32::MAX) + 9;
        assert_eq!(
            of(&[(long, 1.0)]),
            CriticalityValue::Whole((1 << 48) - (1 << 16))
        );
        assert_eq!(Arithmetic::Integer.add_to_counter(MOST - 1.0, 5.0), MOST);
        let many = vec![(long, 1.0); 70_000];
        assert_eq!(of(&many), CriticalityValue::Whole(u64::MAX));
    }

    proptest! {
        #[test]
        fn an_integer_sum_is_less_than_the_real_one_by_less_than_a_65536th_for_each_interval(
            intervals in prop::collection::vec((0u64..5_000_000, 1u32..5_000_000), 0..20),
        ) {
            let intervals: Vec<_> = intervals.iter().map(|&(t, i)| (t, f64::from(i))).collect();
            let (real, whole) = (
                sum(&intervals, Arithmetic::Real),
                sum(&intervals, Arithmetic::Integer),
            );
            let (CriticalityValue::Real(real), CriticalityValue::Whole(whole)) = (real, whole) else {
                return Err(TestCaseError::fail("a sum in the other arithmetic"));
            };
            let whole = whole as f64 / 65536.0;
            let rounding = 1e-9 * real.max(1.0);
            prop_assert!(whole <= real + rounding);
            prop_assert!(real - whole <= intervals.len() as f64 / 65536.0 + rounding);
        }
    }
}
