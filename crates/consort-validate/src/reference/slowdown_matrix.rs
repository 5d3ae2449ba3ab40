//! All pairs of some programs on one ground: who slows whom down, and who is best paired.

use super::case::{EngineCase, stp};
use consort_core::matching::{PairCosts, pairs};
use consort_core::stats::mean;
use consort_core::stats::spearman;

/// Slowdown by which two co-runners must differ to be ranked. The solver stops at a millionth, and
/// the reference counts cycles, of which there are a hundred thousand.
const DISTINCT: f64 = 1e-4;

/// Slowdowns of each of several programs beside each other one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SlowdownMatrix {
    /// Row by row the victims; the diagonal has nothing.
    slowdowns: Vec<Vec<Option<f64>>>,
}

/// Shares of the variance of slowdowns, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct VarianceSplit {
    /// Explained by who is slowed down.
    pub(super) victim: f64,
    /// Explained by who slows down, whoever the victim is.
    pub(super) co_runner: f64,
    /// Rest: it depends on both.
    pub(super) both: f64,
}

impl SlowdownMatrix {
    /// The slowdowns that `of` finds in pairs of these programs.
    pub(super) fn from_cases(
        cases: &[&EngineCase],
        programs: &[usize],
        of: impl Fn(&EngineCase) -> &[f64],
    ) -> Self {
        let mut slowdowns = vec![vec![None; programs.len()]; programs.len()];
        let place = |program| programs.iter().position(|&p| p == program);
        for case in cases {
            let [Some(first), Some(second)] = [0, 1].map(|at| place(case.programs[at])) else {
                continue;
            };
            slowdowns[first][second] = Some(of(case)[0]);
            slowdowns[second][first] = Some(of(case)[1]);
        }
        Self { slowdowns }
    }

    fn known_slowdowns(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let rows = self.slowdowns.iter().enumerate();
        rows.flat_map(|(victim, row)| {
            let cells = row.iter().enumerate();
            cells.filter_map(move |(other, cell)| Some((victim, other, (*cell)?)))
        })
    }

    /// Shares of variance by main effects. They are fitted in turns (backfitting), since the
    /// diagonal lacks and a mean over a row is over other co-runners than the next row's.
    pub(super) fn variance(&self) -> VarianceSplit {
        const TURNS: u32 = 100;
        let known: Vec<(usize, usize, f64)> = self.known_slowdowns().collect();
        let all = mean(&known.iter().map(|k| k.2).collect::<Vec<_>>()).unwrap_or(0.0);
        let n = self.slowdowns.len();
        let (mut victims, mut others) = (vec![0.0; n], vec![0.0; n]);
        for _ in 0..TURNS {
            victims = effects(&known, n, |&(v, o, s)| (v, s - all - others[o]));
            others = effects(&known, n, |&(v, o, s)| (o, s - all - victims[v]));
        }
        let sum = |part: &dyn Fn(&(usize, usize, f64)) -> f64| -> f64 {
            known.iter().map(|k| part(k) * part(k)).sum()
        };
        let parts = [
            sum(&|&(v, _, _)| victims[v]),
            sum(&|&(_, o, _)| others[o]),
            sum(&|&(v, o, s)| s - all - victims[v] - others[o]),
        ];
        let total: f64 = parts.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        VarianceSplit {
            victim: parts[0] / total,
            co_runner: parts[1] / total,
            both: parts[2] / total,
        }
    }

    /// Pairs of programs, in order, that have the highest sum of STP over all pairings.
    pub(super) fn best_pairing(&self) -> Option<Vec<(usize, usize)>> {
        let n = self.slowdowns.len();
        let costs = PairCosts::from_fn(n, |a, b| -self.stp(a, b).unwrap_or(0.0)).ok()?;
        let pairing = pairs(&costs, &vec![0.0; n], n / 2).ok()?;
        pairing
            .pairs
            .into_iter()
            .map(|(a, b)| Some((a, b?)))
            .collect()
    }

