//! Gaps between the searches for groups of threads and exhaustive search, without runs.

use super::super::symbiosis::training::{StackSplit, TrainingResult, train};
use super::{PolicyGaps, gap_figure, gap_table, join_texts, list_gaps};
use crate::simulate::mixes::draw_mixes;
use crate::simulate::programs::suite;
use crate::simulate::{map_jobs, part_error};
use crate::study::{StudyError, StudyOutput};
use consort_core::matching::{self, GroupRoom, MatchingError, PairCosts};
use consort_core::stats::{mean, pearson};
use consort_experiment::{ExperimentContext, GroupSlowdowns};
use consort_sim::chip::Chip;
use consort_sim::contention::Demand;
use consort_sim::machine::presets;
use consort_sim::phase::Phase;
use consort_sim::workload::Workload;
use rand::SeedableRng;
use rand::seq::index;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Threads in pairs, on half as many cores.
const THREADS: [usize; 4] = [4, 6, 8, 10];
/// Drawn sets of programs per number of threads.
const PAIR_DRAWS: usize = 100;
/// Distance between the seeds of parts.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;
/// Machine of groups of four.
const MACHINE: &str = "power8";
/// Threads per core in groups of four.
const WAYS: usize = 4;
/// Cores that are filled with groups of four.
const CORES: [usize; 2] = [2, 3];
/// Draws of programs for groups of four, at the quick and the full scale.
const DRAWS: [usize; 2] = [4, 40];
/// Swaps that the search tries per thread, as for `oracle`.
const SWAPS_PER_THREAD: usize = 50;

/// Slowdowns of pairs of programs, by number.
struct TrainedPairSlowdowns {
    programs: usize,
    /// Slowdown of the first with the second as its co-runner: as measured in training, as predicted.
    slowdowns: BTreeMap<(usize, usize), [f64; 2]>,
}

/// Place of the measured slowdown, and of the predicted one.
const TRUTH: usize = 0;
const MODEL: usize = 1;

/// Adds the matching by the trained model, at the model's slowdowns (`own model`) and at the
/// measured ones (`truth`), and the mean over all pairings (`any pairing`). A gap is that of the sum
/// of slowdowns to the least.
pub(super) fn add_pairs(
    context: &ExperimentContext<'_>,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let training = train(context, StackSplit::TopLevel)?;
    let pairs = TrainedPairSlowdowns::new(&training);
    let ways = ["own model", "truth", "any pairing"];
    let mut rows = Vec::new();
    for threads in THREADS {
        if threads > pairs.programs {
            continue;
        }
        let gaps = (0..PAIR_DRAWS).map(|draw| pairs.gaps(context.seed(), threads, draw));
        let gaps: Vec<[f64; 3]> =
            { gaps.collect::<Result<_, _>>() }.map_err(part_error("matching"))?;
        for (n, way) in ways.into_iter().enumerate() {
            let of_way = gaps.iter().map(|gaps| gaps[n]);
            rows.push(PolicyGaps::new(&threads.to_string(), way, of_way));
        }
    }
    let [own, truth, any] = ways.map(|way| {
        let of_way = rows.iter().filter(|row| row.policy == way);
        let texts = of_way.map(|row| {
            let (mean, worst) = (row.mean_percent(), row.worst_percent());
            format!("{mean:.3} and {worst:.3} % ({})", row.group)
        });
        texts.collect::<Vec<_>>().join(", ")
    });
    output.notes.push(format!(
        "Pairs on a POWER8 in SMT2, mean and worst gap of the sum of slowdowns for so many threads. \
         By the model's own predictions matching leaves {own}: it is exact. At the slowdowns that \
         were measured its pairs cost {truth} more than the best pairs; that is what errors of the model \
         cost. All pairings on average: {any}.",
    ));
    let [measured, predicted] = [TRUTH, MODEL].map(|kind| pairs.interactions(kind));
    let both: Vec<(f64, f64)> = measured.iter().copied().zip(predicted.clone()).collect();
    output.notes.push(format!(
        "A pairing decides only over what remains of the slowdowns of pairs after a part for each \
         program, since each program is in one pair, whichever it is. That remainder has a standard \
         deviation of {:.3} as measured and of {:.3} as predicted, and the two have a correlation of \
         {:.2} over {} pairs. The model multiplies shares of the same component, and what one \
         program's misses do to another's cached data is in no share that either has alone; the \
         correction factor of the policy, which is not used here, learns it pair by pair.",
        deviation(&measured),
        deviation(&predicted),
        pearson(&both).unwrap_or(0.0),
        measured.len(),
    ));
    let title = "Sum of slowdowns over that of the best pairing, by number of threads";
    output.tables.push(gap_table("pairing", title, &rows)?);
    let largest = rows.last().map(|row| row.group.clone()).unwrap_or_default();
    output.figures.push(gap_figure(
        "pairing",
        &format!("{largest} threads in pairs: sum of slowdowns over the least"),
        "Pairs of the matching, and all pairings on average.",
        0,
        rows.iter().filter(|row| row.group == largest),
    )?);
    Ok(())
}

