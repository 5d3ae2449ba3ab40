//! The training of the model, on which S1 to S3 stand.

use super::{QUANTUM, chip, chip_with_causes, part_error, programs};
use crate::simulate::programs::suite;
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::train::collect::{Training, collect};
use consort_experiment::train::{
    FittedLevel, LevelErrors, TrainingSet, cross_validate, errors, fit,
};
use consort_sim::chip::Chip;
use std::sync::Arc;

/// Threads per core.
const WAYS: u32 = 2;
/// Programs, at the quick and the full scale.
const PROGRAMS: [usize; 2] = [8, usize::MAX];
/// Quanta of a run, at the quick and the full scale.
const QUANTA: [usize; 2] = [30, 100];
/// Parts of the programs that are held out in turn.
const FOLDS: usize = 5;
/// Cores of the machine; all but the first are idle.
const CORES: usize = 10;

/// Result of the training.
pub(in crate::studies) struct TrainingResult {
    pub set: TrainingSet,
    pub fit: FittedLevel,
    /// Errors on the programs that it was trained on.
    pub seen: LevelErrors,
    /// Errors on programs that it was not trained on.
    pub held_out: LevelErrors,
    /// Runs of programs together.
    pub runs: usize,
}

/// The training of this context on the top level of the chip's stack, made once.
pub(in crate::studies) fn lesson(
    context: &ExperimentContext<'_>,
) -> Result<Arc<TrainingResult>, StudyError> {
    context.get_or_compute("training of the symbiosis model", || {
        make(chip(CORES)?, context)
    })
}

/// Returns the training on the stack by causes, made once.
pub(in crate::studies) fn lesson_by_cause(
    context: &ExperimentContext<'_>,
) -> Result<Arc<TrainingResult>, StudyError> {
    context.get_or_compute("training of the symbiosis model by causes", || {
        make(chip_with_causes()?, context)
    })
}

fn make(chip: Arc<Chip>, context: &ExperimentContext<'_>) -> Result<TrainingResult, StudyError> {
    let training = Training {
        chip,
        programs: suite(programs::SUITE, context.by_scale(PROGRAMS[0], PROGRAMS[1]))?,
        ways: vec![WAYS],
        quantum_ns: QUANTUM.as_nanos() as u64,
        quanta: context.by_scale(QUANTA[0], QUANTA[1]),
        draws: 0,
    };
    let collected = collect(&training, context).map_err(part_error("training"))?;
    let runs = collected.runs_together;
    let set = collected.sets.into_iter().next().unwrap_or_default();
    let fit = fit(&set).map_err(part_error("fit"))?;
    Ok(TrainingResult {
        seen: errors(&fit.level, &set).map_err(part_error("errors"))?,
        held_out: cross_validate(&set, FOLDS).map_err(part_error("cross-validation"))?,
        fit,
        set,
        runs,
    })
}
