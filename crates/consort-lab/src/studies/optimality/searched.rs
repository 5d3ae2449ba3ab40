//! A ground with all its placements and policies run.

use super::gaps::{PolicyGaps, missing_percent};
use super::ground::OptimalityCase;
use super::share::level;
use super::statics::{PlacementRuns, average, cases, placements, run};
use crate::simulate::case::PreparedCase;
use crate::simulate::{RunMeasurements, map_jobs, seeds};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;

/// The row of the mean over all placements: of choosing one blindly.
const ANY: &str = "any placement";
/// The row of the worst placement.
const WORST: &str = "worst placement";
/// The row of the best placement.
const BEST: &str = "best placement";

/// One workload.
struct SearchedWorkload {
    placed: Vec<PlacementRuns>,
    /// Outcomes by policy, then run.
    policies: Vec<Vec<RunMeasurements>>,
}

/// All workloads of a ground.
pub(super) struct PlacementSearches<'a> {
    pub ground: &'a OptimalityCase,
    searched: Vec<SearchedWorkload>,
}

/// Contender of a run.
enum SearchContender<'a> {
    Placement(&'a [usize]),
    Policy(&'static str),
}

/// Runs every placement and every policy on every workload, with the same seeds.
///
/// # Errors
/// What fails in a run.
pub(super) fn search<'a>(
    ground: &'a OptimalityCase,
    runs: usize,
    context: &ExperimentContext<'_>,
) -> Result<PlacementSearches<'a>, StudyError> {
    let cases = cases(ground, context)?;
    let all = cases.iter().map(|case| placements(ground, case));
    let all: Vec<Vec<Vec<usize>>> = all.collect::<Result<_, _>>()?;
    let mut jobs: Vec<(&PreparedCase, SearchContender<'_>)> = Vec::new();
    for (case, placements) in cases.iter().zip(&all) {
        let placed = placements
            .iter()
            .map(|placement| SearchContender::Placement(placement));
        let policies = ground
            .policies
            .iter()
            .map(|&policy| SearchContender::Policy(policy));
        jobs.extend(placed.chain(policies).map(|who| (case, who)));
    }
    let outcomes = map_jobs(context, &jobs, |(case, who)| {
        outcomes(case, who, runs, context.seed())
    })?;
    let mut outcomes = outcomes.into_iter();
    let searched = all.into_iter().map(|placements| SearchedWorkload {
        placed: { placements.into_iter().zip(outcomes.by_ref()) }
            .map(|(placement, outcomes)| PlacementRuns {
                placement,
                outcomes,
            })
            .collect(),
        policies: outcomes.by_ref().take(ground.policies.len()).collect(),
    });
    let searched = searched.collect();
    Ok(PlacementSearches { ground, searched })
}

fn outcomes(
    case: &PreparedCase,
    who: &SearchContender<'_>,
    runs: usize,
    seed: u64,
) -> Result<Vec<RunMeasurements>, StudyError> {
    let one = |seed| match who {
        SearchContender::Placement(placement) => run(case, placement, seed),
        SearchContender::Policy(policy) => case.run(policy, seed),
    };
    seeds(seed, runs).map(one).collect()
}

/// Time of a program's work alone over the time until all are done. All take the same time alone.
fn speed(outcome: &RunMeasurements) -> f64 {
    1.0 / outcome.slowdowns.iter().copied().fold(0.0, f64::max)
}

impl PlacementSearches<'_> {
    /// Placements that were searched per workload, on average.
    pub fn placements(&self) -> f64 {
        let counts: Vec<f64> = self
            .searched
            .iter()
            .map(|one| one.placed.len() as f64)
            .collect();
        consort_core::stats::mean(&counts).unwrap_or(0.0)
    }

    /// Gaps of policies in throughput to the best placement.
    pub fn throughput(&self) -> Vec<PolicyGaps> {
        self.against_static(|outcome| outcome.stp)
    }

    /// Gaps of policies in speed to the placement under which all are done soonest.
    pub fn speed(&self) -> Vec<PolicyGaps> {
        self.against_static(speed)
    }

    /// Gaps of policies in speed to the best schedule that shares the first core by time, at the
    /// speeds that each thread has in the placements.
    pub fn shared(&self) -> Vec<PolicyGaps> {
        let bounds: Vec<f64> = self
            .searched
            .iter()
            .map(SearchedWorkload::shared_speed)
            .collect();
        let best = |one: &SearchedWorkload| one.best(speed);
        let mut rows = self.policy_rows(speed, &bounds);
        rows.push(self.row(BEST, &bounds, best));
        rows
    }

    fn against_static(&self, value: fn(&RunMeasurements) -> f64) -> Vec<PolicyGaps> {
        let bests: Vec<f64> = self.searched.iter().map(|one| one.best(value)).collect();
        let mut rows = self.policy_rows(value, &bests);
        rows.push(self.row(ANY, &bests, |one| one.any(value)));
        rows.push(self.row(WORST, &bests, |one| one.worst(value)));
        rows
    }

    fn policy_rows(&self, value: fn(&RunMeasurements) -> f64, bests: &[f64]) -> Vec<PolicyGaps> {
        let row = |(number, policy): (usize, &&str)| {
            self.row(policy, bests, |one| average(&one.policies[number], value))
        };
        self.ground.policies.iter().enumerate().map(row).collect()
    }

    fn row(
        &self,
        policy: &str,
        bests: &[f64],
        of: impl Fn(&SearchedWorkload) -> f64,
    ) -> PolicyGaps {
        let gaps = self.searched.iter().zip(bests);
        PolicyGaps {
            group: self.ground.key.to_owned(),
            policy: policy.to_owned(),
            gaps_percent: gaps
                .map(|(one, best)| missing_percent(of(one), *best))
                .collect(),
        }
    }
}

impl SearchedWorkload {
    fn values(&self, value: fn(&RunMeasurements) -> f64) -> impl Iterator<Item = f64> {
        self.placed
            .iter()
            .map(move |placed| average(&placed.outcomes, value))
    }

    fn best(&self, value: fn(&RunMeasurements) -> f64) -> f64 {
        self.values(value).fold(f64::NEG_INFINITY, f64::max)
    }

    fn worst(&self, value: fn(&RunMeasurements) -> f64) -> f64 {
        self.values(value).fold(f64::INFINITY, f64::min)
    }

    fn any(&self, value: fn(&RunMeasurements) -> f64) -> f64 {
        let all: Vec<f64> = self.values(value).collect();
        consort_core::stats::mean(&all).unwrap_or(f64::NAN)
    }

    /// The largest speed of all together with the first core shared by time.
    fn shared_speed(&self) -> f64 {
        let threads = self
            .placed
            .first()
            .map_or(0, |placed| placed.placement.len());
        let speeds = |thread| self.speeds(thread);
        let (large, small): (Vec<f64>, Vec<f64>) = (0..threads).map(speeds).unzip();
        level(&large, &small).unwrap_or(f64::NAN)
    }

    /// A thread's speed on the first core, and on the others on average, over its speed alone.
    fn speeds(&self, thread: usize) -> (f64, f64) {
        let mut on: [Vec<f64>; 2] = Default::default();
        for placed in &self.placed {
            let pu = placed
                .placement
                .iter()
                .position(|&t| t == thread)
                .unwrap_or(0);
            on[pu.min(1)].push(1.0 / average(&placed.outcomes, |o| o.slowdowns[pu]));
        }
        let [large, small] = on.map(|speeds| consort_core::stats::mean(&speeds));
        (large.unwrap_or(f64::NAN), small.unwrap_or(f64::NAN))
    }
}
