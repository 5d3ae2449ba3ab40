//! The budget for looking at samples, the share of time in which events are open, and the samples that
//! are left out.
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

// All of the time is sampled while events cost next to nothing, a fifth of it while they cost up to
// one percent of the programs' CPU time, and beyond that only a second in some minutes: what is
// known of a program's code then stays as it was first seen.

/// Cost of open events, as a share of the programs' CPU time, up to which they stay open.
const NEGLIGIBLE: f64 = 0.002;
/// Cost beyond which they stay closed longer and longer.
const DEAR: f64 = 0.01;
/// Cost below which they are opened again after that; less than [`DEAR`], so that they do not come
/// and go.
const CHEAP_AGAIN: f64 = 0.005;
/// Time for which they are open in each cycle, and at the start, ns.
const OPEN_NS: u64 = 1_000_000_000;
/// Time for which they are closed in each cycle, ns.
const CLOSED_NS: u64 = 4 * OPEN_NS;
/// Factor by which that grows each time that events turn out to be dear. Threads that begin and end
/// while events are closed are not seen, so that what they would cost is known by trying only.
const LONGER: u64 = 4;
/// Longest time for which they are closed, ns.
const MOST_CLOSED_NS: u64 = 300_000_000_000;

/// The state of the events, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventDuty {
    is_open: bool,
    since_ns: u64,
    /// Time for which they are closed next, ns.
    closed_ns: u64,
}

impl EventDuty {
    /// Events that were opened at this time.
    pub(super) fn begin(now_ns: u64) -> Self {
        Self {
            is_open: true,
            since_ns: now_ns,
            closed_ns: CLOSED_NS,
        }
    }

    /// Returns true if events are to be open from now on. `cost` is their cost while they are open,
    /// as a share of the programs' CPU time; under `least`, a fifth of the time is the most.
    pub(super) fn decide(&mut self, now_ns: u64, cost: f64, least: bool) -> bool {
        let lasted_ns = now_ns.saturating_sub(self.since_ns);
        let was_dear = self.closed_ns > CLOSED_NS;
        let wanted = match self.is_open {
            true => lasted_ns < OPEN_NS || (cost <= NEGLIGIBLE && !least),
            false => lasted_ns >= self.closed_ns && (cost < CHEAP_AGAIN || !was_dear),
        };
        if self.is_open && !wanted {
            self.closed_ns = match cost > DEAR {
                true => (self.closed_ns * LONGER).min(MOST_CLOSED_NS),
                false => CLOSED_NS,
            };
        }
        if wanted != self.is_open {
            self.is_open = wanted;
            self.since_ns = now_ns;
        }
        wanted
    }
}

// If there are more samples than the budget allows, some are left out. The samples to leave out are drawn by a hash of the sample's number, not by counting to k: of
// two threads that take turns on a CPU, counting could leave out all samples of one.

/// A draw of the samples that are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thinning {
    max_per_s: u64,
    keep_one_in: u64,
    seen: u64,
    seen_in_round: u64,
    last_ns: Option<u64>,
}

/// Length of a round, ns, below which it shows no rate.
const SHORTEST_ROUND_NS: u64 = 10_000_000;

impl Thinning {
    pub(crate) fn new(max_per_s: u64) -> Self {
        Self {
            max_per_s: max_per_s.max(1),
            keep_one_in: 1,
            seen: 0,
            seen_in_round: 0,
            last_ns: None,
        }
    }

    /// Returns true if the next sample is to be looked at.
    pub(crate) fn keep_next(&mut self) -> bool {
        self.seen += 1;
        self.seen_in_round += 1;
        self.keep_one_in == 1 || mix(self.seen).is_multiple_of(self.keep_one_in)
    }

    /// Changes the budget from the next round on.
    pub(crate) fn set_max_per_s(&mut self, max_per_s: u64) {
        self.max_per_s = max_per_s.max(1);
    }

    /// Number of samples that a kept one stands for.
    pub(crate) fn factor(&self) -> u64 {
        self.keep_one_in
    }

