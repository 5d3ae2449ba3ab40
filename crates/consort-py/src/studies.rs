//! Published experiments, run again.

use crate::failure::Failure;
use crate::run::{interruptible, workers};
use crate::table::{Table, pick};
use consort_experiment::{Scale, SharedResults};
use consort_lab::pages;
use consort_lab::runner::{self, StudySettings};
use consort_lab::{
    Descriptions, FileStudy, Study as LabStudy, StudyReport, StudyStore, VERSION,
};
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
        Ok(pages::write(&folder, &self.0, None).map_err(Failure::run)?)
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
/// :param study: id (``consort.studies()``), or a study file
/// :param quick: the shape of the results in seconds, from fewer and shorter runs
/// :param seed: seed in place of the study's own
/// :param out: folder that keeps finished studies: what is there is not run again
/// :param jobs: worker threads; all PUs if None
/// :raises InputError: what was wrong, with file, line and key where it is in a file
/// :raises RunError: a study that failed
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
        let content = consort_input::read_text(Path::new(text));
        let content = content.map_err(|error| Failure::input(format!("{text}: {error}")))?;
        let study = FileStudy::parse(text, &content, Arc::new(Descriptions));
        return Ok(Arc::new(study.map_err(Failure::input)?));
    }
    let registry = consort_lab::registry().map_err(Failure::run)?;
    registry.find(text).map_err(Failure::input)
}
