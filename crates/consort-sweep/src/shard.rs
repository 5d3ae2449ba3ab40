//! Running one shard.

use super::cases::SweepCase;
use super::error::SweepError;
use super::units::Sweep;
use consort_data::Table;
use consort_experiment::Scale;
use consort_experiment::{Contender, ExperimentError, RunResult};
use consort_experiment::{ExperimentContext, StageProgress};
use consort_lab::{long, runner};
use std::num::NonZeroUsize;
use std::ops::Range;

/// Runs units and gives their tables, in their order.
pub(super) fn run(
    sweep: &Sweep,
    units: Range<usize>,
    workers: NonZeroUsize,
    progress: &(dyn Fn(StageProgress) + Sync),
) -> Result<Vec<Table>, SweepError> {
    if !sweep.studies.is_empty() {
        let settings = sweep.settings(workers);
        let tables = sweep.studies[units].iter().map(|study| {
            let outcome = runner::run(&**study, &settings, None, progress)?;
            Ok(long::study_to_long_table(&outcome.into_report()))
        });
        return tables.collect();
    }
    let context = ExperimentContext::new(sweep.spec.first_seed(), Scale::Full, workers, progress);
    let cases = sweep.cases_in(units).into_iter();
    let tables = cases.map(|(case, part)| {
        let case = sweep.cases.get(case)?;
        let runs = run_case(sweep, &case, part, &context)?;
        Ok(consort_experiment::long::long_table(&case.key, &runs))
    });
    tables.collect()
}

/// The runs of one case, as `consort compare` makes them: programs have the work that they do alone
/// under the first seed.
fn run_case(
    sweep: &Sweep,
    case: &SweepCase,
    units: Range<usize>,
    context: &ExperimentContext<'_>,
) -> Result<Vec<RunResult>, ExperimentError> {
    let experiment = &case.experiment;
    let wanted: Vec<(usize, u64)> = units.map(|unit| sweep.locate_unit(unit)).collect();
    let ready = |(n, contender): (usize, &Contender)| match wanted.iter().any(|(p, _)| *p == n) {
        true => contender.prepare(&experiment.chip, &experiment.workload, context),
        false => Ok(contender.clone()),
    };
    let contenders = sweep.contenders.iter().enumerate().map(ready);
    let contenders: Vec<Contender> = contenders.collect::<Result<_, _>>()?;
    let work = experiment.measure_work(context.seed())?;
    let run =
        |&(policy, seed): &(usize, u64)| experiment.run(&contenders[policy], &work, seed, None);
    context.map(&wanted, run)?.into_iter().collect()
}
