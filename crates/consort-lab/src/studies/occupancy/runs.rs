//! Every case under every policy, once per seed.

use super::case::Prepared;
use super::fpu::{FpuUse, FpuWatch};
use super::{Measured, POLICIES};
use crate::context::Context;
use crate::experiment::{Contender, ExperimentError, RunResult};
use crate::study::StudyError;

/// What one run gave.
pub(super) struct Outcome {
    pub(super) result: RunResult,
    pub(super) fpu: FpuUse,
}

struct Job<'a> {
    case: &'a Prepared,
    policy: usize,
    seed: u64,
}

/// Runs every case; the same seeds serve every policy.
pub(super) fn outcomes<'a>(
    cases: &'a [Prepared],
    runs: usize,
    context: &Context<'_>,
) -> Result<Vec<Measured<'a>>, StudyError> {
    let jobs: Vec<Job<'a>> = cases
        .iter()
        .flat_map(|case| jobs(case, runs, context.seed()))
        .collect();
    let outcomes = context.map(&jobs, outcome)?;
    let mut outcomes = outcomes.into_iter();
    cases
        .iter()
        .map(|case| measured(case, runs, &mut outcomes))
        .collect()
}

fn jobs(case: &Prepared, runs: usize, seed: u64) -> impl Iterator<Item = Job<'_>> {
    let each = (0..POLICIES.len()).flat_map(move |p| (0..runs as u64).map(move |run| (p, run)));
    each.map(move |(policy, run)| Job {
        case,
        policy,
        seed: seed.wrapping_add(run),
    })
}

fn measured<'a>(
    case: &'a Prepared,
    runs: usize,
    outcomes: &mut impl Iterator<Item = Result<Outcome, StudyError>>,
) -> Result<Measured<'a>, StudyError> {
    let runs = POLICIES
        .iter()
        .map(|_| outcomes.by_ref().take(runs).collect())
        .collect::<Result<_, _>>()?;
    Ok(Measured { case, runs })
}

fn outcome(job: &Job<'_>) -> Result<Outcome, StudyError> {
    watched(job).map_err(|error| {
        let part = format!("{} under {}", job.case.key, POLICIES[job.policy].name);
        StudyError::part(part, error)
    })
}

fn watched(job: &Job<'_>) -> Result<Outcome, ExperimentError> {
    let contender = Contender::new(POLICIES[job.policy].contender, "linux")?;
    let (experiment, work) = job.case.experiment(job.seed);
    let watch = FpuWatch::new(&job.case.chip);
    let observer = Box::new(watch.clone());
    let result = experiment.run(&contender, &work, job.seed, Some(observer))?;
    let fpu = watch.finish();
    Ok(Outcome { result, fpu })
}
