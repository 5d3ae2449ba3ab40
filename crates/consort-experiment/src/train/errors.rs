//! Difference between a level's predictions and measurements.

use super::fit::{FitError, check_rows, explained_variance, fit};
use super::{TrainingRow, TrainingSet};
use consort_core::model::{Accuracy, Deviation, LevelParameters};
use consort_core::stats::{mean, quantile};
use std::collections::{BTreeMap, BTreeSet};

/// Errors of a level on a set.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelErrors {
    /// Threads per core.
    pub ways: u32,
    /// Predicted minus measured slowdown, in percent of the measured one.
    pub forward: ErrorSpread,
    /// ST cycles that the inverse model puts under a wrong cause, in percent of the ST cycles: half
    /// the sum of the magnitudes of the differences. Never negative; empty if only slowdowns are known.
    pub inverse: ErrorSpread,
    /// Share of the variance of each component together that the predictions explain (R²); `None`
    /// if the component does not vary. Below 0, the mean would have been a better prediction.
    pub r2: Vec<Option<f64>>,
    /// Co-runs for which the inverse model kept a guess for some component.
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
/// Rows that cannot be used, or stacks that the level cannot take.
pub fn errors(level: &LevelParameters, set: &TrainingSet) -> Result<LevelErrors, FitError> {
    check_rows(set)?;
    let mut tally = ErrorTally::new(level.parameters().len());
    tally.add(level, set)?;
    Ok(tally.errors(level.ways()))
}

/// Errors gathered from one or several levels on parts of a set.
#[derive(Clone, Debug)]
struct ErrorTally {
    forward_percent: Vec<f64>,
    inverse_percent: Vec<f64>,
    /// Per component: measured values and their residuals.
    components: Vec<Vec<(f64, f64)>>,
    guesses_kept: usize,
    inverted: usize,
}

impl ErrorTally {
    fn new(components: usize) -> Self {
        Self {
            forward_percent: Vec::new(),
            inverse_percent: Vec::new(),
            components: vec![Vec::new(); components],
            guesses_kept: 0,
            inverted: 0,
        }
    }

    fn add(&mut self, level: &LevelParameters, set: &TrainingSet) -> Result<(), FitError> {
        let mut co_runs: BTreeMap<u64, Vec<&TrainingRow>> = BTreeMap::new();
        for row in &set.rows {
            self.add_forward(level, row);
            if set.slowdowns_only {
                continue;
            }
            self.add_components(level, row);
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
    }

    fn add_components(&mut self, level: &LevelParameters, row: &TrainingRow) {
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
            // Each misplaced cycle is missing under one cause and too many under another.
            let both = inverse.st_stack(thread).iter().zip(&row.own);
            let wrong = both.map(|(e, a)| (e - a).abs()).sum::<f64>() / 2.0;
            self.inverse_percent.push(100.0 * wrong);
        }
        Ok(())
    }

    fn errors(self, ways: u32) -> LevelErrors {
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

const WIDTH_PERCENT: f64 = 2.0;
/// Beginning of the first closed bin, percent.
const LOWEST_PERCENT: f64 = -30.0;
/// Closed bins: from -30 to 30 percent.
const CLOSED_BINS: usize = 30;

/// Counts of errors in fixed bins of 2 percent from -30 to 30 percent, with one
/// open bin on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorHistogram {
    counts: Vec<u64>,
}

/// Errors of one kind, in percent.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorSpread {
    /// Number of errors.
    pub count: usize,
    /// Mean and 95th percentile of the magnitudes; 0 without errors.
    pub size: Deviation,
    /// The errors with their sign.
    pub histogram: ErrorHistogram,
}

impl ErrorHistogram {
    /// Counts these errors, in percent.
    pub fn from_percents(percents: &[f64]) -> Self {
        let mut counts = vec![0; CLOSED_BINS + 2];
        for percent in percents {
            counts[bin(*percent)] += 1;
        }
        Self { counts }
    }

    /// Every bin: its lower and upper edge in percent, infinite for the open
    /// ones, and how many errors fell into it. A bin holds its lower edge.
    pub fn bins(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let last = self.counts.len() - 1;
        self.counts.iter().enumerate().map(move |(i, count)| {
            let low = if i == 0 { f64::NEG_INFINITY } else { edge(i) };
            let high = if i == last {
                f64::INFINITY
            } else {
                edge(i + 1)
            };
            (low, high, *count)
        })
    }
}

impl ErrorSpread {
    /// The sizes of these errors, in percent.
    pub fn from_percents(percents: &[f64]) -> Self {
        let magnitudes: Vec<f64> = percents.iter().map(|p| p.abs()).collect();
        let size = Deviation {
            mean_absolute_percent: mean(&magnitudes).unwrap_or(0.0),
            p95_percent: quantile(&magnitudes, 0.95).unwrap_or(0.0),
        };
        Self {
            count: percents.len(),
            size,
            histogram: ErrorHistogram::from_percents(percents),
        }
    }
}

/// Lower edge of a bin other than the first.
fn edge(bin: usize) -> f64 {
    LOWEST_PERCENT + WIDTH_PERCENT * (bin as f64 - 1.0)
}

/// A cast to an integer saturates, and turns NaN into 0.
fn bin(percent: f64) -> usize {
    let place = (percent - LOWEST_PERCENT) / WIDTH_PERCENT + 1.0;
    (place as usize).min(CLOSED_BINS + 1)
}

/// k-fold cross-validation with whole programs held out. Programs go to folds in turn, in
/// alphabetical order. A row is held out if any of its programs is, so it counts once for each fold
/// that has one of its programs, and never helps to predict itself.
///
/// # Errors
/// Fewer than 2 folds or more than programs, and every error of [`fit()`] on the rows that remain
/// without a fold.
pub fn cross_validate(set: &TrainingSet, folds: usize) -> Result<LevelErrors, FitError> {
    let programs: Vec<&str> = set.programs().into_iter().collect();
    if !(2..=programs.len()).contains(&folds) {
        let programs = programs.len();
        return Err(FitError::Folds { folds, programs });
    }
    let mut tally = ErrorTally::new(set.components.len());
    for fold in 0..folds {
        let held_out: BTreeSet<&str> = programs.iter().copied().skip(fold).step_by(folds).collect();
        let is_tested =
            |row: &&TrainingRow| row.programs().any(|program| held_out.contains(program));
        let (tested, kept): (Vec<&TrainingRow>, Vec<&TrainingRow>) =
            set.rows.iter().partition(is_tested);
        let [tested, kept] =
            [tested, kept].map(|rows| set.with_rows(rows.into_iter().cloned().collect()));
        tally.add(&fit(&kept)?.level, &tested)?;
    }
    Ok(tally.errors(set.ways))
}
