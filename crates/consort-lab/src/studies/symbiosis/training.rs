//! The training of the interference model that S1 to S3 share, and its parameters (S1).

use super::{MACHINE, QUANTUM, SUITE, chip, chip_from_spec};
use crate::simulate::part_error;
use crate::simulate::programs::suite;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::model::{ComponentParameters, InterferenceModel, embedded_model};
use consort_data::{Cell, Figure, HeadlineTable};
use consort_experiment::ExperimentContext;
use consort_experiment::train::collect::{Training, collect};
use consort_experiment::train::{
    FittedLevel, LevelErrors, TrainingSet, cross_validate, errors, fit,
};
use consort_sim::machine::{Quantity, presets};
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
/// The published parameters, which come with the program.
const PUBLISHED: &str = "power8-paper";
/// The published components with the events that count the same here.
const COUNTERPARTS: [(&str, &str); 4] = [
    ("base", "PM_GRP_CMPL"),
    ("fixed point", "PM_CMPLU_STALL_FXU"),
    ("floating point", "PM_CMPLU_STALL_VSU"),
    ("data cache miss", "PM_CMPLU_STALL_DCACHE_MISS"),
];

/// Stack of cycles on which a model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) enum StackSplit {
    /// The top level of the chip's stack: five events in turns of four counters.
    TopLevel,
    /// Completed groups and every cause of stalls that the chip has an event for, all in one
    /// quantum: training runs can be repeated until every event was read.
    Causes,
}

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

