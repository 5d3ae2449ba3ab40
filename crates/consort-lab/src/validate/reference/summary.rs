//! Errors of the fast engine: of a case, of all pairs of some programs, and over everything.

use super::parts::ProgramDraw;
use consort_core::matching::{PairCosts, pairs};
use consort_core::stats::{EffectCell, EffectShares, MainEffects, mean, quantile, spearman};
use serde::Serialize;

/// Programs that run together, and their slowdowns against a run alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EngineCase {
    /// Number of the part of a machine.
    pub(super) part: usize,
    /// Numbers of the programs, by place.
    pub(super) programs: Vec<usize>,
    /// Slowdowns by the fast engine.
    pub(super) fast: Vec<f64>,
    /// Slowdowns by the reference.
    pub(super) reference: Vec<f64>,
}

/// System throughput of these slowdowns (Eyerman and Eeckhout, IEEE Micro 2008).
pub(super) fn stp(slowdowns: &[f64]) -> f64 {
    slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum()
}

/// Average normalised turnaround time of these slowdowns (the same source).
pub(super) fn antt(slowdowns: &[f64]) -> f64 {
    mean(slowdowns).unwrap_or(f64::NAN)
}

impl EngineCase {
    /// Error of the fast engine's STP, as a share of the reference's.
    pub(super) fn stp_error(&self) -> f64 {
        relative_error(stp(&self.fast), stp(&self.reference))
    }

    /// Error of the fast engine's ANTT, as a share of the reference's.
    pub(super) fn antt_error(&self) -> f64 {
        relative_error(antt(&self.fast), antt(&self.reference))
    }

    /// Errors of the fast engine's slowdowns, as shares of the reference's.
    pub(super) fn slowdown_errors(&self) -> impl Iterator<Item = f64> {
        let both = self.fast.iter().zip(&self.reference);
        both.map(|(fast, reference)| relative_error(*fast, *reference))
    }

    /// The place of the largest of [`EngineCase::slowdown_errors`], and that error.
    pub(super) fn worst_slowdown_error(&self) -> (usize, f64) {
        let errors = self.slowdown_errors().enumerate();
        errors.fold((0, 0.0), |worst, (place, error)| match error > worst.1 {
            true => (place, error),
            false => worst,
        })
    }
}

fn relative_error(value: f64, truth: f64) -> f64 {
    (value / truth - 1.0).abs()
}

/// Slowdown by which two co-runners must differ to be ranked. The solver stops at a millionth, and
/// the reference counts cycles, about a hundred thousand.
const DISTINCT: f64 = 1e-4;

/// Slowdowns of each of several programs next to each of the others.
#[derive(Clone, Debug, PartialEq)]
struct SlowdownMatrix {
    /// A row for each victim; the diagonal is empty.
    slowdowns: Vec<Vec<Option<f64>>>,
}

