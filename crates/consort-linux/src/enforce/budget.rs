//! A bound on nudges per second.

use std::time::Instant;

/// Most nudges per second. A nudge takes up to 50 us of Consort's time on a busy host
/// (docs/measurements/enactment.md), so this many take at most five percent of one PU.
pub(crate) const NUDGES_PER_S: f64 = 1_000.0;

/// Nudges that may be made now; refilled over time, never more than those of one second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NudgeBudget {
    left: f64,
    filled: Instant,
}

impl NudgeBudget {
    /// A full budget.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            left: NUDGES_PER_S,
            filled: now,
        }
    }

    /// Takes one nudge out; returns false when none is left.
    pub(crate) fn take_nudge(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.filled);
        self.left = NUDGES_PER_S.min(self.left + NUDGES_PER_S * since.as_secs_f64());
        self.filled = now;
        let there = self.left >= 1.0;
        if there {
            self.left -= 1.0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn no_second_has_more_nudges_than_the_bound_beyond_the_first() {
        let start = Instant::now();
        let mut budget = NudgeBudget::new(start);
        let made = |budget: &mut NudgeBudget, ms: u64| {
            let now = start + Duration::from_millis(ms);
            (0..10_000).filter(|_| budget.take_nudge(now)).count()
        };
        assert_eq!(made(&mut budget, 0), 1_000);
        assert_eq!(made(&mut budget, 0), 0);
        assert_eq!(made(&mut budget, 250), 250);
        assert_eq!(made(&mut budget, 60_000), 1_000);
    }
}