impl TrainedPairSlowdowns {
    fn new(training: &TrainingResult) -> Self {
        let names: Vec<&str> = training.set.programs().into_iter().collect();
        let number = |name: &str| names.binary_search(&name).unwrap_or(0);
        let mut sums: BTreeMap<(usize, usize), [f64; 3]> = BTreeMap::new();
        for row in &training.set.rows {
            let Some(other) = row.co_runners.first() else {
                continue;
            };
            let pair = (number(&row.program), number(other));
            let sum = sums.entry(pair).or_default();
            sum[TRUTH] += row.slowdown();
            sum[MODEL] += training.fit.level.slowdown(&row.own, &row.others);
            sum[2] += 1.0;
        }
        let means = sums.into_iter();
        let means =
            means.map(|(pair, [truth, model, count])| (pair, [truth / count, model / count]));
        Self {
            programs: names.len(),
            slowdowns: means.collect(),
        }
    }

    /// Remainders of the sums of slowdowns of different programs after a part for each of the two, by
    /// least squares.
    fn interactions(&self, kind: usize) -> Vec<f64> {
        let slowdown = |pair| self.slowdowns.get(&pair).map_or(1.0, |both| both[kind]);
        let sum = |a, b| slowdown((a, b)) + slowdown((b, a));
        let n = self.programs;
        let of = |a: usize| -> f64 { (0..n).filter(|&b| b != a).map(|b| sum(a, b)).sum() };
        let sums: Vec<f64> = (0..n).map(of).collect();
        // The normal equations: (n - 2)·part + sum of all parts = sum of the program's pairs.
        let all = sums.iter().sum::<f64>() / (2.0 * (n as f64 - 1.0));
        let part = |a: usize| (sums[a] - all) / (n as f64 - 2.0);
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        pairs.map(|(a, b)| sum(a, b) - part(a) - part(b)).collect()
    }

    /// The gaps of one draw, percent, in the order of rows.
    fn gaps(&self, seed: u64, threads: usize, draw: usize) -> Result<[f64; 3], MatchingError> {
        let stream = STRIDE.wrapping_mul((threads * PAIR_DRAWS + draw) as u64);
        let mut random = Pcg64::seed_from_u64(seed ^ stream);
        let members = index::sample(&mut random, self.programs, threads).into_vec();
        let cost = |kind: usize, pair: &[usize]| match *pair {
            [first, second] => {
                let (first, second) = (members[first], members[second]);
                let slowdown = |pair| self.slowdowns.get(&pair).map_or(1.0, |both| both[kind]);
                slowdown((first, second)) + slowdown((second, first))
            }
            ref alone => alone.len() as f64,
        };
        let total =
            |kind, pairs: &[Vec<usize>]| pairs.iter().map(|pair| cost(kind, pair)).sum::<f64>();
        // Pairs fill the cores, so no thread is alone and the costs of threads alone never count.
        let room = GroupRoom {
            cores: threads / 2,
            ways: 2,
            swaps: 0,
        };
        let costs = PairCosts::from_fn(threads, |i, j| cost(MODEL, &[i, j]))?;
        let matched = matching::pairs(&costs, &vec![1.0; threads], room.cores)?.pairs;
        let matched: Vec<Vec<usize>> = { matched.into_iter() }
            .map(|(first, second)| std::iter::once(first).chain(second).collect())
            .collect();
        let [least_by_truth, least_by_model] = [
            matching::exhaustive_grouping(threads, room, |pair| cost(TRUTH, pair))?.cost,
            matching::exhaustive_grouping(threads, room, |pair| cost(MODEL, pair))?.cost,
        ];
        let mut all = Vec::new();
        matching::visit_partitions(threads, room, |pairs| all.push(total(TRUTH, pairs)))?;
        let any = mean(&all).unwrap_or(f64::NAN);
        Ok([
            percent_over(total(MODEL, &matched), least_by_model),
            percent_over(total(TRUTH, &matched), least_by_truth),
            percent_over(any, least_by_truth),
        ])
    }
}

/// Standard deviation of values whose mean is 0.
fn deviation(values: &[f64]) -> f64 {
    let squares = values.iter().map(|value| value * value);
    libm::sqrt(squares.sum::<f64>() / values.len() as f64)
}

fn percent_over(cost: f64, least: f64) -> f64 {
    100.0 * (cost / least - 1.0)
}

/// Adds the search for groups of four, and all groupings on average. Costs are the simulation's
/// own: slowdowns of the contender `oracle`, of each program in its first phase, on one core of a
/// POWER8 in SMT4.
pub(super) fn add_fours(
    context: &ExperimentContext<'_>,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let rows = four_rows(context)?;
    let each = rows
        .iter()
        .map(|row| format!("{} {}", row.group, list_gaps([row])));
    output.notes.push(format!(
        "Groups of four on a POWER8 in SMT4, by the simulation's own slowdowns, mean and worst gap of \
         their sum: {}.",
        join_texts(each),
    ));
    let title = "Sum of slowdowns in groups of four over that of the best grouping";
    output.tables.push(gap_table("fours", title, &rows)?);
    Ok(())
}

