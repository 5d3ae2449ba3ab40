//! Running a program under QEMU's user-mode emulator and recording what it executes.

mod blocks;
mod instrumenter;
mod interrupts;
mod plan;
mod program;
mod sink;
mod thread_decoder;
mod windows;
mod wire;
mod words;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use nix::fcntl::{FcntlArg, fcntl};

use interrupts::{SignalBlockGuard, SignalRelay};

pub use sink::{
    AtomicUpdate, BlockExecution, ExecutionSink, ProgramEvent, RecordingStage, SystemCall,
    ThreadAction,
};
pub use windows::WindowChoice;
pub(crate) use windows::WindowPlan;

/// Part of a program that is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedPart {
    /// Instructions that pass before anything is recorded.
    pub skip: u64,
    /// Recorded instructions after which the program is ended; `None` for no limit.
    pub limit: Option<u64>,
    /// Choice of the instructions that are recorded.
    pub windows: WindowChoice,
}

/// Destination of what the program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputDestination {
    /// To the output of this process.
    Same,
    /// To this process's standard error.
    Aside,
}

/// Outcome of a recording.
#[derive(Debug, Clone, Copy)]
pub struct RecordingOutcome {
    /// Instructions that all threads executed, recorded or not; the last number reported if the
    /// program was killed.
    pub executed: u64,
    /// Exit status of the emulator, which is that of the program.
    pub status: ExitStatus,
    /// Reason why the recording ended.
    pub reason: EndReason,
}

/// Reason why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The program exited.
    Exited,
    /// The limit was reached; the program was ended.
    Limit,
    /// The program replaced itself by another.
    Replaced,
    /// It was killed, or closed the descriptor through which the emulator reports.
    Cut,
}

/// Runs `command` and reports what it executes to `sink`. The program reads this process's standard
/// input.
///
/// While it runs, interrupts and terminations go to the program and not to this process, so that
/// what was recorded by then counts.
///
/// # Errors
///
/// [`ProgramRecordError`] if it cannot be run, or executes what is not known here.
pub fn record(
    command: &[OsString],
    extent: RecordedPart,
    output: OutputDestination,
    sink: &mut dyn ExecutionSink,
) -> Result<RecordingOutcome, ProgramRecordError> {
    let program = program::resolve_program(command)?;
    let instrumenter = instrumenter::Instrumenter::find()?;
    let (from, to) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)
        .map_err(ProgramRecordError::channel_error)?;
    // A larger pipe is faster; a smaller one works too, so an error does not matter.
    let _ = fcntl(&to, FcntlArg::F_SETPIPE_SZ(1 << 20));
    let mut child = instrumenter.start_program(&program, extent, output, &to)?;
    // After the start, because a child inherits blocked signals.
    let _held = SignalBlockGuard::new();
    // Otherwise the pipe would never end.
    drop(to);
    let _relay = SignalRelay::start(child.id()).map_err(ProgramRecordError::channel_error)?;
    let received = wire::read_messages(File::from(from), sink);
    if received.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(ProgramRecordError::wait_error)?;
    let (executed, reason) = received?;
    Ok(RecordingOutcome {
        executed,
        status,
        reason,
    })
}

/// Reason why a program cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum ProgramRecordError {
    /// Nothing was to be run.
    #[error("no command; expected -- CMD")]
    NoCommand,
    /// There is no such program.
    #[error("cannot find program '{name}'")]
    NotFound {
        /// The name in the command.
        name: String,
    },
    /// The program cannot be read.
    #[error("cannot read program {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The program is of another kind.
    #[error("{} is {what}; only 64-bit x86 programs and scripts for them can be profiled", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Kind of file that it is instead.
        what: &'static str,
    },
    /// The emulator is missing.
    #[error("{emulator} is not installed; Debian has it in the package qemu-user")]
    NoEmulator {
        /// Name of the emulator.
        emulator: &'static str,
    },
    /// The emulator takes no plugins.
    #[error("{emulator} takes no plugins; expected one built with them, as Debian's qemu-user is")]
    NoPlugins {
        /// Name of the emulator.
        emulator: &'static str,
    },
    /// This build has no plugin.
    #[error(
        "this consort was built without a C compiler, so it has no recorder; build it with one"
    )]
    NoRecorder,
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// Action that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The plugin sent a message that is not known here.
    #[error("the recorder's report is garbled at {at}; the program may have written to it")]
    Garbled {
        /// Part that was being read.
        at: &'static str,
    },
}

impl ProgramRecordError {
    pub(super) fn channel_error(source: nix::Error) -> Self {
        Self::system_error("make a channel to the emulator", source.into())
    }

    pub(super) fn spawn_error(source: io::Error) -> Self {
        Self::system_error("start the emulator", source)
    }

    pub(super) fn wait_error(source: io::Error) -> Self {
        Self::system_error("wait for the emulator", source)
    }

    pub(super) const fn system_error(what: &'static str, source: io::Error) -> Self {
        Self::System { what, source }
    }
}
