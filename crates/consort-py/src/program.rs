//! Programs: described ones, and real ones that are profiled.

use crate::failure::Failure;
use crate::run::interruptible;
use consort_lab::Descriptions;
use consort_profile::recorder::{
    self, EndReason, OutputDestination, RecordedPart, RecordingOutcome, WindowChoice,
};
use consort_profile::{ProgramFileHeader, ProgramProfiler, sanitize_name};
use consort_sim::program::{self, ProgramSpec};
use consort_sim::workload::{ProgramSource, Workload};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
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

/// Number of the signal that a terminal sends for Ctrl-C, on every Linux.
const SIGINT: i32 = 2;

/// Runs a command under an emulator and returns its demands on a processor, as a program.
///
/// Ctrl-C ends the command; the instructions recorded until then count.
///
/// Needs QEMU's user-mode emulator, as ``consort profile`` does (docs/understand/profiles.md). What the
/// command prints goes to stderr.
///
/// :param command: the command and its arguments
/// :param skip: instructions that pass before anything is recorded
/// :param instructions: end the command after recording so many; then all are recorded
/// :param name: name of the program; the command's if None
/// :raises InputError: a command that cannot be started
/// :raises RunError: a command that failed, or an emulator that is not there
#[pyfunction]
#[pyo3(signature = (command, *, skip = 0, instructions = None, name = None))]
pub(crate) fn profile(
    py: Python<'_>,
    command: Vec<OsString>,
    skip: u64,
    instructions: Option<u64>,
    name: Option<&str>,
) -> PyResult<Program> {
    let extent = RecordedPart {
        skip,
        limit: instructions,
        windows: match instructions {
            Some(_) => WindowChoice::All,
            None => WindowChoice::Growing,
        },
    };
    let first = command
        .first()
        .and_then(|first| Path::new(first).file_name());
    let own = first.unwrap_or_default().to_string_lossy();
    let name = sanitize_name(name.unwrap_or(&own));
    let text = interruptible(py, {
        let name = name.clone();
        move |_| recorded(&command, extent, &name)
    })?;
    Ok(Program::of_text(&name, &text)?)
}

fn recorded(command: &[OsString], extent: RecordedPart, name: &str) -> Result<String, Failure> {
    let mut profiler = ProgramProfiler::new(extent, false);
    let ended = recorder::record(command, extent, OutputDestination::Aside, &mut profiler);
    let ended = ended.map_err(Failure::input)?;
    check(&ended)?;
    let profile = profiler.finish_profile();
    if profile.figures.mix.instructions == 0 {
        let executed = ended.executed;
        return Err(Failure::Run(format!(
            "the program ended after {executed} instructions, before a window was recorded; \
             give instructions=N to record all up to N"
        )));
    }
    let parts = command.iter().map(|part| part.to_string_lossy());
    Ok(profile.to_program_file(&ProgramFileHeader {
        name,
        command: &parts.collect::<Vec<_>>().join(" "),
        executed: ended.executed,
        end: None,
    }))
}

/// A program that fails did not do what it is to be profiled at; one that was ended on purpose, by
/// the limit or from the terminal, did.
fn check(ended: &RecordingOutcome) -> Result<(), Failure> {
    let limited = matches!(ended.reason, EndReason::Limit | EndReason::Replaced);
    let on_purpose = limited || ended.status.signal() == Some(SIGINT);
    if on_purpose || ended.status.success() {
        return Ok(());
    }
    Err(Failure::Run(format!(
        "the program failed: {}",
        ended.status
    )))
}
