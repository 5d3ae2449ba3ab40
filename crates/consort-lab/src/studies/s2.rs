//! S2: errors of the forward model.
//!
//! Keys. Table `headline`: rows `mean error of the forward model, KIND` and `errors within 10 percent, KIND`,
//! KIND `trained` or `held-out`. Table `errors`: rows `trained`, `held-out`; columns `mean_abs_percent`, `p95_percent`,
//! `within_10_percent`, `errors`. Table `histogram`: rows bins such as `-2..0`, `below -30`,
//! `from 30`; columns `trained_percent`, `held_out_percent`. Table `programs`: rows programs,
//! worst first; columns `slowdown`, `predicted`, `mean_abs_percent`, `component` (the one that is
//! furthest off). Figure `histogram`.

use super::symbiosis::errors::{self, FORWARD};
use super::symbiosis::training::{TrainingResult, lesson};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::Cell;
use consort_experiment::ExperimentContext;
use consort_experiment::train::TrainingRow;
use std::collections::BTreeMap;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let lesson = lesson(context)?;
    let programs = programs(&lesson);
    let mut tables = vec![errors::headline(&lesson, &FORWARD, "forward model")?];
    tables.extend(errors::tables(file, &lesson, &FORWARD)?);
    tables.push(file.fill_table("programs", programs.iter().map(PredictedProgram::row))?);
    Ok(StudyOutput {
        tables,
        figures: vec![errors::figure(file, &lesson, &FORWARD)?],
        notes: vec![errors::note(&lesson, &FORWARD), worst(&programs)],
        runs: 1,
    })
}

/// One program's rows.
struct PredictedProgram<'a> {
    name: &'a str,
    slowdown: f64,
    predicted: f64,
    mean_abs_percent: f64,
    component: &'a str,
}

/// All programs, the one that is predicted worst first.
fn programs(lesson: &TrainingResult) -> Vec<PredictedProgram<'_>> {
    let mut rows: BTreeMap<&str, Vec<&TrainingRow>> = BTreeMap::new();
    for row in &lesson.set.rows {
        rows.entry(&row.program).or_default().push(row);
    }
    let of = |(name, rows): (_, Vec<&TrainingRow>)| program(lesson, name, &rows);
    let mut programs: Vec<PredictedProgram<'_>> = rows.into_iter().map(of).collect();
    programs.sort_by(|a, b| b.mean_abs_percent.total_cmp(&a.mean_abs_percent));
    programs
}

fn program<'a>(
    lesson: &'a TrainingResult,
    name: &'a str,
    rows: &[&TrainingRow],
) -> PredictedProgram<'a> {
    let level = &lesson.fit.level;
    let mean = |of: &dyn Fn(&TrainingRow) -> f64| {
        rows.iter().map(|row| of(row)).sum::<f64>() / rows.len() as f64
    };
    let predicted = |row: &TrainingRow| level.slowdown(&row.own, &row.others);
    PredictedProgram {
        name,
        slowdown: mean(&TrainingRow::slowdown),
        predicted: mean(&predicted),
        mean_abs_percent: 100.0 * mean(&|row| (predicted(row) / row.slowdown() - 1.0).abs()),
        component: furthest(lesson, rows),
    }
}

/// The component with the largest mean magnitude of the residual.
fn furthest<'a>(lesson: &'a TrainingResult, rows: &[&TrainingRow]) -> &'a str {
    let components = &lesson.set.components;
    let mut residuals = vec![0.0; components.len()];
    let mut together = vec![0.0; components.len()];
    for row in rows {
        lesson
            .fit
            .level
            .predict_stack(&row.own, &row.others, &mut together);
        let both = row.together.iter().zip(&together);
        for (sum, (measured, predicted)) in residuals.iter_mut().zip(both) {
            *sum += (measured - predicted).abs();
        }
    }
    let named = components.iter().zip(residuals);
    named
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map_or("", |(name, _)| name)
}

impl PredictedProgram<'_> {
    fn row(&self) -> (&str, Vec<Cell>) {
        let cells = vec![
            self.slowdown.into(),
            self.predicted.into(),
            self.mean_abs_percent.into(),
            self.component.into(),
        ];
        (self.name, cells)
    }
}

fn worst(programs: &[PredictedProgram<'_>]) -> String {
    let one = |p: &PredictedProgram<'_>| {
        let [is, said] = [p.slowdown, p.predicted];
        format!(
            "{} (slowdown {is:.2}, predicted {said:.2}, {})",
            p.name, p.component
        )
    };
    let named: Vec<String> = programs.iter().take(5).map(one).collect();
    format!(
        "Predicted worst, with the component that is furthest off: {}. One coefficient per event \
         stands for all causes that are counted under it, whose cycles grow differently: misses \
         that wait for each other not at all, overlapping ones with the lost half of the window.",
        named.join(", ")
    )
}
