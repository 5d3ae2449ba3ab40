//! Every case under every policy, once per seed.

use super::case::{Method, Prepared};
use super::fpu::{FpuUse, FpuWatch};
use super::{Measured, Policy};
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
    method: Method,
    policy: &'static Policy,
    seed: u64,
}

/// Runs every case by a method; the same seeds serve every policy.
pub(super) fn outcomes<'a>(
    cases: &[&'a Prepared],
    method: Method,
    runs: usize,
    context: &Context<'_>,
) -> Result<Vec<Measured<'a>>, StudyError> {
    let seeds = 0..runs as u64;
    let job = |case: &'a Prepared, policy, run| Job {
        case,
        method,
        policy,
        seed: context.seed().wrapping_add(run),
    };
    let of_case = |case: &&'a Prepared| {
        let each = case.policies().iter();
        each.flat_map(|policy| seeds.clone().map(|run| job(case, policy, run)))
            .collect::<Vec<_>>()
    };
    let jobs: Vec<Job<'a>> = cases.iter().flat_map(of_case).collect();
    let mut outcomes = context.map(&jobs, outcome)?.into_iter();
    cases
        .iter()
        .map(|case| measured(case, runs, &mut outcomes))
        .collect()
}

fn measured<'a>(
    case: &'a Prepared,
    runs: usize,
    outcomes: &mut impl Iterator<Item = Result<Outcome, StudyError>>,
) -> Result<Measured<'a>, StudyError> {
    let policies = case.policies().iter();
    let runs = policies
        .map(|_| outcomes.by_ref().take(runs).collect())
        .collect::<Result<_, _>>()?;
    Ok(Measured { case, runs })
}

fn outcome(job: &Job<'_>) -> Result<Outcome, StudyError> {
    watched(job).map_err(|error| {
        let part = format!("{} under {}", job.case.key, job.policy.name);
        StudyError::part(part, error)
    })
}

fn watched(job: &Job<'_>) -> Result<Outcome, ExperimentError> {
    let contender = Contender::new(job.policy.contender, "linux")?;
    let (experiment, work) = job.case.setup(job.method, job.seed);
    let watch = FpuWatch::new(&job.case.chip);
    let observer = Some(Box::new(watch.clone()) as _);
    let result = match job.method {
        Method::Once(_) => experiment.run_once(&contender, &work, job.seed, observer)?,
        Method::Equal => experiment.run(&contender, &work, job.seed, observer)?,
    };
    let fpu = watch.finish();
    Ok(Outcome { result, fpu })
}
