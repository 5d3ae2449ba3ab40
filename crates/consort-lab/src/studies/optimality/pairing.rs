//! Gap between matching and exhaustive search, and the part of the model in it.

use super::super::symbiosis::training::{StackSplit, TrainingResult, train};
use super::gaps::PolicyGaps;
use crate::simulate::part_error;
use crate::study::StudyError;
use consort_core::matching::{self, GroupRoom, MatchingError, PairCosts};
use consort_core::stats::mean;
use consort_experiment::ExperimentContext;
use rand::SeedableRng;
use rand::seq::index;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

/// Threads on half as many cores.
const THREADS: [usize; 4] = [4, 6, 8, 10];
/// Drawn sets of programs per number of threads.
const DRAWS: usize = 100;
/// Distance between the seeds of parts.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Slowdowns of pairs of programs, by number.
struct TrainedPairSlowdowns {
    programs: usize,
    /// Slowdown of the first beside the second: as measured in training, as predicted.
    slowdowns: BTreeMap<(usize, usize), [f64; 2]>,
}

/// Place of the measured slowdown, and below that of the predicted one.
const TRUTH: usize = 0;
const MODEL: usize = 1;

/// Rows `THREADS/WAY`: the matching by the model, at the model's slowdowns (`own model`) and at the
/// measured ones (`truth`), and the mean over all pairings (`any pairing`). A gap is that of the
/// sum of slowdowns to the least.
///
/// # Errors
/// Those of the training.
pub(super) fn rows(context: &ExperimentContext<'_>) -> Result<Vec<PolicyGaps>, StudyError> {
    let lesson = train(context, StackSplit::TopLevel)?;
    let pairs = TrainedPairSlowdowns::from_lesson(&lesson);
    let mut rows = Vec::new();
    for threads in THREADS
        .into_iter()
        .filter(|threads| *threads <= pairs.programs)
    {
        let gaps = (0..DRAWS).map(|draw| pairs.gaps(context.seed(), threads, draw));
        let gaps: Vec<[f64; 3]> = gaps.collect::<Result<_, _>>()?;
        for (way, policy) in ["own model", "truth", "any pairing"]
            .into_iter()
            .enumerate()
        {
            rows.push(PolicyGaps {
                group: threads.to_string(),
                policy: policy.to_owned(),
                gaps_percent: gaps.iter().map(|gaps| gaps[way]).collect(),
            });
        }
    }
    Ok(rows)
}

impl TrainedPairSlowdowns {
    fn from_lesson(lesson: &TrainingResult) -> Self {
        let names: Vec<&str> = lesson.set.programs().into_iter().collect();
        let number = |name: &str| names.binary_search(&name).unwrap_or(0);
        let mut sums: BTreeMap<(usize, usize), [f64; 3]> = BTreeMap::new();
        for row in &lesson.set.rows {
            let Some(other) = row.co_runners.first() else {
                continue;
            };
            let sum = sums
                .entry((number(&row.program), number(other)))
                .or_default();
            sum[TRUTH] += row.slowdown();
            sum[MODEL] += lesson.fit.level.slowdown(&row.own, &row.others);
            sum[2] += 1.0;
        }
        let average = |[truth, model, count]: [f64; 3]| [truth / count, model / count];
        Self {
            programs: names.len(),
            slowdowns: sums
                .into_iter()
                .map(|(pair, sum)| (pair, average(sum)))
                .collect(),
        }
    }

    fn cost(&self, kind: usize, first: usize, second: usize) -> f64 {
        let of = |pair| self.slowdowns.get(&pair).map_or(1.0, |both| both[kind]);
        of((first, second)) + of((second, first))
    }

    /// The gaps of one draw, percent, in the order of rows.
    fn gaps(&self, seed: u64, threads: usize, draw: usize) -> Result<[f64; 3], StudyError> {
        let stream = STRIDE.wrapping_mul((threads * DRAWS + draw) as u64);
        let mut random = Pcg64::seed_from_u64(seed ^ stream);
        let members = index::sample(&mut random, self.programs, threads).into_vec();
        let drawn = DrawnPrograms {
            pairs: self,
            members,
        };
        drawn.gaps().map_err(part_error("matching"))
    }
}

/// Programs that were drawn.
struct DrawnPrograms<'a> {
    pairs: &'a TrainedPairSlowdowns,
    /// Numbers of the programs.
    members: Vec<usize>,
}

impl DrawnPrograms<'_> {
    fn gaps(&self) -> Result<[f64; 3], MatchingError> {
        let chosen = self.matched()?;
        let over = |cost: f64, least: f64| 100.0 * (cost / least - 1.0);
        let (by_model, by_truth) = (self.least(MODEL)?, self.least(TRUTH)?);
        Ok([
            over(self.total(MODEL, &chosen), by_model),
            over(self.total(TRUTH, &chosen), by_truth),
            over(self.on_average(TRUTH)?, by_truth),
        ])
    }

    /// Shape of the machine: pairs fill the cores.
    fn shape(&self) -> GroupRoom {
        GroupRoom {
            cores: self.members.len() / 2,
            ways: 2,
            swaps: 0,
        }
    }

    fn cost(&self, kind: usize, pair: &[usize]) -> f64 {
        match pair {
            [first, second] => self
                .pairs
                .cost(kind, self.members[*first], self.members[*second]),
            alone => alone.len() as f64,
        }
    }

    fn total(&self, kind: usize, pairs: &[Vec<usize>]) -> f64 {
        pairs.iter().map(|pair| self.cost(kind, pair)).sum()
    }

    fn least(&self, kind: usize) -> Result<f64, MatchingError> {
        let cost = |pair: &[usize]| self.cost(kind, pair);
        Ok(matching::exhaustive_grouping(self.members.len(), self.shape(), cost)?.cost)
    }

    fn on_average(&self, kind: usize) -> Result<f64, MatchingError> {
        let mut all = Vec::new();
        let visit = |pairs: &[Vec<usize>]| all.push(self.total(kind, pairs));
        matching::visit_partitions(self.members.len(), self.shape(), visit)?;
        Ok(mean(&all).unwrap_or(f64::NAN))
    }

    /// The pairs that the policy's matching takes, by the model.
    fn matched(&self) -> Result<Vec<Vec<usize>>, MatchingError> {
        let costs = PairCosts::from_fn(self.members.len(), |i, j| self.cost(MODEL, &[i, j]))?;
        let alone = vec![1.0; self.members.len()];
        let pairing = matching::pairs(&costs, &alone, self.shape().cores)?;
        let pair = |(first, second)| std::iter::once(first).chain(second).collect();
        Ok(pairing.pairs.into_iter().map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> TrainedPairSlowdowns {
        // Programs 0 and 1 suit each other by the model; by the truth 0 and 2 do.
        let mut slowdowns = BTreeMap::new();
        for i in 0..4 {
            for j in 0..4 {
                let truth = if i + j == 2 || i + j == 4 { 1.1 } else { 1.5 };
                let model = if i + j == 1 || i + j == 5 { 1.1 } else { 1.5 };
                slowdowns.insert((i, j), [truth, model]);
            }
        }
        TrainedPairSlowdowns {
            programs: 4,
            slowdowns,
        }
    }

    #[test]
    fn matching_is_exact_by_its_model_and_pays_for_its_errors() {
        let [own, truth, any] = pairs().gaps(1, 4, 0).unwrap();
        assert!(own.abs() < 1e-9, "{own}");
        assert!((truth - 100.0 * (1.5 / 1.1 - 1.0)).abs() < 1e-9, "{truth}");
        assert!(any > 0.0 && any < truth, "{any}");
    }
}