fn four_rows(context: &ExperimentContext<'_>) -> Result<Vec<PolicyGaps>, StudyError> {
    let spec = presets::find(MACHINE).map_err(part_error(MACHINE))?;
    let chip = Arc::new(Chip::new(&spec, Some(WAYS as u32)).map_err(part_error(MACHINE))?);
    let programs = suite("spec2006", usize::MAX)?;
    let draws = context.by_scale(DRAWS[0], DRAWS[1]);
    let mut rows = Vec::new();
    for cores in CORES {
        let drawn = draw_mixes(context.seed(), &programs, (cores * WAYS, 1), draws);
        let gaps = map_jobs(context, &drawn, |workload| {
            four_gaps(&chip, workload, cores).map_err(part_error("groups"))
        })?;
        let group = format!("{} in fours", cores * WAYS);
        for (n, way) in ["search", "any grouping"].into_iter().enumerate() {
            rows.push(PolicyGaps::new(
                &group,
                way,
                gaps.iter().map(|gaps| gaps[n]),
            ));
        }
    }
    Ok(rows)
}

/// The gaps of the search and of all groupings on average, percent.
fn four_gaps(
    chip: &Arc<Chip>,
    workload: &Workload,
    cores: usize,
) -> Result<[f64; 2], MatchingError> {
    let mut demands = Vec::new();
    for (entry, number) in workload.entries.iter().zip(0..) {
        if let Some(phase) = entry.program.phases.first() {
            demands.push(Demand {
                phase: Arc::new(Phase::new(phase)),
                intensity: 1.0,
                program: number,
                text: number,
                shared_data: 0.0,
                shared_code: 0.0,
                lock: None,
                home_node: 0,
            });
        }
    }
    let mut slowdowns = GroupSlowdowns::new(chip);
    let mut cost = |group: &[usize]| -> f64 {
        let members: Vec<&Demand> = group.iter().map(|&thread| &demands[thread]).collect();
        slowdowns.group_slowdowns(&members).iter().sum()
    };
    let threads = demands.len();
    let room = GroupRoom {
        cores,
        ways: WAYS,
        swaps: SWAPS_PER_THREAD * threads,
    };
    let found = matching::group_threads(threads, room, &mut cost)?.cost;
    let least = matching::exhaustive_grouping(threads, room, &mut cost)?.cost;
    let mut all = Vec::new();
    let visit = |groups: &[Vec<usize>]| all.push(groups.iter().map(|g| cost(g)).sum::<f64>());
    matching::visit_partitions(threads, room, visit)?;
    let any = mean(&all).unwrap_or(f64::NAN);
    Ok([percent_over(found, least), percent_over(any, least)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn matching_is_exact_by_its_own_model() {
        // Programs 0 and 1 suit each other by the model; by the truth 0 and 2 do.
        let mut slowdowns = BTreeMap::new();
        for i in 0..4 {
            for j in 0..4 {
                let truth = if i + j == 2 || i + j == 4 { 1.1 } else { 1.5 };
                let model = if i + j == 1 || i + j == 5 { 1.1 } else { 1.5 };
                slowdowns.insert((i, j), [truth, model]);
            }
        }
        let pairs = TrainedPairSlowdowns {
            programs: 4,
            slowdowns,
        };
        let [own, truth, any] = pairs.gaps(1, 4, 0).unwrap();
        assert!(own.abs() < 1e-9, "{own}");
        assert!((truth - 100.0 * (1.5 / 1.1 - 1.0)).abs() < 1e-9, "{truth}");
        assert!(any > 0.0 && any < truth, "{any}");
    }

    #[test]
    fn parts_of_programs_are_no_interaction() {
        let mut slowdowns = BTreeMap::new();
        for i in 0..5_usize {
            for j in 0..5_usize {
                // Parts of victim and aggressor; the model has a bonus for 0 and 1 as well.
                let parts = 1.0 + 0.1 * i as f64 + 0.03 * j as f64;
                let bonus = if i + j == 1 { 0.5 } else { 0.0 };
                slowdowns.insert((i, j), [parts, parts - bonus]);
            }
        }
        let programs = 5;
        let pairs = TrainedPairSlowdowns {
            programs,
            slowdowns,
        };
        let [none, some] = [TRUTH, MODEL].map(|kind| pairs.interactions(kind));
        assert!(none.iter().all(|left| left.abs() < 1e-12), "{none:?}");
        assert!(some.iter().sum::<f64>().abs() < 1e-12, "{some:?}");
        assert!(some[0] < -0.1, "{some:?}");
    }

    #[test]
    fn search_for_fours_never_beats_exhaustive() {
        let context = ExperimentContext::new(3, Scale::Quick, workers(1), &|_| ());
        let rows = four_rows(&context).unwrap();
        assert_eq!(rows.len(), 4);
        for row in &rows {
            assert_eq!(row.gaps_percent.len(), 4);
            assert!(row.gaps_percent.iter().all(|gap| *gap >= -1e-9), "{row:?}");
        }
        // Blind choice costs something, so that there is something to find.
        assert!(rows[1].mean_percent() > rows[0].mean_percent());
    }
}
