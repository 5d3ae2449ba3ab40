//! Published experiments, thread mappings, and checks of the simulation.

use crate::compare::experiment;
use crate::failure::Failure;
use crate::machine::MachineArgument;
use crate::run::{interruptible, workers};
use crate::table::{Table, pick};
use crate::workload::WorkloadArgument;
use consort_core::mapping::MappingScheme;
use consort_core::mapping::analysis::Thresholds;
use consort_experiment::mapping::{MappingSweep, NamedMapping, OS, characterise};
use consort_experiment::{
    Experiment, ExperimentContext, JobsError, NOT_MODELLED, Scale, SharedResults,
};
use consort_lab::mapping::Analysis;
use consort_lab::runner::{self, StudySettings};
use consort_lab::{
    Descriptions, FileStudy, Study as LabStudy, StudyReport, StudyStore, VERSION, pages,
};
use consort_sim::workload::ProgramInstance;
use consort_lab::validate::{GroupInputs, PublishedData, ValidateError, ValidationCheck};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A finished study: what it is about, its tables, and its findings.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Study(StudyReport);

impl From<StudyReport> for Study {
    fn from(report: StudyReport) -> Self {
        Self(report)
    }
}

#[pymethods]
impl Study {
    /// One of :attr:`tables`; "long" has every number of all of them: case (``STUDY:TABLE:ROW``),
    /// policy, seed, program, measure, value, unit. Half widths of 95 percent intervals are in
    /// columns that end in ``_ci95``.
    #[pyo3(signature = (name = "headline"))]
    fn table(&self, name: &str) -> PyResult<Table> {
        let tables = &self.0.output.tables;
        let whole = || consort_lab::study_to_long_table(&self.0);
        let makers: Vec<_> = tables
            .iter()
            .map(|table| (table.key(), || table.to_table()))
            .collect();
        let made = makers
            .iter()
            .map(|(key, make)| (*key, make as &dyn Fn() -> _));
        let all: Vec<(&str, &dyn Fn() -> _)> =
            made.chain([("long", &whole as &dyn Fn() -> _)]).collect();
        pick(name, &all)
    }

    /// Names of its tables, the headline first where it has one.
    #[getter]
    fn tables(&self) -> Vec<&str> {
        self.0
            .output
            .tables
            .iter()
            .map(consort_data::ReportTable::key)
            .collect()
    }

    /// Its id.
    #[getter]
    fn id(&self) -> &str {
        &self.0.study
    }

    /// Its title.
    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    /// The published work.
    #[getter]
    fn source(&self) -> &str {
        &self.0.source
    }

    /// Findings and limits, a text each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.output.notes.clone()
    }

    /// Its seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Host time that it took, s. Not the same from call to call.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds
    }

    /// Writes tables (CSV), figures (SVG) and a page into a folder, made if it is not there; gives
    /// the paths, the page last.
    fn write(&self, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        let reported = |error| Failure::input(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(reported)?;
        Ok(pages::write(&folder, &self.0, None, false).map_err(Failure::run)?)
    }

    /// The document that ``consort reproduce --format json`` prints of it.
    fn to_json(&self) -> PyResult<String> {
        Ok(serde_json::to_string_pretty(&self.0).map_err(Failure::run)?)
    }

    fn __repr__(&self) -> String {
        format!("<consort.Study {}: {}>", self.0.study, self.0.title)
    }
}

/// Ids of the studies that come with Consort.
#[pyfunction]
pub(crate) fn studies() -> PyResult<Vec<String>> {
    let registry = consort_lab::registry().map_err(Failure::run)?;
    Ok(registry.list().map(|info| info.id.clone()).collect())
}

