//! Programs.

use crate::failure::Failure;
use consort_lab::Descriptions;
use consort_sim::program::{self, ProgramSpec};
use consort_sim::workload::{ProgramSource, Workload};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A described program: what it asks of any processor.
#[pyclass(frozen, module = "consort")]
#[derive(Clone)]
pub(crate) struct Program {
    spec: Arc<ProgramSpec>,
    /// Threads that it runs with unless told otherwise.
    threads: u32,
    /// Its file, where it does not come from one of the usual places.
    text: Option<Arc<str>>,
}

impl Program {
    /// The program of a file's text.
    pub(crate) fn of_text(file: &str, text: &str) -> Result<Self, Failure> {
        let spec = program::parse(file, text).map_err(Failure::input)?;
        let threads = spec.threads.as_ref().map_or(1, |threads| threads.default);
        Ok(Self {
            spec: Arc::new(spec),
            threads,
            text: Some(text.into()),
        })
    }

    pub(crate) fn spec(&self) -> &Arc<ProgramSpec> {
        &self.spec
    }

    pub(crate) fn default_threads(&self) -> u32 {
        self.threads
    }
}

#[pymethods]
impl Program {
    /// Reads a program: a name (``consort.programs()``), or FILE.toml.
    ///
    /// Raises InputError with file, line and key where the description is wrong.
    #[staticmethod]
    fn load(name: &str) -> PyResult<Self> {
        let workload = Workload::resolve(name, &Descriptions).map_err(Failure::input)?;
        let [entry] = &workload.entries[..] else {
            return Err(Failure::input(format!("'{name}' is not one program")).into());
        };
        Ok(Self {
            spec: Arc::clone(&entry.program),
            threads: entry.threads,
            text: None,
        })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.spec.name.clone()
    }

    /// Description in a line.
    #[getter]
    fn title(&self) -> String {
        self.spec.title.clone()
    }

    /// The suite that it belongs to.
    #[getter]
    fn suite(&self) -> String {
        self.spec.suite.clone()
    }

    /// Threads that it runs with unless told otherwise.
    #[getter]
    fn threads(&self) -> u32 {
        self.threads
    }

    /// The description as a program file.
    fn to_toml(&self) -> PyResult<String> {
        match &self.text {
            Some(text) => Ok(text.to_string()),
            None => Ok(toml::to_string(&*self.spec).map_err(Failure::run)?),
        }
    }

    /// Writes the description to a file that ``load`` and the command line read.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let reported = |error| Failure::input(format!("{}: {error}", path.display()));
        std::fs::write(&path, self.to_toml()?).map_err(reported)?;
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<consort.Program {}: {}>", self.spec.name, self.spec.title)
    }
}

/// Names of all described programs, those of one suite, or those that come with Consort and those
/// of the user's folders.
#[pyfunction]
#[pyo3(signature = (suite = None))]
pub(crate) fn programs(suite: Option<&str>) -> PyResult<Vec<String>> {
    let Some(suite) = suite else {
        return Ok(Descriptions.programs());
    };
    let members = Descriptions.suite(suite).map_err(Failure::input)?;
    if members.is_empty() {
        let known = Descriptions.suites();
        let hint = consort_core::hint(suite, known.iter().map(String::as_str));
        return Err(Failure::input(format!("unknown suite '{suite}'; {hint}")).into());
    }
    Ok(members.iter().map(|spec| spec.name.clone()).collect())
}
