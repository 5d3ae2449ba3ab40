//! Checks of the simulation.

use crate::failure::Failure;
use crate::run::{interruptible, workers};
use crate::studies::scale;
use crate::table::{Table, pick};
use consort_experiment::{ExperimentContext, JobsError};
use consort_lab::validate::{GroupInputs, PublishedData, ValidateError, ValidationCheck};
use pyo3::prelude::*;
use std::num::NonZeroUsize;

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
/// :param groups: groups of checks; those that ``consort validate`` runs if None
/// :param quick: fewer and shorter runs
/// :param seed: seed of all randomness
/// :param jobs: worker threads; all PUs if None
/// :raises InputError: a group that is not known
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
        };
        consort_lab::validate::run(&groups, &inputs).map_err(|error| match error {
            ValidateError::Workers(JobsError::Stopped) => Failure::Stopped,
            other => Failure::run(other),
        })
    })?;
    Ok(Validation(validation))
}
