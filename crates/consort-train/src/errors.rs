//! Distance of a level's predictions from what was measured.

use super::deviation::ErrorSpread;
use super::fit::{FitError, check_rows};
use super::least_squares::explained_variance;
use super::set::{TrainingRow, TrainingSet};
use consort_core::model::{Accuracy, LevelParameters};
use std::collections::BTreeMap;

/// Errors of a level on a set.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelErrors {
    /// Threads per core.
    pub ways: u32,
    /// Predicted minus measured slowdown, in percent of the measured one.
    pub forward: ErrorSpread,
    /// ST cycles that the inverse model puts under a wrong cause, in percent of
    /// the ST cycles: half the sum of the magnitudes of the differences. Never
    /// negative.
    pub inverse: ErrorSpread,
    /// Share of the variance of each component together that the predictions
    /// explain (R²); none where the component does not vary. Below 0, the mean
    /// would have been a better prediction.
    pub r2: Vec<Option<f64>>,
    /// Co-runs of which the inverse model kept a guess for some component.
    pub guesses_kept: usize,
    /// Co-runs that were inverted.
    pub inverted: usize,
}

impl LevelErrors {
    /// Summary for a model file.
    pub fn accuracy(&self) -> Accuracy {
        Accuracy {
            ways: self.ways,
            forward: self.forward.size,
            inverse: self.inverse.size,
        }
    }
}

/// The errors of `level` on every row of `set`.
///
/// # Errors
/// Rows that cannot be used, or whose stacks the level cannot take.
pub fn errors(level: &LevelParameters, set: &TrainingSet) -> Result<LevelErrors, FitError> {
    check_rows(set)?;
    let mut tally = ErrorTally::new(level.parameters().len());
    tally.add(level, set)?;
    Ok(tally.errors(level.ways()))
}

/// Errors gathered from one or several levels on parts of a set.
#[derive(Clone, Debug)]
pub(super) struct ErrorTally {
    forward_percent: Vec<f64>,
    inverse_percent: Vec<f64>,
    /// Per component: measured values and their residuals.
    components: Vec<Vec<(f64, f64)>>,
    guesses_kept: usize,
    inverted: usize,
}

impl ErrorTally {
    pub(super) fn new(components: usize) -> Self {
        Self {
            forward_percent: Vec::new(),
            inverse_percent: Vec::new(),
            components: vec![Vec::new(); components],
            guesses_kept: 0,
            inverted: 0,
        }
    }

    pub(super) fn add(
        &mut self,
        level: &LevelParameters,
        set: &TrainingSet,
    ) -> Result<(), FitError> {
        let mut co_runs: BTreeMap<u64, Vec<&TrainingRow>> = BTreeMap::new();
        for row in &set.rows {
            self.add_forward(level, row);
            co_runs.entry(row.co_run).or_default().push(row);
        }
        co_runs
            .values()
            .try_for_each(|rows| self.add_inverse(level, rows))
    }

    fn add_forward(&mut self, level: &LevelParameters, row: &TrainingRow) {
        let measured = row.slowdown();
        let predicted = level.slowdown(&row.own, &row.others);
        self.forward_percent
            .push(100.0 * (predicted - measured) / measured);
        let mut together = vec![0.0; self.components.len()];
        level.predict_stack(&row.own, &row.others, &mut together);
        let both = row.together.iter().zip(&together);
        for (values, (measured, predicted)) in self.components.iter_mut().zip(both) {
            values.push((*measured, measured - predicted));
        }
    }

    fn add_inverse(
        &mut self,
        level: &LevelParameters,
        rows: &[&TrainingRow],
    ) -> Result<(), FitError> {
        let measured: Vec<&[f64]> = rows.iter().map(|row| row.measured.as_slice()).collect();
        let inverse = level.invert(&measured)?;
        self.inverted += 1;
        self.guesses_kept += usize::from(!inverse.unsolved_components().is_empty());
        for (thread, row) in rows.iter().enumerate() {
            let wrong = misplaced_share(inverse.st_stack(thread), &row.own);
            self.inverse_percent.push(100.0 * wrong);
        }
        Ok(())
    }

    pub(super) fn errors(self, ways: u32) -> LevelErrors {
        LevelErrors {
            ways,
            forward: ErrorSpread::from_percents(&self.forward_percent),
            inverse: ErrorSpread::from_percents(&self.inverse_percent),
            r2: self
                .components
                .iter()
                .map(|c| explained_variance(c))
                .collect(),
            guesses_kept: self.guesses_kept,
            inverted: self.inverted,
        }
    }
}

/// Share of the cycles that one stack has under another cause than the other.
fn misplaced_share(estimated: &[f64], actual: &[f64]) -> f64 {
    let both = estimated.iter().zip(actual);
    both.map(|(e, a)| (e - a).abs()).sum::<f64>() / 2.0
}
