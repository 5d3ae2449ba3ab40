//! Policies against every placement, with the same seeds.

use super::placements::{GROUNDS, OptimalityCase, STAYING, place};
use super::{PolicyGaps, gap_figure, gap_table, list_gaps, missing_percent};
use crate::simulate::case::PreparedCase;
use crate::simulate::{RunMeasurements, map_jobs, seeds};
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::mean;
use consort_experiment::ExperimentContext;

/// Halvings that find the level of [`shared_speed`] to the last bits of a number.
const HALVINGS: u32 = 60;

/// One workload.
struct SearchedWorkload {
    /// The thread of each CPU, by placement.
    placements: Vec<Vec<usize>>,
    /// Runs by placement.
    placed: Vec<Vec<RunMeasurements>>,
    /// Runs by policy.
    policies: Vec<Vec<RunMeasurements>>,
}

/// All workloads of a ground.
struct PlacementSearches<'a> {
    ground: &'a OptimalityCase,
    searched: Vec<SearchedWorkload>,
}

/// Adds tables, figures and notes of all grounds: gaps in throughput, and with a large core also
/// gaps in speed until all are done, to placements and to the best sharing of that core by time.
pub(super) fn add_placements(
    context: &ExperimentContext<'_>,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let runs = output.runs;
    let all = GROUNDS.iter();
    let all = all.map(|ground| PlacementSearches::run(ground, runs, context));
    let all: Vec<PlacementSearches<'_>> = all.collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for searches in &all {
        let (key, title) = (searches.ground.key, searches.ground.title);
        let throughput = searches.against_placements(|outcome| outcome.stp);
        let counts = searches.searched.iter();
        let counts: Vec<f64> = counts.map(|one| one.placed.len() as f64).collect();
        output.notes.push(format!(
            "{title}: {:.0} placements of each workload. Gap of throughput to the best of them, mean and \
             worst: {}.",
            mean(&counts).unwrap_or(0.0),
            list_gaps(&throughput),
        ));
        output.figures.push(gap_figure(
            &format!("throughput-{key}"),
            &format!("{title}: throughput missing to the best placement"),
            "Below 0 a policy is better than every placement.",
            runs,
            &throughput,
        )?);
        rows.extend(throughput);
    }
    output.notes.push(
        "The best placement is the one whose runs have the best mean, so it is the best of several \
         noisy means and a little better than it would be in other runs; a policy that finds it \
         and stays there has a gap of about 0 all the same, for it runs with the same seeds. A \
         policy that moves threads while programs go through their phases, or shares a core by \
         time, can be better than every placement: its gap is then below 0."
            .to_owned(),
    );
    let title = "Throughput missing to the best placement, over workloads";
    output.tables.push(gap_table("throughput", title, &rows)?);
    for searches in all.iter().filter(|one| one.ground.has_large_core()) {
        let (speed, shared) = (
            searches.against_placements(speed),
            searches.against_sharing(),
        );
        let title = "Speed until all are done missing to the best placement, over workloads";
        output.tables.push(gap_table("speed", title, &speed)?);
        let title = "Speed until all are done missing to the best sharing by time, over workloads";
        output.tables.push(gap_table("shared", title, &shared)?);
        output.figures.push(gap_figure(
            "shared",
            "Speed until all are done missing to the best sharing of the large core by time",
            "The best sharing has no costs of moves.",
            runs,
            &shared,
        )?);
        output.notes.push(format!(
            "One large core: behind the placement under which all are done soonest: {}. Behind the best \
             schedule that shares the large core by time, moves for nothing: {}. Round robin gives every \
             thread the same share of the large core, where the best schedule gives most to the threads \
             that a small core slows down most, and it pays for its moves; pie goes for throughput, and a \
             thread that it leaves on a small core is done late. These programs do not enter the kernel, so kuths \
             decides as hrrs does.",
            list_gaps(&speed),
            list_gaps(&shared),
        ));
    }
    Ok(())
}

