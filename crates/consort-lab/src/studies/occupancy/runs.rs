//! One run of a case.

use super::case::{Method, Prepared};
use crate::study::StudyError;
use consort_experiment::watch::{FpuUse, FpuWatch};
use consort_experiment::{Contender, ExperimentError, RunResult};

/// Results of one run.
pub(super) struct Outcome {
    pub(super) result: RunResult,
    pub(super) fpu: FpuUse,
}

/// Runs a case by a method under a policy with a seed.
pub(super) fn outcome(
    case: &Prepared,
    method: Method,
    (policy, seed): (&str, u64),
    watch: &FpuWatch,
) -> Result<Outcome, StudyError> {
    let run = || -> Result<Outcome, ExperimentError> {
        let contender = Contender::new(policy, "linux")?;
        let (experiment, work) = case.setup(method, seed);
        let observer = Some(Box::new(watch.clone()) as _);
        let result = match method {
            Method::Once(_) => experiment.run_once(&contender, &work, seed, observer)?,
            Method::Equal => experiment.run(&contender, &work, seed, observer)?,
        };
        let fpu = watch.finish();
        Ok(Outcome { result, fpu })
    };
    run().map_err(|error| StudyError::part(format!("{} under {policy}", case.key), error))
}