    /// STP of a pairing over the mean over all pairings.
    pub(super) fn stp_over_random(&self, pairing: &[(usize, usize)]) -> Option<f64> {
        let chosen: Option<Vec<f64>> = pairing.iter().map(|&(a, b)| self.stp(a, b)).collect();
        let all: Vec<f64> = { 0..self.slowdowns.len() }
            .flat_map(|b| (0..b).filter_map(move |a| self.stp(a, b)))
            .collect();
        Some(mean(&chosen?)? / mean(&all)?)
    }

    fn stp(&self, a: usize, b: usize) -> Option<f64> {
        Some(stp(&[self.slowdowns[a][b]?, self.slowdowns[b][a]?]))
    }

    /// Mean over victims of the rank correlation of their co-runners by both squares. Slowdowns
    /// that [`DISTINCT`] does not tell apart are equal; a victim has no rank of co-runners that
    /// all are.
    pub(super) fn rank_correlation(&self, other: &Self) -> Option<f64> {
        let rows = self.slowdowns.iter().zip(&other.slowdowns);
        let of_victim = |(ours, theirs): (&Vec<Option<f64>>, &Vec<Option<f64>>)| {
            let steps = |slowdown: f64| (slowdown / DISTINCT).round();
            let both = ours.iter().zip(theirs);
            spearman(
                &both
                    .filter_map(|(a, b)| Some((steps((*a)?), steps((*b)?))))
                    .collect::<Vec<_>>(),
            )
        };
        mean(&rows.filter_map(of_victim).collect::<Vec<_>>())
    }
}

/// Means of what is left, by the number that goes with it.
fn effects(
    known: &[(usize, usize, f64)],
    n: usize,
    of: impl Fn(&(usize, usize, f64)) -> (usize, f64),
) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0_f64); n];
    for (at, left) in known.iter().map(of) {
        sums[at].0 += left;
        sums[at].1 += 1.0;
    }
    sums.into_iter()
        .map(|(sum, count)| sum / count.max(1.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(n: usize, slowdown: impl Fn(usize, usize) -> f64) -> SlowdownMatrix {
        let cell = |v: usize, o: usize| (v != o).then(|| slowdown(v, o));
        SlowdownMatrix {
            slowdowns: (0..n)
                .map(|v| (0..n).map(|o| cell(v, o)).collect())
                .collect(),
        }
    }

    #[test]
    fn main_effects_explain_what_they_make() {
        let by_victim = square(6, |v, _| 1.0 + v as f64).variance();
        assert!(by_victim.victim > 0.999, "{by_victim:?}");
        let by_other = square(6, |_, o| 1.0 + o as f64).variance();
        assert!(by_other.co_runner > 0.999, "{by_other:?}");
        let by_both = square(6, |v, o| if (v + o) % 2 == 0 { 1.0 } else { 2.0 }).variance();
        assert!(by_both.both > 0.8, "{by_both:?}");
    }

    #[test]
    fn the_best_pairing_is_found_and_set_against_the_mean_of_all() {
        // 0 and 1 do each other no harm, nor do 2 and 3; all else halves.
        let square = square(4, |v, o| if v / 2 == o / 2 { 1.0 } else { 2.0 });
        let best = square.best_pairing().unwrap();
        assert_eq!(best, [(0, 1), (2, 3)]);
        // STP of 2 against the mean of 2, 2 and four times 1.
        let over = square.stp_over_random(&best).unwrap();
        assert!((over - 2.0 / (8.0 / 6.0)).abs() < 1e-12, "{over}");
    }

    #[test]
    fn co_runners_are_ranked_victim_by_victim() {
        let a = square(5, |v, o| v as f64 + o as f64);
        let reversed = square(5, |v, o| v as f64 - o as f64);
        assert_eq!(a.rank_correlation(&a), Some(1.0));
        assert_eq!(a.rank_correlation(&reversed), Some(-1.0));
        let settled = square(5, |_, o| 1.0 + o as f64 * 1e-6);
        assert_eq!(settled.rank_correlation(&a), None);
    }
}
