//! S1: parameters of the interference model.
//!
//! Keys. Table `parameters`: rows the events of the chip's stack, for example `PM_CMPLU_STALL`;
//! columns `alpha`, `beta`, `gamma`, `delta`, `r2`. Table `published`: rows `base`, `fixed point`,
//! `floating point`, `data cache miss`; the same columns without `r2`. Figures `parameters`,
//! `published`.

use super::symbiosis::training::{Lesson, lesson};
use super::symbiosis::{DIFFERS_MODEL, SEED, SOURCE, failed};
use crate::context::Context;
use crate::report::{Axis, Bar, BarSeries, Bars, Cell, Column, Figure, Plot, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_core::model::{Level, Model, Parameters, embedded};

/// The study.
pub(super) struct S1;

static INFO: StudyInfo = StudyInfo {
    id: "S1",
    title: "Parameters of the interference model of a POWER8 core",
    source: SOURCE,
    section: "section 3, table 1",
    original: "Fits for every component of the cycle stack, by linear regression over training runs \
               of programs alone and in pairs on one core in SMT2, how it grows beside a co-runner: \
               alpha + beta c + gamma s + delta c s; prints four components.",
    differs: DIFFERS_MODEL,
    default_seed: SEED,
    full_seconds_hint: 5,
};

/// The published parameters, which come with the program.
const PUBLISHED: &str = "power8-paper";

impl Study for S1 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let lesson = lesson(context)?;
        let ours = ours(&lesson);
        let theirs = published()?;
        let fitted_title = "Fitted on the simulated machine";
        let published_title = "As published, of another cycle stack";
        Ok(StudyOutput {
            tables: vec![
                fitted_table(&lesson, &ours, fitted_title)?,
                table("published", published_title, &theirs)?,
            ],
            figures: vec![
                figure("parameters", fitted_title, 1, &ours)?,
                figure("published", published_title, 0, &theirs)?,
            ],
            notes: notes(&lesson, &ours),
            runs: 1,
        })
    }
}

type Named = Vec<(String, Parameters)>;

fn named(components: &[String], level: &Level) -> Named {
    let parameters = level.parameters().iter().copied();
    components.iter().cloned().zip(parameters).collect()
}

fn ours(lesson: &Lesson) -> Named {
    named(&lesson.set.components, &lesson.fit.level)
}

fn published() -> Result<Named, StudyError> {
    let text = embedded(PUBLISHED).unwrap_or_default();
    let model = Model::parse(text, PUBLISHED).map_err(failed(PUBLISHED))?;
    let level = model.levels.first();
    Ok(level.map_or_else(Vec::new, |level| named(&model.components, level)))
}

fn coefficients(parameters: &Parameters) -> Vec<Cell> {
    parameters.named().map(|(_, value)| value.into()).into()
}

fn columns() -> Vec<Column> {
    let names = Parameters::default().named().map(|(name, _)| name);
    names.map(|name| Column::plain(name, name)).into()
}

fn table(key: &str, title: &str, parameters: &Named) -> Result<Table, StudyError> {
    let mut table = Table::new(key, title, columns())?;
    for (component, parameters) in parameters {
        table.push(component, coefficients(parameters))?;
    }
    Ok(table)
}

fn fitted_table(lesson: &Lesson, ours: &Named, title: &str) -> Result<Table, StudyError> {
    let mut columns = columns();
    columns.push(Column::plain("r2", "R²"));
    let mut table = Table::new("parameters", title, columns)?;
    for ((component, parameters), r2) in ours.iter().zip(&lesson.fit.r2) {
        let mut cells = coefficients(parameters);
        cells.push(r2.map_or_else(|| Cell::missing("the component never occurs"), Cell::from));
        table.push(component, cells)?;
    }
    Ok(table)
}

fn figure(key: &str, title: &str, runs: usize, parameters: &Named) -> Result<Figure, StudyError> {
    let names = Parameters::default().named().map(|(name, _)| name);
    let series = |(i, name): (usize, &str)| BarSeries {
        name: name.to_owned(),
        bars: { parameters.iter() }
            .map(|(_, parameters)| Some(Bar::exact(parameters.named()[i].1)))
            .collect(),
    };
    let bars = Bars {
        category: "Component".to_owned(),
        value: Axis::linear("Coefficient", None),
        baseline: 0.0,
        groups: parameters
            .iter()
            .map(|(component, _)| component.clone())
            .collect(),
        series: names.into_iter().enumerate().map(series).collect(),
    };
    Ok(Figure::new(key, title, "", runs, Plot::Bars(bars))?)
}

fn notes(lesson: &Lesson, ours: &Named) -> Vec<String> {
    let mut notes = vec![format!(
        "Fitted on {} quanta of {} pairs of {} programs. The published components split waiting for \
         units and data by cause; the fitted ones are the five events at the top of the chip's \
         stack, of which one holds all of them. No row of one table is a row of the other.",
        lesson.set.co_runs(),
        lesson.runs,
        lesson.set.programs().len(),
    )];
    notes.extend(
        ours.iter()
            .zip(&lesson.fit.r2)
            .filter_map(|((name, p), r2)| what(name, p, *r2)),
    );
    notes
}

/// What a component's parameters say, where there is something to say.
fn what(name: &str, parameters: &Parameters, r2: Option<f64>) -> Option<String> {
    if parameters.is_absent() {
        return Some(format!(
            "{name} never occurs; a counter is spent on it all the same."
        ));
    }
    if parameters.is_never_alone() {
        return Some(format!(
            "{name} does not occur alone, so no share tells it: the fit can only give every thread \
             its mean, {:.2} of its cycles alone.",
            parameters.alpha
        ));
    }
    r2.map(|r2| {
        format!(
            "{name}: the form explains {:.0} % of its variance beside co-runners; a thread's own \
             share counts {:.2}, the co-runner's {:.2}.",
            100.0 * r2,
            parameters.beta,
            parameters.gamma,
        )
    })
}
