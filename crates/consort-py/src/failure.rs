//! Errors of Consort as exceptions of Python, with file, line and key if the text names them.

use consort_experiment::{ExperimentError, JobsError};
use consort_lab::StudyError;
use consort_lab::runner::StudyRunError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fmt::Display;

/// Reason why a call gives no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller's mistake: names what was wrong, where, and what would be right.
    Input(String),
    /// A run that failed.
    Run(String),
    /// Exception that Python code raised.
    Python(PyErr),
    /// The call was stopped.
    Stopped,
}

impl Failure {
    /// A mistake of the caller.
    pub(crate) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    /// A run that failed.
    pub(crate) fn run(error: impl Display) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Stopped => Self::Stopped,
            ExperimentError::Workers(error) => error.into(),
            ExperimentError::Sim(error) => Self::run(error),
            other => Self::input(other),
        }
    }
}

impl From<JobsError> for Failure {
    fn from(error: JobsError) -> Self {
        match error {
            JobsError::Stopped => Self::Stopped,
            other @ JobsError::Workers(_) => Self::run(other),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Jobs(JobsError::Stopped) => Self::Stopped,
            other => Self::run(other),
        }
    }
}

impl From<StudyRunError> for Failure {
    fn from(error: StudyRunError) -> Self {
        match error {
            StudyRunError::Study {
                cause: StudyError::Jobs(JobsError::Stopped),
                ..
            } => Self::Stopped,
            other => Self::run(other),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Input(message) => raised("InputError", &message),
            Failure::Run(message) => raised("RunError", &message),
            Failure::Stopped => raised("RunError", "stopped on request"),
        }
    }
}

/// An exception of the package; that of the import if the import fails.
fn raised(class: &str, message: &str) -> PyErr {
    Python::attach(|py| exception(py, class, message).unwrap_or_else(|error| error))
}

fn exception(py: Python<'_>, class: &str, message: &str) -> PyResult<PyErr> {
    let class = py.import("consort._errors")?.getattr(class)?;
    let place = ErrorLocation::parse(message).unwrap_or_default();
    let named = PyDict::new(py);
    named.set_item("file", place.file)?;
    named.set_item("line", place.line)?;
    named.set_item("key", place.key)?;
    Ok(PyErr::from_value(class.call((message,), Some(&named))?))
}

/// Place of a mistake in a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorLocation<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    key: Option<&'a str>,
}

impl<'a> ErrorLocation<'a> {
    /// Reads `FILE:LINE: KEY: what is wrong`, as all errors of descriptions are written; `None` if the
    /// text has another form.
    fn parse(message: &'a str) -> Option<Self> {
        let mut colons = message.match_indices(": ").map(|(at, _)| at);
        let (before, after) = message.split_at(colons.next()?);
        let (file, line) = before.rsplit_once(':')?;
        let line = line.parse().ok()?;
        let key = after[2..].split_once(": ").map(|(key, _)| key);
        let key = key.filter(|key| !key.is_empty() && !key.contains(char::is_whitespace));
        Some(Self {
            file: Some(file),
            line: Some(line),
            key,
        })
    }
}
