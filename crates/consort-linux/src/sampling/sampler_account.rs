//! The budget for looking at samples.
//!
//! Cutting a new block out of code takes tens of microseconds, finding a known one a fraction of
//! one. A program that stays in its loops is cheap to watch; a compiler that executes megabytes of
//! code is not. So the cost is measured as it arises, and samples beyond the budget are left out
//! before they are looked at.

/// Share of the managed CPU time that looking at samples may take. Together with the share for
/// taking them (`calibrate`) the tier stays well below one percent.
const SHARE: f64 = 0.0025;
/// CPU time that may be spent beyond the share at the start, when all code is new, ns.
const CREDIT_NS: f64 = 10e6;
/// Number of samples per second of managed CPU time that are looked at whatever they cost: a window
/// in four seconds.
const LEAST_PER_CPU_S: f64 = 50.0;
/// Weight of a new round in the running cost per sample.
const NEW: f64 = 0.2;

/// The account of one sampler: CPU time spent on samples, and CPU time of the managed threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SamplerAccount {
    spent_ns: f64,
    managed_ns: f64,
    /// Running mean of the cost of one sample, ns.
    per_sample_ns: f64,
}

impl SamplerAccount {
    /// Enters one round: own CPU time, CPU time of the managed threads, number of samples looked
    /// at.
    pub(crate) fn add_round(&mut self, own_ns: u64, managed_ns: u64, samples: u64) {
        self.spent_ns += own_ns as f64;
        self.managed_ns += managed_ns as f64;
        if samples > 0 {
            let cost = own_ns as f64 / samples as f64;
            let weight = if self.per_sample_ns > 0.0 { NEW } else { 1.0 };
            self.per_sample_ns += weight * (cost - self.per_sample_ns);
        }
    }

    /// Most samples to be looked at per second of managed CPU time; `None` for no limit.
    pub(crate) fn limit_per_cpu_s(&self) -> Option<f64> {
        let overdrawn = self.spent_ns > CREDIT_NS + SHARE * self.managed_ns;
        overdrawn.then(|| {
            // Half the sustainable rate, so that the debt is paid off.
            let sustainable = 1e9 * SHARE / self.per_sample_ns.max(1.0);
            (0.5 * sustainable).max(LEAST_PER_CPU_S)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs `rounds` of 0.1 s with one busy thread, `rate` samples per CPU second of `cost_ns`.
    fn run(rounds: u32, rate: f64, cost_ns: f64) -> SamplerAccount {
        let mut upkeep = SamplerAccount::default();
        for _ in 0..rounds {
            let kept = upkeep
                .limit_per_cpu_s()
                .map_or(rate, |limit| limit.min(rate));
            let samples = (kept / 10.0).round();
            upkeep.add_round((samples * cost_ns) as u64, 100_000_000, samples as u64);
        }
        upkeep
    }

    #[test]
    fn cheap_samples_are_never_limited() {
        assert_eq!(run(1_000, 499.0, 2_000.0).limit_per_cpu_s(), None);
    }

    #[test]
    fn dear_samples_are_limited_after_the_credit() {
        assert_eq!(run(5, 499.0, 40_000.0).limit_per_cpu_s(), None);
        let long = run(1_000, 499.0, 40_000.0);
        let share = long.spent_ns / long.managed_ns;
        assert!(share < 0.003, "{share}");
    }

    proptest! {
        #[test]
        fn the_share_holds_unless_the_least_rate_costs_more(cost_ns in 100.0f64..100_000.0) {
            let upkeep = run(2_000, 1_000.0, cost_ns);
            let least = LEAST_PER_CPU_S * cost_ns / 1e9;
            let share = (upkeep.spent_ns - CREDIT_NS) / upkeep.managed_ns;
            prop_assert!(share < 1.1 * SHARE.max(least), "{share}");
        }
    }
}