impl SlowdownMatrix {
    /// The slowdowns that `of` finds in pairs of these programs.
    fn from_cases(
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

    /// Shares of the variance of slowdowns, 0 to 1: explained by the victim, by the co-runner, and
    /// the rest, which depends on both.
    fn variance(&self) -> [f64; 3] {
        let mut known: Vec<EffectCell> = Vec::new();
        for (victim, row) in self.slowdowns.iter().enumerate() {
            let cells = row.iter().enumerate();
            known.extend(cells.filter_map(|(other, cell)| Some((victim, other, (*cell)?))));
        }
        let effects = MainEffects::fit(&known);
        let shares = effects.map_or_else(EffectShares::default, |effects| effects.shares(&known));
        [shares.rows, shares.columns, shares.interaction]
    }

    /// Pairs of programs, in order, that have the highest sum of STP over all pairings.
    fn best_pairing(&self) -> Option<Vec<(usize, usize)>> {
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
    fn stp_over_random(&self, pairing: &[(usize, usize)]) -> Option<f64> {
        let chosen: Option<Vec<f64>> = pairing.iter().map(|&(a, b)| self.stp(a, b)).collect();
        let all: Vec<f64> = { 0..self.slowdowns.len() }
            .flat_map(|b| (0..b).filter_map(move |a| self.stp(a, b)))
            .collect();
        Some(mean(&chosen?)? / mean(&all)?)
    }

    fn stp(&self, a: usize, b: usize) -> Option<f64> {
        Some(stp(&[self.slowdowns[a][b]?, self.slowdowns[b][a]?]))
    }

    /// Mean over victims of the rank correlation of their co-runners by both matrices. Slowdowns
    /// that differ by less than [`DISTINCT`] are equal; a victim whose co-runners are all equal
    /// does not count.
    fn rank_correlation(&self, other: &Self) -> Option<f64> {
        let rows = self.slowdowns.iter().zip(&other.slowdowns);
        let steps = |slowdown: f64| (slowdown / DISTINCT).round();
        let correlations = rows.filter_map(|(ours, theirs)| {
            let both = ours.iter().zip(theirs);
            let known = both.filter_map(|(a, b)| Some((steps((*a)?), steps((*b)?))));
            spearman(&known.collect::<Vec<_>>())
        });
        mean(&correlations.collect::<Vec<_>>())
    }
}

/// The fast engine compared with the reference; errors are shares of the reference's values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReferenceSummary {
    /// Pairs of programs that were run.
    pub pairs: usize,
    /// Sets of more programs that were run.
    pub larger: usize,
    /// Error of STP, mean.
    pub stp_error_mean: Option<f64>,
    /// Error of STP, 95th percentile.
    pub stp_error_p95: Option<f64>,
    /// Error of ANTT, mean.
    pub antt_error_mean: Option<f64>,
    /// Error of ANTT, 95th percentile.
    pub antt_error_p95: Option<f64>,
    /// Error of slowdowns, mean.
    pub slowdown_error_mean: Option<f64>,
    /// Error of slowdowns, 95th percentile.
    pub slowdown_error_p95: Option<f64>,
    /// Rank correlation of the co-runners of a victim, mean over victims.
    pub rank_correlation: Option<f64>,
    /// STP of the best pairing over that of a random one, by the fast engine.
    pub best_over_random_fast: Option<f64>,
    /// STP of the best pairing over that of a random one, by the reference.
    pub best_over_random_reference: Option<f64>,
    /// STP of the pairing that the fast engine chooses over that of a random one, by the reference.
    pub chosen_over_random_reference: Option<f64>,
    /// Shares of the variance of slowdowns by the fast engine.
    pub variance_fast: VarianceShares,
    /// Shares of the variance of slowdowns by the reference.
    pub variance_reference: VarianceShares,
}

/// Shares of variance, means over squares of programs, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct VarianceShares {
    /// Share explained by the victim.
    pub victim: Option<f64>,
    /// Share explained by the co-runner.
    pub co_runner: Option<f64>,
    /// Share that depends on both.
    pub both: Option<f64>,
}

/// The same programs on the same part by both engines.
struct EngineMatrices {
    fast: SlowdownMatrix,
    reference: SlowdownMatrix,
}

