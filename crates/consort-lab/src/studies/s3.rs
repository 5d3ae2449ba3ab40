//! S3: errors of the inverse model.
//!
//! Keys. Tables `errors` and `histogram` as in S2, bins from `0..2`. Table `components`: rows the
//! events of the stack; columns `alone_percent`, `estimated_percent` (means, of the cycles alone),
//! `mean_abs_percent`. Table `guesses`: row `trained` and `held-out`; column `kept_percent`.
//! Figure `histogram`.

use super::symbiosis::errors::{self, INVERSE};
use super::symbiosis::part_error;
use super::symbiosis::training::{TrainingResult, lesson};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::ReportTable;
use consort_experiment::ExperimentContext;
use consort_experiment::train::{LevelErrors, TrainingRow};
use std::collections::BTreeMap;

/// Largest mean that counts as 0, percent: differences of counts leave as much of a component that
/// does not occur.
const ROUNDING: f64 = 1e-9;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let lesson = lesson(context)?;
    let components = components(&lesson)?;
    let mut tables = vec![errors::headline(&lesson, &INVERSE, "inverse model")?];
    tables.extend(errors::tables(file, &lesson, &INVERSE)?);
    tables.push(components_table(file, &lesson, &components)?);
    tables.push(guesses(file, &lesson)?);
    let notes = vec![
        errors::note(&lesson, &INVERSE),
        mechanism(&lesson, &components),
    ];
    Ok(StudyOutput {
        tables,
        figures: vec![errors::figure(file, &lesson, &INVERSE)?],
        notes,
        runs: 1,
    })
}

/// Sums over all rows, in shares of the cycles alone.
#[derive(Clone, Copy, Debug, Default)]
struct StackComponentSums {
    alone: f64,
    estimated: f64,
    magnitude: f64,
}

fn components(lesson: &TrainingResult) -> Result<Vec<StackComponentSums>, StudyError> {
    let mut co_runs: BTreeMap<u64, Vec<&TrainingRow>> = BTreeMap::new();
    for row in &lesson.set.rows {
        co_runs.entry(row.co_run).or_default().push(row);
    }
    let mut sums = vec![StackComponentSums::default(); lesson.set.components.len()];
    for rows in co_runs.values() {
        let measured: Vec<&[f64]> = rows.iter().map(|row| row.measured.as_slice()).collect();
        let inverse = lesson
            .fit
            .level
            .invert(&measured)
            .map_err(part_error("inverse model"))?;
        for (thread, row) in rows.iter().enumerate() {
            add(&mut sums, inverse.st_stack(thread), &row.own);
        }
    }
    Ok(sums)
}

fn add(sums: &mut [StackComponentSums], estimated: &[f64], alone: &[f64]) {
    for (sum, (estimated, alone)) in sums.iter_mut().zip(estimated.iter().zip(alone)) {
        sum.alone += alone;
        sum.estimated += estimated;
        sum.magnitude += (estimated - alone).abs();
    }
}

/// A sum as a mean over the rows, percent.
fn percent(lesson: &TrainingResult, sum: f64) -> f64 {
    let percent = 100.0 * sum / lesson.set.rows.len().max(1) as f64;
    if percent.abs() < ROUNDING {
        0.0
    } else {
        percent
    }
}

fn components_table(
    file: &StudyFile,
    lesson: &TrainingResult,
    sums: &[StackComponentSums],
) -> Result<ReportTable, StudyError> {
    let cells = |sum: &StackComponentSums| {
        let values = [sum.alone, sum.estimated, sum.magnitude];
        values.map(|sum| percent(lesson, sum).into()).into()
    };
    let named = lesson.set.components.iter().zip(sums);
    file.fill_table("components", named.map(|(name, sum)| (name, cells(sum))))
}

fn guesses(file: &StudyFile, lesson: &TrainingResult) -> Result<ReportTable, StudyError> {
    let both = [("trained", &lesson.seen), ("held-out", &lesson.held_out)];
    let rows = both.map(|(name, errors)| (name, vec![kept_percent(errors).into()]));
    file.fill_table("guesses", rows)
}

fn kept_percent(errors: &LevelErrors) -> f64 {
    100.0 * errors.guesses_kept as f64 / errors.inverted.max(1) as f64
}

fn mechanism(lesson: &TrainingResult, sums: &[StackComponentSums]) -> String {
    let named = lesson.set.components.iter().zip(sums);
    let worst = named.max_by(|a, b| a.1.magnitude.total_cmp(&b.1.magnitude));
    let worst = worst.map_or_else(String::new, |(name, sum)| {
        let [alone, estimated] = [sum.alone, sum.estimated].map(|sum| percent(lesson, sum));
        format!("{name} ({alone:.1} % of the cycles alone, estimated as {estimated:.1} %)")
    });
    format!(
        "The component that is furthest off is {worst}. In {:.0} % of the co-runs the equations \
         of some component have no root between 0 and 1 and its measured share is kept instead.",
        kept_percent(&lesson.seen)
    )
}
