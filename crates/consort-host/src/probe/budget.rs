//! Extent of a probe: which pairs, how many runs, how long each.

use consort_core::PuId;
use consort_core::sharing::Stress;
use std::time::Duration;

/// Share of the time for line transfers; the rest is for kernels.
const LINE_SHARE: f64 = 0.2;
/// Time that the line transfers of a pair take at most, as a rule.
const LINE_TIME: Duration = Duration::from_millis(5);
/// Slices in a run: one thread alone, both, the other alone.
pub(super) const SLICES: usize = 3;
/// Runs and length of a slice, ms, the best first. 5 ms is a hundred units of work or more; in
/// slices beyond a few ms, other programs that want the PUs get them most of the time.
const CHOICES: [(usize, u64); 4] = [(40, 8), (20, 5), (10, 5), (6, 5)];

/// Measurements that fit into a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeBudget {
    /// Pairs of the chosen PUs.
    pub pairs: usize,
    /// Pairs whose line transfers are measured.
    pub lines: usize,
    /// Pairs on which kernels are run; at most `lines`.
    pub kernels: usize,
    /// Runs of every kernel on a pair.
    pub runs: usize,
    /// Length of a slice, ms.
    pub slice_ms: u64,
}

impl ProbeBudget {
    /// Returns the budget for so many PUs: at least one pair, if there is one, whatever the time.
    #[must_use]
    pub fn new(pus: usize, time: Duration) -> Self {
        let pairs = pus * pus.saturating_sub(1) / 2;
        let lines = count_fitting(time.mul_f64(LINE_SHARE), LINE_TIME).max(1);
        let kernel_time = time.mul_f64(1.0 - LINE_SHARE);
        // The first choice with which every pair has its turn, or else the cheapest.
        let (mut runs, mut slice_ms, mut kernels) = (0, 0, 0);
        for choice in CHOICES {
            (runs, slice_ms) = choice;
            let slices = (Stress::ALL.len() * runs * SLICES) as u64;
            kernels = count_fitting(kernel_time, Duration::from_millis(slices * slice_ms));
            if kernels >= pairs {
                break;
            }
        }
        let lines = lines.min(pairs);
        Self {
            pairs,
            lines,
            kernels: kernels.max(1).min(lines),
            runs,
            slice_ms,
        }
    }
}

fn count_fitting(time: Duration, each: Duration) -> usize {
    (time.as_nanos() / each.as_nanos()) as usize
}

/// All pairs of these PUs, those first that share a core under the usual numberings: neighbours,
/// and PUs half the machine apart.
pub(super) fn order_pairs(pus: &[PuId]) -> Vec<(PuId, PuId)> {
    let n = pus.len();
    let usual = [1, n / 2];
    let others = (1..n).filter(|distance| !usual.contains(distance));
    let mut distances: Vec<usize> = usual.into_iter().filter(|d| *d > 0).chain(others).collect();
    // With two or three PUs, half the machine apart is next to each other.
    distances.dedup();
    let mut pairs = Vec::new();
    for distance in distances {
        for i in 0..n.saturating_sub(distance) {
            pairs.push((pus[i], pus[i + distance]));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn more_time_buys_runs_then_pairs() {
        let budget = |pus, seconds| ProbeBudget::new(pus, Duration::from_secs(seconds));
        let extent = |b: ProbeBudget| (b.runs, b.slice_ms, b.kernels);
        assert_eq!(extent(budget(2, 30)), (40, 8, 1));
        assert_eq!(extent(budget(2, 3)), (20, 5, 1));
        assert_eq!(extent(budget(4, 30)), (20, 5, 6));
        let large = budget(64, 30);
        assert_eq!((large.pairs, large.lines, large.kernels), (2016, 1200, 53));
        assert_eq!(budget(1, 30).kernels, 0);
    }

    #[test]
    fn usual_siblings_come_first() {
        let pus: Vec<PuId> = (0..4).map(PuId).collect();
        let pairs = order_pairs(&pus);
        let first: Vec<(u32, u32)> = pairs.iter().map(|(a, b)| (a.0, b.0)).collect();
        assert_eq!(first, [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)]);
    }

    proptest! {
        #[test]
        fn every_pair_comes_once(n in 0u32..40) {
            let pus: Vec<PuId> = (0..n).map(|pu| PuId(3 * pu)).collect();
            let pairs = order_pairs(&pus);
            let all: BTreeSet<_> = pairs.iter().copied().collect();
            prop_assert_eq!(all.len(), pairs.len());
            prop_assert_eq!(pairs.len(), (n * n.saturating_sub(1) / 2) as usize);
            prop_assert!(pairs.iter().all(|(a, b)| a < b));
        }

        #[test]
        fn budget_never_exceeds_the_pairs(pus in 0usize..600, ms in 1u64..100_000) {
            let budget = ProbeBudget::new(pus, Duration::from_millis(ms));
            prop_assert!(budget.kernels <= budget.lines && budget.lines <= budget.pairs);
            prop_assert!(budget.pairs == 0 || budget.kernels > 0);
        }
    }
}