/// Runs a published experiment again.
///
/// :param study: id (``consort.studies()``), or a study file :param quick: the shape of the results
/// in seconds, from fewer and shorter runs :param seed: seed in place of the study's own :param
/// out: folder that keeps finished studies: what is there is not run again :param jobs: worker
/// threads; all CPUs if None :raises InputError: what was wrong, with file, line and key where it
/// is in a file :raises RunError: a study that failed
#[pyfunction]
#[pyo3(signature = (study, *, quick = false, seed = None, out = None, jobs = None))]
pub(crate) fn reproduce(
    py: Python<'_>,
    study: &str,
    quick: bool,
    seed: Option<u64>,
    out: Option<PathBuf>,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Study> {
    let study = find(study)?;
    let settings = StudySettings {
        seed,
        scale: scale(quick),
        workers: workers(jobs),
        version: VERSION.to_owned(),
        made: SharedResults::default(),
    };
    let report = interruptible(py, move |_| {
        let store = out
            .map(|folder| StudyStore::open(&folder))
            .transpose()
            .map_err(Failure::input)?;
        let outcome = runner::run(&*study, &settings, store.as_ref(), &|_| ())?;
        Ok(outcome.into_report())
    })?;
    Ok(Study(report))
}

/// Amount of work.
pub(crate) fn scale(quick: bool) -> Scale {
    if quick { Scale::Quick } else { Scale::Full }
}

/// Ids have neither strokes nor points.
fn find(text: &str) -> Result<Arc<dyn LabStudy>, Failure> {
    if text.contains(['/', '.']) {
        let content = consort_describe::input::read_text(Path::new(text));
        let content = content.map_err(|error| Failure::input(format!("{text}: {error}")))?;
        let study = FileStudy::parse(text, &content, Arc::new(Descriptions));
        return Ok(Arc::new(study.map_err(Failure::input)?));
    }
    let registry = consort_lab::registry().map_err(Failure::run)?;
    registry.find(text).map_err(Failure::input)
}

/// Runs a workload under thread mappings and tells which is best and which resource decides.
///
/// :param machine: a Machine, or its name :param workload: a Workload, an expression such as
/// "streamcluster@4+facesim@4", or programs :param mappings: "os", "iso", "int" and "spr", in the
/// order of rows; times refer to the first :param runs: repetitions of each mapping, with
/// successive seeds :param times: how often the longest program runs in each :param alone_s: time
/// that each program's work takes alone, s :param os: model of the operating system beneath the
/// mappings :param seed: seed of all randomness :param jobs: worker threads; all CPUs if None
/// :raises InputError: what was wrong
#[pyfunction]
#[pyo3(signature = (machine, workload, mappings = None, *, runs = 1, times = 3, alone_s = 1.0,
    os = "linux", seed = 1, jobs = None))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn map(
    py: Python<'_>,
    machine: MachineArgument<'_>,
    workload: WorkloadArgument<'_>,
    mappings: Option<Vec<String>>,
    runs: usize,
    times: u32,
    alone_s: f64,
    os: &str,
    seed: u64,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Study> {
    let (experiment, case) = experiment(machine, workload, alone_s, None)?;
    let usual = || [OS, "iso", "int", "spr"].map(str::to_owned).to_vec();
    let names = mappings.unwrap_or_else(usual);
    let held = names.iter().map(|name| held(name, os));
    let sweep = MappingSweep {
        chip: experiment.chip.clone(),
        workloads: vec![experiment.workload.clone()],
        held: held.collect::<Result<_, _>>()?,
        alone_s: experiment.alone_s,
        times,
        runs,
    };
    let report = interruptible(py, move |_| {
        let context = ExperimentContext::new(seed, Scale::Full, workers(jobs), &|_| ());
        report(&experiment, &sweep, case, &context)
    })?;
    Ok(report.into())
}

fn held(name: &str, os: &str) -> Result<NamedMapping, Failure> {
    if name == OS {
        return Ok(NamedMapping::from_os(os)?);
    }
    let scheme: MappingScheme = name.parse().map_err(|_| {
        let known = MappingScheme::ALL.iter().map(|scheme| scheme.name());
        let hint = consort_core::hint(name, [OS].into_iter().chain(known));
        Failure::Input(format!("unknown mapping '{name}'; {hint}"))
    })?;
    Ok(NamedMapping::from_scheme(scheme, os)?)
}

fn report(
    experiment: &Experiment,
    sweep: &MappingSweep,
    case: String,
    context: &ExperimentContext<'_>,
) -> Result<StudyReport, Failure> {
    let kinds = kinds(&experiment.workload.entries);
    let alone = characterise(&sweep.chip, &kinds, sweep.alone_s, context)?;
    let measured = sweep.measure(context)?;
    let names = kinds.iter().map(|entry| entry.name.clone());
    let mappings = sweep.held.iter().map(|held| held.name().to_owned());
    let left = NOT_MODELLED
        .iter()
        .map(|(what, why)| format!("{what} ({why})"));
    let left: Vec<String> = left.collect();
    let analysis = Analysis::new(
        mappings.collect(),
        measured.table(),
        names.zip(alone).collect(),
        &Thresholds {
            varies: 0.05,
            moves: 0.05,
        },
        &format!("the simulation does not model {}", left.join(", ")),
    );
    let mut output = analysis.output(sweep.runs)?;
    output.notes.extend(measured.given_up);
    Ok(StudyReport {
        study: "map".to_owned(),
        title: format!("Thread mappings of {case}"),
        source: "Wang, Dey, Mars, Tang, Davidson, Soffa, ISPASS 2012".to_owned(),
        section: "method".to_owned(),
        original: String::new(),
        differs: "Simulated.".to_owned(),
        seed: context.seed(),
        scale: context.scale(),
        seconds: 0.0,
        answer: None,
        mechanism: Vec::new(),
        output,
    })
}

/// One instance of each program: copies are alike.
fn kinds(entries: &[ProgramInstance]) -> Vec<ProgramInstance> {
    let mut kinds: Vec<ProgramInstance> = Vec::new();
    for entry in entries {
        let like = |known: &ProgramInstance| {
            known.program.name == entry.program.name && known.threads == entry.threads
        };
        if !kinds.iter().any(like) {
            kinds.push(entry.clone());
        }
    }
    kinds
}

/// Figures of the simulation beside published and measured ones.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Validation(consort_lab::validate::Validation);

#[pymethods]
impl Validation {
    /// The table "checks": a row for each check, with the published or due figure, ours, the error,
    /// and whether they agree.
    #[pyo3(signature = (name = "checks"))]
    fn table(&self, name: &str) -> PyResult<Table> {
        pick(name, &[("checks", &|| checks(&self.0.checks))])
    }

    /// True where no law is broken; a disagreement with a published figure is a finding.
    #[getter]
    fn laws_hold(&self) -> bool {
        self.0.laws_hold()
    }

    /// The document that ``consort validate --format json`` prints.
    fn to_json(&self) -> PyResult<String> {
        Ok(serde_json::to_string_pretty(&self.0).map_err(Failure::run)?)
    }

    fn __repr__(&self) -> String {
        format!("<consort.Validation of {} checks>", self.0.checks.len())
    }
}

fn checks(all: &[ValidationCheck]) -> consort_data::Table {
    consort_data::Table::default()
        .with_text("group", all.iter().map(|check| Some(check.group)))
        .with_text("id", all.iter().map(|check| Some(check.id.clone())))
        .with_text("what", all.iter().map(|check| Some(check.what.clone())))
        .with_text("source", all.iter().map(|check| Some(check.source.clone())))
        .with_text("unit", all.iter().map(|check| Some(check.unit.clone())))
        .with_text(
            "published",
            all.iter().map(|check| Some(check.published.text())),
        )
        .with_numbers("ours", None, all.iter().map(|check| Some(check.ours)))
        .with_numbers("error", None, all.iter().map(|check| check.error))
        .with_text(
            "agrees",
            all.iter()
                .map(|check| Some(if check.agrees { "yes" } else { "NO" })),
        )
        .with_text("note", all.iter().map(|check| Some(check.note.clone())))
}

/// Checks the simulation against published figures, laws and a real kernel.
///
/// :param groups: groups of checks; those that ``consort validate`` runs if None :param quick:
/// fewer and shorter runs :param seed: seed of all randomness :param jobs: worker threads; all CPUs
/// if None :raises InputError: a group that is not known
#[pyfunction]
#[pyo3(signature = (groups = None, *, quick = false, seed = 1, jobs = None))]
pub(crate) fn validate(
    py: Python<'_>,
    groups: Option<Vec<String>>,
    quick: bool,
    seed: u64,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Validation> {
    let groups = consort_lab::validate::select(&groups.unwrap_or_default()).map_err(Failure::input)?;
    let validation = interruptible(py, move |_| {
        let context = ExperimentContext::new(seed, scale(quick), workers(jobs), &|_| ());
        let inputs = GroupInputs {
            data: &PublishedData::embedded(),
            context: &context,
            traces: None,
        };
        consort_lab::validate::run(&groups, &inputs).map_err(|error| match error {
            ValidateError::Workers(JobsError::Stopped) => Failure::Stopped,
            other => Failure::run(other),
        })
    })?;
    Ok(Validation(validation))
}