impl ReferenceSummary {
    pub(super) fn from_cases(cases: &[EngineCase], drawn: &[ProgramDraw]) -> Self {
        let mut twins = Vec::new();
        for draw in drawn {
            let here = cases.iter().filter(|case| case.part == draw.part);
            let here: Vec<&EngineCase> = here.collect();
            twins.extend(draw.squares.iter().map(|square| EngineMatrices {
                fast: SlowdownMatrix::from_cases(&here, square, |case| &case.fast),
                reference: SlowdownMatrix::from_cases(&here, square, |case| &case.reference),
            }));
        }
        let all = |of: &dyn Fn(&EngineMatrices) -> Option<f64>| {
            mean(&twins.iter().filter_map(of).collect::<Vec<_>>())
        };
        let shares = |of: &dyn Fn(&EngineMatrices) -> [f64; 3]| {
            mean_shares(&twins.iter().map(of).collect::<Vec<_>>())
        };
        let best = |square: &SlowdownMatrix| square.stp_over_random(&square.best_pairing()?);
        let stp: Vec<f64> = cases.iter().map(EngineCase::stp_error).collect();
        let antt: Vec<f64> = cases.iter().map(EngineCase::antt_error).collect();
        let slowdowns: Vec<f64> = cases.iter().flat_map(EngineCase::slowdown_errors).collect();
        let pairs = cases.iter().filter(|case| case.programs.len() == 2).count();
        Self {
            pairs,
            larger: cases.len() - pairs,
            stp_error_mean: mean(&stp),
            stp_error_p95: quantile(&stp, 0.95),
            antt_error_mean: mean(&antt),
            antt_error_p95: quantile(&antt, 0.95),
            slowdown_error_mean: mean(&slowdowns),
            slowdown_error_p95: quantile(&slowdowns, 0.95),
            rank_correlation: all(&|t| t.fast.rank_correlation(&t.reference)),
            best_over_random_fast: all(&|t| best(&t.fast)),
            best_over_random_reference: all(&|t| best(&t.reference)),
            chosen_over_random_reference: all(&|t| {
                t.reference.stp_over_random(&t.fast.best_pairing()?)
            }),
            variance_fast: shares(&|t| t.fast.variance()),
            variance_reference: shares(&|t| t.reference.variance()),
        }
    }
}

/// Means of shares over squares of programs.
fn mean_shares(all: &[[f64; 3]]) -> VarianceShares {
    let part = |n: usize| mean(&all.iter().map(|shares| shares[n]).collect::<Vec<_>>());
    VarianceShares {
        victim: part(0),
        co_runner: part(1),
        both: part(2),
    }
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
    fn main_effects_explain_their_variance() {
        let [by_victim, ..] = square(6, |v, _| 1.0 + v as f64).variance();
        assert!(by_victim > 0.999, "{by_victim:?}");
        let [_, by_other, _] = square(6, |_, o| 1.0 + o as f64).variance();
        assert!(by_other > 0.999, "{by_other:?}");
        let [.., by_both] = square(6, |v, o| if (v + o) % 2 == 0 { 1.0 } else { 2.0 }).variance();
        assert!(by_both > 0.8, "{by_both:?}");
    }

    #[test]
    fn best_pairing_is_compared_with_the_mean() {
        // 0 and 1 do each other no harm, nor do 2 and 3; all else halves.
        let square = square(4, |v, o| if v / 2 == o / 2 { 1.0 } else { 2.0 });
        let best = square.best_pairing().unwrap();
        assert_eq!(best, [(0, 1), (2, 3)]);
        // STP of 2 against the mean of 2, 2 and four times 1.
        let over = square.stp_over_random(&best).unwrap();
        assert!((over - 2.0 / (8.0 / 6.0)).abs() < 1e-12, "{over}");
    }

    #[test]
    fn co_runners_are_ranked_by_victim() {
        let a = square(5, |v, o| v as f64 + o as f64);
        let reversed = square(5, |v, o| v as f64 - o as f64);
        assert_eq!(a.rank_correlation(&a), Some(1.0));
        assert_eq!(a.rank_correlation(&reversed), Some(-1.0));
        let settled = square(5, |_, o| 1.0 + o as f64 * 1e-6);
        assert_eq!(settled.rank_correlation(&a), None);
    }

    #[test]
    fn errors_are_shares_of_the_reference() {
        let case = EngineCase {
            part: 0,
            programs: vec![0, 1],
            fast: vec![1.5, 2.0],
            reference: vec![2.0, 2.0],
        };
        // 1/1.5 + 1/2 against 1, and 1.75 against 2.
        assert!((case.stp_error() - 1.0 / 6.0).abs() < 1e-12);
        assert!((case.antt_error() - 0.125).abs() < 1e-12);
        assert_eq!(case.slowdown_errors().collect::<Vec<_>>(), [0.25, 0.0]);
        assert_eq!(case.worst_slowdown_error(), (0, 0.25));
    }
}