/// The training of this context, made once.
pub(in crate::studies) fn train(
    context: &ExperimentContext<'_>,
    split: StackSplit,
) -> Result<Arc<TrainingResult>, StudyError> {
    let name = format!("training of the symbiosis model, {split:?}");
    context.get_or_compute(&name, || {
        let chip = match split {
            StackSplit::TopLevel => chip(CORES, None)?,
            StackSplit::Causes => {
                let mut spec = presets::find(MACHINE).map_err(part_error(MACHINE))?;
                let pmu = &mut spec.pmu;
                // These are sums of events that stay.
                pmu.events.retain(|event| {
                    !matches!(
                        event.counts,
                        Quantity::StackCompletion | Quantity::StackEmpty | Quantity::StackFinished
                    )
                });
                pmu.programmable = pmu.events.len() as u32;
                chip_from_spec(&spec, CORES)?
            }
        };
        let training = Training {
            chip,
            programs: suite(SUITE, context.by_scale(PROGRAMS[0], PROGRAMS[1]))?,
            ways: vec![WAYS],
            quantum_ns: QUANTUM.as_nanos() as u64,
            quanta: context.by_scale(QUANTA[0], QUANTA[1]),
            // All pairs are run; only larger groups are drawn.
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
    })
}

/// Parameters of a component, and R² of their fit: `None` if the component never occurs.
struct FittedComponent {
    name: String,
    parameters: ComponentParameters,
    r2: Option<f64>,
}

impl TrainingResult {
    fn components(&self) -> Vec<FittedComponent> {
        let mut all = Vec::new();
        let named = self.set.components.iter().zip(&self.fit.r2);
        for ((name, r2), parameters) in named.zip(self.fit.level.parameters()) {
            all.push(FittedComponent {
                name: name.clone(),
                parameters: *parameters,
                r2: *r2,
            });
        }
        all
    }
}

impl FittedComponent {
    fn coefficients(&self) -> Vec<Cell> {
        let values = self.parameters.named_values();
        values.map(|(_, value)| value.into()).into()
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = self.coefficients();
        let absent = || Cell::missing("the component never occurs");
        cells.push(self.r2.map_or_else(absent, Cell::from));
        cells
    }

    /// Explanation of the parameters, if there is something to explain.
    fn explain(&self) -> Option<String> {
        let (name, parameters) = (&self.name, &self.parameters);
        if parameters.is_absent() {
            return Some(format!(
                "{name} never occurs; a counter is spent on it all the same."
            ));
        }
        if parameters.is_never_alone() {
            return Some(format!(
                "{name} does not occur alone, so no share measures it: the fit can only give every thread \
                 its mean, {:.2} of its cycles alone.",
                parameters.alpha
            ));
        }
        self.r2.map(|r2| {
            format!(
                "{name}: the form explains {:.0} % of its variance next to co-runners; a thread's own \
                 share counts {:.2}, the co-runner's {:.2}.",
                100.0 * r2,
                parameters.beta,
                parameters.gamma,
            )
        })
    }
}

/// S1: parameters of the interference model.
///
/// Keys. Table `headline`: rows `COMPONENT, PARAMETER`, for example `data cache miss, beta`. Table
/// `counterparts`: rows `base`, `fixed point`, `floating point`, `data cache miss`; columns `alpha`,
/// `beta`, `gamma`, `delta`, `r2`, `event`. Table `published`: the same rows, columns `alpha` to
/// `delta`. Tables `parameters` and `causes`: rows the events of the chip's stack at its top level
/// and by causes, for example `PM_CMPLU_STALL`; columns `alpha` to `r2`. Figures `parameters`,
/// `causes`, `published`.
pub(in crate::studies) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let training = train(context, StackSplit::TopLevel)?;
    let top = training.components();
    let causes = train(context, StackSplit::Causes)?.components();
    let text = embedded_model(PUBLISHED).unwrap_or_default();
    let model = InterferenceModel::parse(text, PUBLISHED).map_err(part_error(PUBLISHED))?;
    let mut published = Vec::new();
    if let Some(level) = model.levels.first() {
        for (name, parameters) in model.components.iter().zip(level.parameters()) {
            published.push(FittedComponent {
                name: name.clone(),
                parameters: *parameters,
                r2: None,
            });
        }
    }

    let mut headline = HeadlineTable::new()?;
    let mut counterparts = Vec::new();
    let mut notes = vec![
        format!(
            "Fitted on {} quanta of {} pairs of {} programs at the top level, and on as many runs \
             by causes.",
            training.set.co_runs(),
            training.runs,
            training.set.programs().len(),
        ),
        "Completed groups are instructions over the largest group of the core's mode, 8 alone and 4 \
         in SMT2: groups that end early, at branches for example, are not modelled. So a thread \
         completes twice as many groups next to a co-runner, and beta of the base is about 2."
            .to_owned(),
    ];
    notes.extend(top.iter().filter_map(FittedComponent::explain));
    for (component, event) in COUNTERPARTS {
        let Some(fitted) = causes.iter().find(|fitted| fitted.name == event) else {
            continue;
        };
        for (name, value) in fitted.parameters.named_values() {
            let row = format!("{component}, {name}");
            headline.add(&row, "cycles per cycle alone", value)?;
        }
        let mut cells = fitted.cells();
        cells.push(event.into());
        counterparts.push((component, cells));
        notes.extend(fitted.explain());
    }
    let rows = |components: &[FittedComponent]| -> Vec<(String, Vec<Cell>)> {
        let rows = components.iter();
        rows.map(|one| (one.name.clone(), one.cells())).collect()
    };
    let published_rows = published.iter().map(|one| (&one.name, one.coefficients()));
    Ok(StudyOutput {
        tables: vec![
            headline.into_table(),
            file.fill_table("counterparts", counterparts)?,
            file.fill_table("published", published_rows)?,
            file.fill_table("parameters", rows(&top))?,
            file.fill_table("causes", rows(&causes))?,
        ],
        figures: vec![
            figure(file, "parameters", 1, &top)?,
            figure(file, "causes", 1, &causes)?,
            figure(file, "published", 0, &published)?,
        ],
        notes,
        runs: 1,
    })
}

fn figure(
    file: &StudyFile,
    key: &str,
    runs: usize,
    components: &[FittedComponent],
) -> Result<Figure, StudyError> {
    let mut series = Vec::new();
    let names = ComponentParameters::default().named_values();
    for (n, (name, _)) in names.into_iter().enumerate() {
        let cells = components.iter().map(|one| one.coefficients()[n].clone());
        series.push((name.to_owned(), cells.collect()));
    }
    let groups = components.iter().map(|one| one.name.clone());
    file.bar_figure(key, runs, groups.collect(), series)
}