    /// Ends a round whose last record is of `now_ns`; the next one keeps the part of its samples
    /// that fits the budget at this one's rate.
    pub(crate) fn end_round(&mut self, now_ns: u64) {
        let Some(last_ns) = self.last_ns else {
            self.last_ns = Some(now_ns);
            self.seen_in_round = 0;
            return;
        };
        let span_ns = now_ns.saturating_sub(last_ns);
        if span_ns < SHORTEST_ROUND_NS {
            return;
        }
        let per_s = u128::from(self.seen_in_round) * 1_000_000_000 / u128::from(span_ns);
        let per_s = u64::try_from(per_s).unwrap_or(u64::MAX);
        self.keep_one_in = per_s.div_ceil(self.max_per_s).max(1);
        self.last_ns = Some(now_ns);
        self.seen_in_round = 0;
    }
}

/// The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, OOPSLA 2014).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
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

#[cfg(test)]
mod duty_tests {
    use super::*;

    /// Share of 60 s in which events are open, decided every 100 ms.
    fn open_share(cost: f64, least: bool) -> f64 {
        let mut duty = EventDuty::begin(0);
        let open = (0..600).filter(|n| duty.decide(n * 100_000_000, cost, least));
        open.count() as f64 / 600.0
    }

    #[test]
    fn cheap_events_stay_open() {
        assert_eq!(open_share(0.001, false), 1.0);
    }

    #[test]
    fn dearer_events_are_open_a_fifth_of_time() {
        for (cost, least) in [(0.008, false), (0.0, true)] {
            let share = open_share(cost, least);
            assert!((0.18..0.22).contains(&share), "{share}");
        }
    }

    #[test]
    fn dear_events_are_open_at_the_start_only() {
        let share = open_share(0.3, false);
        assert!(share <= 1.0 / 60.0 + 0.002, "{share}");
    }

    #[test]
    fn events_that_become_cheap_are_opened_again() {
        let mut duty = EventDuty::begin(0);
        assert!(!duty.decide(1_000_000_000, 0.3, false));
        assert!(!duty.decide(16_000_000_000, 0.004, false));
        assert!(!duty.decide(17_000_000_000, 0.008, false));
        assert!(duty.decide(17_100_000_000, 0.004, false));
    }

    #[test]
    fn unseen_thread_starts_are_tried_ever_less() {
        let mut duty = EventDuty::begin(0);
        let mut cost = 0.3;
        let tried = (0..6_000).filter(|n| {
            let is_open = duty.decide(n * 100_000_000, cost, false);
            cost = if is_open { 0.3 } else { 0.0 };
            is_open
        });
        // 10 s of 600: 1 s at the start, and after 16, 64, 256 s and so on.
        assert!(tried.count() < 60);
    }
}

#[cfg(test)]
mod thinning_tests {
    use super::*;

    fn round(thinning: &mut Thinning, samples: u64, end_ns: u64) -> u64 {
        let kept = (0..samples).filter(|_| thinning.keep_next()).count() as u64;
        thinning.end_round(end_ns);
        kept
    }

    #[test]
    fn below_the_budget_all_are_kept() {
        let mut thinning = Thinning::new(1000);
        for second in 0..5 {
            let kept = round(&mut thinning, 1000, second * 1_000_000_000);
            assert_eq!((kept, thinning.factor()), (1000, 1));
        }
    }

    #[test]
    fn samples_beyond_budget_are_represented_by_kept_ones() {
        let mut thinning = Thinning::new(1000);
        round(&mut thinning, 0, 0);
        round(&mut thinning, 8000, 1_000_000_000);
        assert_eq!(thinning.factor(), 8);
        let kept = round(&mut thinning, 8000, 2_000_000_000);
        assert!((800..1200).contains(&kept), "{kept}");
        round(&mut thinning, 500, 3_000_000_000);
        assert_eq!(thinning.factor(), 1);
    }

    #[test]
    fn threads_taking_turns_are_thinned_alike() {
        let mut thinning = Thinning::new(1000);
        round(&mut thinning, 0, 0);
        round(&mut thinning, 2000, 1_000_000_000);
        let kept: Vec<bool> = (0..10_000).map(|_| thinning.keep_next()).collect();
        let even = kept.iter().step_by(2).filter(|&&k| k).count();
        let odd = kept.iter().skip(1).step_by(2).filter(|&&k| k).count();
        assert!(even.abs_diff(odd) < 300, "{even} and {odd}");
    }
}
