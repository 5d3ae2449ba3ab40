//! Running a program under QEMU's user-mode emulator and hearing what it executes.

mod blocks;
mod error;
mod instrumenter;
mod interrupts;
mod plan;
mod program;
mod sink;
mod thread_decoder;
mod wire;
mod words;

pub use error::ProgramRecordError;
pub use sink::{
    AtomicUpdate, BlockExecution, ExecutionSink, ProgramEvent, RecordingStage, SystemCall,
    ThreadAction,
};

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};

use consort_ops::trace::TraceSampling;
use interrupts::{SignalBlockGuard, SignalRelay};
use nix::fcntl::{FcntlArg, fcntl};

/// Lowest number of the descriptor through which the emulator reports: out of programs' way.
const HIGH: i32 = 600;

/// Part of a program that is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedPart {
    /// Instructions that pass before anything is recorded.
    pub skip: u64,
    /// Instructions after which the program is ended, counting those of windows; no limit
    /// where there is none.
    pub limit: Option<u64>,
    /// Choice of the instructions that are recorded; all where there is none.
    pub sampling: Option<TraceSampling>,
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
    /// Instructions that all threads executed, recorded or not; the last heard of where the
    /// program was killed.
    pub executed: u64,
    /// Exit status of the emulator, which is that of the program.
    pub status: ExitStatus,
    /// Reason why there is no more.
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
    /// It was killed, or closed what it reports through.
    Cut,
}

/// Runs `command` and tells `sink` what it executes. Its input is this process's.
///
/// While it runs, interrupts and terminations go to the program and not to this process: what was
/// heard by then counts.
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
    // Larger is faster; what the system gives will do.
    let _ = fcntl(&to, FcntlArg::F_SETPIPE_SZ(1 << 20));
    let mut child = start_emulator(&instrumenter, &program, extent, output, &to)?;
    // Behind the start, for what is started inherits what is held.
    let _held = SignalBlockGuard::new();
    // Else there would be no end of what is heard.
    drop(to);
    let _relay = SignalRelay::start(child.id()).map_err(ProgramRecordError::channel_error)?;
    let heard = wire::read_messages(File::from(from), sink);
    if heard.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(ProgramRecordError::wait_error)?;
    let (executed, reason) = heard?;
    Ok(RecordingOutcome {
        executed,
        status,
        reason,
    })
}

fn start_emulator(
    instrumenter: &instrumenter::Instrumenter,
    program: &program::ResolvedProgram,
    extent: RecordedPart,
    output: OutputDestination,
    to: &OwnedFd,
) -> Result<Child, ProgramRecordError> {
    let channel = duplicate_inheritable(to)?;
    let mut emulator = Command::new(instrumenter.emulator());
    emulator.args(["-cpu", instrumenter::PROCESSOR, "-plugin"]);
    emulator.arg(instrumenter.plugin_argument(channel.as_raw_fd(), extent));
    emulator.arg("-0").arg(&program.name);
    emulator.arg(&program.path).args(&program.arguments);
    if output == OutputDestination::Aside {
        emulator.stdout(std::io::stderr());
    }
    emulator.spawn().map_err(ProgramRecordError::spawn_error)
}

/// The descriptor under a high number, kept by what is started.
fn duplicate_inheritable(of: &OwnedFd) -> Result<OwnedFd, ProgramRecordError> {
    let number = fcntl(of, FcntlArg::F_DUPFD(HIGH)).or_else(|_| fcntl(of, FcntlArg::F_DUPFD(3)));
    let number = number.map_err(ProgramRecordError::channel_error)?;
    // SAFETY: the number was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
