//! Thinning: samples are left out when there are more than the budget allows.
//!
//! The samples to leave out are drawn by a hash of the sample's number, not by counting to k: of
//! two threads that take turns on a PU, counting could leave out all samples of one.

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