/// Time of a program's work alone over the time until all are done. All take the same time alone.
fn speed(outcome: &RunMeasurements) -> f64 {
    1.0 / outcome.slowdowns.iter().copied().fold(0.0, f64::max)
}

/// Mean of a value over runs.
fn average(outcomes: &[RunMeasurements], value: impl Fn(&RunMeasurements) -> f64) -> f64 {
    let values: Vec<f64> = outcomes.iter().map(value).collect();
    mean(&values).unwrap_or(f64::NAN)
}

impl<'a> PlacementSearches<'a> {
    /// Runs every placement and every policy on every workload.
    fn run(
        ground: &'a OptimalityCase,
        runs: usize,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, StudyError> {
        // All runs of a ground are jobs of one call, so that workers are busy until its end.
        let mut jobs: Vec<(PreparedCase, &str)> = Vec::new();
        let mut all = Vec::new();
        for case in ground.workloads(context)? {
            let placements = ground.placements(&case)?;
            jobs.extend(placements.iter().map(|one| (place(&case, one), STAYING)));
            jobs.extend(ground.policies.iter().map(|policy| (case.clone(), *policy)));
            all.push(placements);
        }
        let outcomes = map_jobs(context, &jobs, |(case, policy)| {
            let seeds = seeds(context.seed(), runs);
            seeds
                .map(|seed| case.run(policy, seed))
                .collect::<Result<Vec<_>, _>>()
        })?;
        let mut outcomes = outcomes.into_iter();
        let searched = all.into_iter().map(|placements| SearchedWorkload {
            placed: outcomes.by_ref().take(placements.len()).collect(),
            policies: outcomes.by_ref().take(ground.policies.len()).collect(),
            placements,
        });
        let searched = searched.collect();
        Ok(Self { ground, searched })
    }

    /// Gaps of policies to the best placement by a value, and those of all placements on average
    /// (of choosing one blindly) and of the worst.
    fn against_placements(&self, value: fn(&RunMeasurements) -> f64) -> Vec<PolicyGaps> {
        let values: Vec<Vec<f64>> = self.searched.iter().map(|one| one.values(value)).collect();
        let bests: Vec<f64> = values.iter().map(|values| largest(values)).collect();
        let smallest = |values: &Vec<f64>| values.iter().copied().fold(f64::INFINITY, f64::min);
        let any = values.iter().map(|values| mean(values).unwrap_or(f64::NAN));
        let mut rows = self.policy_rows(value, &bests);
        rows.push(self.row("any placement", &bests, any));
        rows.push(self.row("worst placement", &bests, values.iter().map(smallest)));
        rows
    }

    /// Gaps of policies in speed to the best schedule that shares the first core by time, at the
    /// speeds that each thread has in the placements.
    fn against_sharing(&self) -> Vec<PolicyGaps> {
        let bounds = self.searched.iter().map(|one| {
            let threads = 0..one.placements.first().map_or(0, Vec::len);
            let (large, small): (Vec<f64>, Vec<f64>) =
                threads.map(|thread| one.thread_speeds(thread)).unzip();
            shared_speed(&large, &small).unwrap_or(f64::NAN)
        });
        let bounds: Vec<f64> = bounds.collect();
        let best = self.searched.iter().map(|one| largest(&one.values(speed)));
        let mut rows = self.policy_rows(speed, &bounds);
        rows.push(self.row("best placement", &bounds, best));
        rows
    }

    fn policy_rows(&self, value: fn(&RunMeasurements) -> f64, bests: &[f64]) -> Vec<PolicyGaps> {
        let policies = self.ground.policies.iter().enumerate();
        let row = |(n, policy): (usize, &&str)| {
            let values = self
                .searched
                .iter()
                .map(|one| average(&one.policies[n], value));
            self.row(policy, bests, values)
        };
        policies.map(row).collect()
    }

    /// The gaps of values, one for each workload, to the best.
    fn row(&self, policy: &str, bests: &[f64], values: impl Iterator<Item = f64>) -> PolicyGaps {
        let gaps = values
            .zip(bests)
            .map(|(value, best)| missing_percent(value, *best));
        PolicyGaps::new(self.ground.key, policy, gaps)
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

impl SearchedWorkload {
    /// Means of a value by placement.
    fn values(&self, value: fn(&RunMeasurements) -> f64) -> Vec<f64> {
        let placed = self.placed.iter();
        placed.map(|outcomes| average(outcomes, value)).collect()
    }

    /// A thread's speed on the first core, and on the others on average, over its speed alone.
    fn thread_speeds(&self, thread: usize) -> (f64, f64) {
        let mut on: [Vec<f64>; 2] = Default::default();
        for (placement, outcomes) in self.placements.iter().zip(&self.placed) {
            let pu = placement.iter().position(|&t| t == thread).unwrap_or(0);
            // CPU 0 is the large core, all others are small.
            on[pu.min(1)].push(1.0 / average(outcomes, |o| o.slowdowns[pu]));
        }
        let [large, small] = on.map(|speeds| mean(&speeds).unwrap_or(f64::NAN));
        (large, small)
    }
}

/// The largest speed that all threads can have at once if they share one large core by time, from
/// their speeds on the large core and on a small one, as shares of their speed alone; `None`
/// without threads.
///
/// A schedule gives thread i the large core for the share x_i of the time, Σ x_i ≤ 1, and small
/// ones are there for all others. The slowest thread's speed is s_i + x_i·(l_i − s_i); its maximum
/// over all schedules is where all that get the large core at all are equally fast: shares are
/// filled up to one level, as water is. Work over this speed is the least time in which all are
/// done, since a schedule of the shares needs no idle time (a special case of McNaughton's rule,
/// Management Science 6(1), 1959). The cost of moves is left out, so it is a bound.
fn shared_speed(large: &[f64], small: &[f64]) -> Option<f64> {
    let needed = |level: f64| -> f64 {
        let share = |(large, small): (&f64, &f64)| {
            if level <= *small {
                0.0
            } else if large > small {
                (level - small) / (large - small)
            } else {
                f64::INFINITY
            }
        };
        large.iter().zip(small).map(share).sum()
    };
    let mut low = small.iter().copied().reduce(f64::min)?;
    let mut high = large.iter().copied().fold(low, f64::max);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if needed(middle) <= 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_speeds_are_found() {
        let check = |large: &[f64], small: &[f64], expect: f64| {
            let got = shared_speed(large, small).unwrap();
            assert!((got - expect).abs() < 1e-12, "{got} is not {expect}");
        };
        // Equal threads share alike: 0.5 + 0.5 / 4.
        check(&[1.0; 4], &[0.5; 4], 0.625);
        // Only the slower two need it: 0.2 + 0.8 / 2 = 0.6.
        check(&[1.0; 4], &[0.2, 0.2, 0.7, 0.9], 0.6);
        // A thread that gains nothing holds all back.
        check(&[1.0, 0.3], &[0.5, 0.3], 0.3);
        assert_eq!(shared_speed(&[], &[]), None);
    }

    proptest! {
        #[test]
        fn no_shares_make_the_slowest_faster(
            threads in prop::collection::vec((0.05f64..0.9, 0.0f64..0.5, 0.0f64..1.0), 2..6),
        ) {
            let small: Vec<f64> = threads.iter().map(|t| t.0).collect();
            let large: Vec<f64> = threads.iter().map(|t| t.0 + t.1).collect();
            let best = shared_speed(&large, &small).unwrap();
            let total: f64 = threads.iter().map(|t| t.2).sum();
            let speeds = threads.iter().map(|t| t.0 + t.1 * t.2 / total.max(1e-9));
            let slowest = speeds.fold(f64::INFINITY, f64::min);
            prop_assert!(slowest <= best + 1e-9, "{slowest} is more than {best}");
        }
    }
}
