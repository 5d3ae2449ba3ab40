//! Returns from the kernel of threads whose locks are too frequent to be events.
//!
//! The solution of rates tells how likely an acquisition finds a sibling in its way and how long
//! it then waits on average. The wait is exponential, so the share of the acquisitions that wait
//! for longer than `spin_us`, go to sleep and come back from the kernel is
//! `busy · exp(−spin/wait)` (the distribution of the wait at an M/M/1: Kleinrock, "Queueing
//! Systems", volume 1, section 5.12). They are counted at that mean rate, evenly, without the
//! event: the wait is in the rate already, and the calls of the kernel, by whoever waits and by
//! whoever wakes it, lengthen the instructions between them.

use crate::contention::{Demand, LockQueue};
use crate::math::exp;

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

/// One thread's returns: whole ones out of a mean rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelReturns {
    /// Returns per instruction.
    rate: f64,
    /// Part of the next return that there was at the anchor, 0 to 1.
    begun: f64,
}

impl KernelReturns {
    /// Whole returns between two numbers of instructions since the anchor; the same whatever
    /// steps they are split into.
    pub(crate) fn between(&self, before: f64, after: f64) -> u64 {
        if self.rate == 0.0 {
            return 0;
        }
        (libm::floor(self.at(after)) - libm::floor(self.at(before))) as u64
    }

    /// Moves the anchor by so many instructions.
    pub(crate) fn rebase(&mut self, passed: f64) {
        let begun = self.at(passed);
        self.begun = begun - libm::floor(begun);
    }

    /// The rate from the anchor on, which must be now.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Returns per instruction.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// True if the rate is another than `rate`.
    pub(crate) fn differs(&self, rate: f64) -> bool {
        self.rate.to_bits() != rate.to_bits()
    }

    fn at(&self, passed: f64) -> f64 {
        self.begun + passed * self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn steps_change_nothing_and_the_mean_is_the_rate(
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
}
