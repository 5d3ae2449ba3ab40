//! Real programs as program files.

use crate::failure::Failure;
use crate::program::Program;
use crate::run::interruptible;
use consort_ops::trace::TraceSampling;
use consort_profile::recorder::{
    self, EndReason, OutputDestination, RecordedPart, RecordingOutcome,
};
use consort_profile::{ProgramFileHeader, ProgramProfiler, sanitize_name};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// Number of the signal that a terminal sends for Ctrl-C, on every Linux.
const SIGINT: i32 = 2;
/// Stretches of instructions that are recorded where nothing else is asked for.
const USUAL: TraceSampling = TraceSampling {
    every: 50_000_000,
    window: 500_000,
    warm: 500_000,
};

/// Runs a command under an emulator and returns its demands on a processor, as a program.
///
/// Ctrl-C ends the command; the instructions recorded until then count.
///
/// Needs QEMU's user-mode emulator, as ``consort profile`` does (docs/profiling.md). What the
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
        sampling: instructions.is_none().then_some(USUAL),
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
        sampling: extent.sampling,
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
