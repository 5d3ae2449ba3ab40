//! Running a program under QEMU's user-mode emulator and hearing what it executes.

mod blocks;
mod error;
mod instrumenter;
mod interrupts;
mod lane;
mod plan;
mod program;
mod sink;
mod wire;
mod words;

pub use error::RecordError;
pub use sink::{Atomic, Call, Deed, Event, Run, Sink, Stage};

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};

use consort_ops::trace::Sampling;
use interrupts::{Held, Relay};
use nix::fcntl::{FcntlArg, fcntl};

/// Lowest number of the descriptor through which the emulator reports: out of programs' way.
const HIGH: i32 = 600;

/// Part of a program that is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Instructions that pass before anything is recorded.
    pub skip: u64,
    /// Instructions after which the program is ended, counting those of windows; no limit
    /// where there is none.
    pub limit: Option<u64>,
    /// Choice of the instructions that are recorded; all where there is none.
    pub sampling: Option<Sampling>,
}

/// Destination of what the program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// To the output of this process.
    Same,
    /// To this process's standard error.
    Aside,
}

/// Outcome of a recording.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
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
/// [`RecordError`] if it cannot be run, or executes what is not known here.
pub fn record(
    command: &[OsString],
    extent: Extent,
    output: Output,
    sink: &mut dyn Sink,
) -> Result<Ended, RecordError> {
    let program = program::resolve(command)?;
    let instrumenter = instrumenter::Instrumenter::find()?;
    let (from, to) =
        nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(RecordError::start)?;
    // Larger is faster; what the system gives will do.
    let _ = fcntl(&to, FcntlArg::F_SETPIPE_SZ(1 << 20));
    let mut child = start(&instrumenter, &program, extent, output, &to)?;
    // Behind the start, for what is started inherits what is held.
    let _held = Held::new();
    // Else there would be no end of what is heard.
    drop(to);
    let _relay = Relay::to(child.id()).map_err(RecordError::start)?;
    let heard = wire::hear(File::from(from), sink);
    if heard.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(RecordError::wait)?;
    let (executed, reason) = heard?;
    Ok(Ended {
        executed,
        status,
        reason,
    })
}

fn start(
    instrumenter: &instrumenter::Instrumenter,
    program: &program::Program,
    extent: Extent,
    output: Output,
    to: &OwnedFd,
) -> Result<Child, RecordError> {
    let channel = inherited(to)?;
    let mut emulator = Command::new(instrumenter.emulator());
    emulator.args(["-cpu", instrumenter::PROCESSOR, "-plugin"]);
    emulator.arg(instrumenter.plugin_argument(channel.as_raw_fd(), extent));
    emulator.arg("-0").arg(&program.name);
    emulator.arg(&program.path).args(&program.arguments);
    if output == Output::Aside {
        emulator.stdout(std::io::stderr());
    }
    emulator.spawn().map_err(RecordError::spawn)
}

/// The descriptor under a high number, kept by what is started.
fn inherited(of: &OwnedFd) -> Result<OwnedFd, RecordError> {
    let number = fcntl(of, FcntlArg::F_DUPFD(HIGH)).or_else(|_| fcntl(of, FcntlArg::F_DUPFD(3)));
    let number = number.map_err(RecordError::start)?;
    // SAFETY: the number was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
