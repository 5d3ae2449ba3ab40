//! One run of a case.

use super::case::{PreparedOccupancyCase, RunMethod};
use crate::study::StudyError;
use consort_experiment::watch::{FpuUse, FpuWatch};
use consort_experiment::{Contender, ExperimentError, RunOptions, RunResult};
use consort_sim::engine::RunMode;

/// Results of one run.
pub(super) struct OccupancyOutcome {
    pub(super) result: RunResult,
    pub(super) fpu: FpuUse,
}

/// Runs a case by a method under a policy with a seed.
pub(super) fn outcome(
    case: &PreparedOccupancyCase,
    method: RunMethod,
    (policy, seed): (&str, u64),
    watch: &FpuWatch,
) -> Result<OccupancyOutcome, StudyError> {
    let run = || -> Result<OccupancyOutcome, ExperimentError> {
        let contender = Contender::new(policy, "linux")?;
        let (experiment, work) = case.setup(method, seed);
        let observer = Some(Box::new(watch.clone()) as _);
        let options = RunOptions {
            mode: match method {
                RunMethod::Once(_) => RunMode::Once,
                RunMethod::Equal => RunMode::RestartUntilAllDone,
            },
            observer,
            listener: None,
        };
        let result = experiment.run_with(&contender, &work, seed, options)?;
        let fpu = watch.finish();
        Ok(OccupancyOutcome { result, fpu })
    };
    run().map_err(|error| StudyError::part(format!("{} under {policy}", case.key), error))
}
