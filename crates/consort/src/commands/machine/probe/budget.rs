//! Measurements that fit into the time: which pairs, how many runs, how long each.

use super::slices::SLICES;
use consort_core::PuId;
use consort_core::sharing::Stress;
use std::time::Duration;

/// Share of the time for line transfers; the rest is for kernels.
const FOR_LINES: f64 = 0.2;
/// Time that the line transfers of a pair take at most, as a rule.
const LINE: Duration = Duration::from_millis(5);
/// Runs and length of a slice, ms, the best first. 5 ms is a hundred units of work or more; beyond a
/// few, others that want the PUs get them within most slices.
const CHOICES: [(usize, u64); 4] = [(40, 8), (20, 5), (10, 5), (6, 5)];

/// Extent of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeBudget {
    /// Pairs that there are.
    pub(super) pairs: usize,
    /// Pairs whose line transfers are measured.
    pub(super) lines: usize,
    /// Pairs on which kernels are run; at most `lines`.
    pub(super) kernels: usize,
    /// Runs of every kernel on a pair.
    pub(super) runs: usize,
    /// Length of a slice, ms.
    pub(super) slice_ms: u64,
}

impl ProbeBudget {
    /// Returns the budget for so many PUs: at least one pair, if there is one, whatever the time.
    pub(super) fn new(pus: usize, time: Duration) -> Self {
        let pairs = pus * pus.saturating_sub(1) / 2;
        let fit = |time: Duration, each: Duration| (time.as_nanos() / each.as_nanos()) as usize;
        let most = |fit: usize| fit.max(1).min(pairs);
        let lines = most(fit(time.mul_f64(FOR_LINES), LINE));
        let left = time.mul_f64(1.0 - FOR_LINES);
        let of = |(runs, slice_ms): (usize, u64)| {
            let slices = (Stress::ALL.len() * runs * SLICES) as u64;
            (
                runs,
                slice_ms,
                fit(left, Duration::from_millis(slices * slice_ms)),
            )
        };
        let mut choices = CHOICES.into_iter().map(of);
        let all = choices.find(|(.., fit)| *fit >= pairs);
        let (runs, slice_ms, fit) = all.unwrap_or(of(CHOICES[CHOICES.len() - 1]));
        Self {
            pairs,
            lines,
            kernels: most(fit).min(lines),
            runs,
            slice_ms,
        }
    }
}

/// All pairs of these PUs, those first that share a core under the usual numberings: neighbours,
/// and PUs half the machine apart.
pub(super) fn pairs(pus: &[PuId]) -> Vec<(PuId, PuId)> {
    let n = pus.len();
    let usual = [1, n / 2];
    let others = (1..n).filter(|distance| !usual.contains(distance));
    let mut distances: Vec<usize> = usual.into_iter().filter(|d| *d > 0).chain(others).collect();
    distances.dedup();
    let at = |distance: usize| (0..n.saturating_sub(distance)).map(move |i| (i, i + distance));
    let places = distances.into_iter().flat_map(at);
    places.map(|(a, b)| (pus[a], pus[b])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn more_time_buys_more_runs_and_then_more_pairs() {
        let budget = |pus, seconds| ProbeBudget::new(pus, Duration::from_secs(seconds));
        let of = |b: ProbeBudget| (b.runs, b.slice_ms, b.kernels);
        assert_eq!(of(budget(2, 30)), (40, 8, 1));
        assert_eq!(of(budget(2, 3)), (20, 5, 1));
        assert_eq!(of(budget(4, 30)), (20, 5, 6));
        let large = budget(64, 30);
        assert_eq!((large.pairs, large.lines, large.kernels), (2016, 1200, 53));
        assert_eq!(budget(1, 30).kernels, 0);
    }

    #[test]
    fn usual_siblings_come_first() {
        let pus: Vec<PuId> = (0..4).map(PuId).collect();
        let first: Vec<(u32, u32)> = pairs(&pus).iter().map(|(a, b)| (a.0, b.0)).collect();
        assert_eq!(first, [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)]);
    }

    proptest! {
        #[test]
        fn every_pair_comes_once(n in 0u32..40) {
            let pus: Vec<PuId> = (0..n).map(|pu| PuId(3 * pu)).collect();
            let pairs = pairs(&pus);
            let all: BTreeSet<_> = pairs.iter().copied().collect();
            prop_assert_eq!(all.len(), pairs.len());
            prop_assert_eq!(pairs.len(), (n * n.saturating_sub(1) / 2) as usize);
            prop_assert!(pairs.iter().all(|(a, b)| a < b));
        }

        #[test]
        fn a_budget_never_has_more_than_there_is(pus in 0usize..600, ms in 1u64..100_000) {
            let budget = ProbeBudget::new(pus, Duration::from_millis(ms));
            prop_assert!(budget.kernels <= budget.lines && budget.lines <= budget.pairs);
            prop_assert!(budget.pairs == 0 || budget.kernels > 0);
        }
    }
}
