//! Errors on programs that the fit has not seen.

use super::errors::{ErrorTally, LevelErrors};
use super::fit::{FitError, fit};
use super::set::{TrainingRow, TrainingSet};
use std::collections::BTreeSet;

/// k-fold cross-validation with whole programs held out. Programs go to folds
/// in turn, in the order of the alphabet. A row is held out when any of its
/// programs is, so a row counts once for each fold that one of its programs is
/// in, and never helps to predict itself.
///
/// # Errors
/// Fewer than 2 folds or more than programs, and whatever [`fit()`] refuses in
/// what is left after a fold has been taken out.
pub fn cross_validate(set: &TrainingSet, folds: usize) -> Result<LevelErrors, FitError> {
    let programs: Vec<&str> = set.programs().into_iter().collect();
    if !(2..=programs.len()).contains(&folds) {
        let programs = programs.len();
        return Err(FitError::Folds { folds, programs });
    }
    let mut tally = ErrorTally::new(set.components.len());
    for fold in 0..folds {
        let held_out = programs.iter().copied().skip(fold).step_by(folds).collect();
        let (tested, kept) = split(set, &held_out);
        tally.add(&fit(&kept)?.level, &tested)?;
    }
    Ok(tally.errors(set.ways))
}

/// The rows in which a program of `held_out` ran, and those without.
fn split(set: &TrainingSet, held_out: &BTreeSet<&str>) -> (TrainingSet, TrainingSet) {
    let is_held_out = |row: &&TrainingRow| row.programs().any(|program| held_out.contains(program));
    let (tested, kept): (Vec<&TrainingRow>, Vec<&TrainingRow>) =
        set.rows.iter().partition(is_held_out);
    let owned = |rows: Vec<&TrainingRow>| set.with_rows(rows.into_iter().cloned().collect());
    (owned(tested), owned(kept))
}
