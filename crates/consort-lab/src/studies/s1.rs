//! S1: parameters of the interference model.
//!
//! Keys. Table `headline`: rows `COMPONENT, PARAMETER`, for example `data cache miss, beta`. Table
//! `counterparts`: rows `base`, `fixed point`, `floating point`, `data cache miss`; columns `alpha`,
//! `beta`, `gamma`, `delta`, `r2`, `event`. Table `published`: the same rows, columns `alpha` to
//! `delta`. Tables `parameters` and `causes`: rows the events of the chip's stack at its top level
//! and by causes, for example `PM_CMPLU_STALL`; columns `alpha` to `r2`. Figures `parameters`,
//! `causes`, `published`.

use super::symbiosis::part_error;
use super::symbiosis::training::{TrainingResult, lesson, lesson_by_cause};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::model::{
    ComponentParameters, InterferenceModel, LevelParameters, embedded_model,
};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// The published parameters, which come with the program.
const PUBLISHED: &str = "power8-paper";

/// The published components with the events that count the same here.
const COUNTERPARTS: [(&str, &str); 4] = [
    ("base", "PM_GRP_CMPL"),
    ("fixed point", "PM_CMPLU_STALL_FXU"),
    ("floating point", "PM_CMPLU_STALL_VSU"),
    ("data cache miss", "PM_CMPLU_STALL_DCACHE_MISS"),
];

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let (top, causes) = (lesson(context)?, lesson_by_cause(context)?);
    let (ours, by_cause, theirs) = (ours(&top), ours(&causes), published()?);
    Ok(StudyOutput {
        tables: vec![
            headline(&causes)?,
            counterparts(file, &causes)?,
            file.fill_table(
                "published",
                theirs.iter().map(|(name, p)| (name, coefficients(p))),
            )?,
            fitted_table(file, "parameters", &top)?,
            fitted_table(file, "causes", &causes)?,
        ],
        figures: vec![
            figure(file, "parameters", 1, &ours)?,
            figure(file, "causes", 1, &by_cause)?,
            figure(file, "published", 0, &theirs)?,
        ],
        notes: notes(&top, &causes),
        runs: 1,
    })
}

/// Parameters and R² of the fit for an event.
fn fitted<'a>(
    lesson: &'a TrainingResult,
    event: &str,
) -> Option<(&'a ComponentParameters, Option<f64>)> {
    let at = lesson
        .set
        .components
        .iter()
        .position(|name| name == event)?;
    let parameters = lesson.fit.level.parameters().get(at)?;
    Some((parameters, lesson.fit.r2.get(at).copied().flatten()))
}

fn headline(causes: &TrainingResult) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for (component, event) in COUNTERPARTS {
        let Some((parameters, _)) = fitted(causes, event) else {
            continue;
        };
        for (name, value) in parameters.named_values() {
            let row = format!("{component}, {name}");
            headline.add(&row, "cycles per cycle alone", value)?;
        }
    }
    Ok(headline.into_table())
}

fn counterparts(file: &StudyFile, causes: &TrainingResult) -> Result<ReportTable, StudyError> {
    let rows = COUNTERPARTS.iter().filter_map(|(component, event)| {
        let (parameters, r2) = fitted(causes, event)?;
        let mut cells = fitted_cells(parameters, r2);
        cells.push((*event).into());
        Some((component, cells))
    });
    file.fill_table("counterparts", rows)
}

type NamedParameters = Vec<(String, ComponentParameters)>;

fn named(components: &[String], level: &LevelParameters) -> NamedParameters {
    let parameters = level.parameters().iter().copied();
    components.iter().cloned().zip(parameters).collect()
}

fn ours(lesson: &TrainingResult) -> NamedParameters {
    named(&lesson.set.components, &lesson.fit.level)
}

fn published() -> Result<NamedParameters, StudyError> {
    let text = embedded_model(PUBLISHED).unwrap_or_default();
    let model = InterferenceModel::parse(text, PUBLISHED).map_err(part_error(PUBLISHED))?;
    let level = model.levels.first();
    Ok(level.map_or_else(Vec::new, |level| named(&model.components, level)))
}

fn coefficients(parameters: &ComponentParameters) -> Vec<Cell> {
    parameters
        .named_values()
        .map(|(_, value)| value.into())
        .into()
}

fn fitted_cells(parameters: &ComponentParameters, r2: Option<f64>) -> Vec<Cell> {
    let absent = || Cell::missing("the component never occurs");
    let r2 = r2.map_or_else(absent, Cell::from);
    coefficients(parameters).into_iter().chain([r2]).collect()
}

fn fitted_table(
    file: &StudyFile,
    key: &str,
    lesson: &TrainingResult,
) -> Result<ReportTable, StudyError> {
    let all = ours(lesson).into_iter().zip(&lesson.fit.r2);
    let rows = all.map(|((component, parameters), r2)| (component, fitted_cells(&parameters, *r2)));
    file.fill_table(key, rows)
}

fn figure(
    file: &StudyFile,
    key: &str,
    runs: usize,
    parameters: &NamedParameters,
) -> Result<Figure, StudyError> {
    let names = ComponentParameters::default()
        .named_values()
        .map(|(name, _)| name);
    let series = |(i, name): (usize, &str)| {
        let cells = parameters
            .iter()
            .map(|(_, parameters)| coefficients(parameters)[i].clone());
        (name.to_owned(), cells.collect())
    };
    let groups = parameters.iter().map(|(component, _)| component.clone());
    file.bar_figure(
        key,
        runs,
        groups.collect(),
        names.into_iter().enumerate().map(series),
    )
}

fn notes(top: &TrainingResult, causes: &TrainingResult) -> Vec<String> {
    let fitted = format!(
        "Fitted on {} quanta of {} pairs of {} programs at the top level, and on as many runs by \
         causes.",
        top.set.co_runs(),
        top.runs,
        top.set.programs().len(),
    );
    let of = |lesson: &TrainingResult| -> Vec<String> {
        let named = ours(lesson);
        let both = named.iter().zip(&lesson.fit.r2);
        both.filter_map(|((name, p), r2)| what(name, p, *r2))
            .collect()
    };
    let mut notes = vec![fitted, BASE.to_owned()];
    notes.extend(of(top));
    notes.extend(COUNTERPARTS.iter().filter_map(|(_, event)| {
        let (parameters, r2) = self::fitted(causes, event)?;
        what(event, parameters, r2)
    }));
    notes
}

/// Explanation of the growth of the base.
const BASE: &str = "Completed groups are instructions over the largest group of the core's mode, 8 \
    alone and 4 in SMT2: groups that end early, at branches for example, are not modelled. So a \
    thread completes twice as many groups beside a co-runner, and beta of the base is about 2.";

/// Explanation of a component's parameters, where there is something to explain.
fn what(name: &str, parameters: &ComponentParameters, r2: Option<f64>) -> Option<String> {
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
