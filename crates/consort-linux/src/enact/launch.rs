//! Starting a program that is managed before its first instruction.
//!
//! The standard library forks and execs, with its lookup in `PATH` and its report of exec errors. A
//! hook in the child stops it between the two, until the parent is done with its preparations. As
//! `spawn` returns only after the exec, it runs on a thread of its own. In the child nothing but
//! async-signal-safe calls are made, so other threads of the parent do no harm.
//!
//! The program stays in the caller's process group, so the terminal treats the
//! two as one job. Handlers do not survive an exec; signals that the caller was
//! started with ignored, as under `nohup`, stay ignored; the mask of blocked
//! signals is emptied and SIGPIPE is as by default.

use super::wait::{ChildEvent, next_event};
use crate::descriptor_limit::original_limits;
use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;
use thiserror::Error;

/// Environment variable by which a run's programs are told from others.
pub const RUN_MARKER: &str = "CONSORT_RUN";

/// Reason for which a program could not be started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// There is no such command.
    #[error("command not found: {}", .0.display())]
    NotFound(OsString),
    /// The command cannot be executed.
    #[error("command not executable: {}: {source}", .command.display())]
    NotExecutable {
        /// The command.
        command: OsString,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Starting failed otherwise, as when no process can be made.
    #[error("cannot start {}: {source}", .command.display())]
    Failed {
        /// The command.
        command: OsString,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl LaunchError {
    /// Error of a process that was there and could not execute the command.
    fn from_exec(command: OsString, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(command),
            _ => Self::NotExecutable { command, source },
        }
    }
}

/// A program that was launched.
#[derive(Debug)]
pub struct LaunchedProgram {
    child: Child,
}

impl LaunchedProgram {
    /// Process id of the program, which is its first thread's tid as well.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program's next change of state; without `block`, none if nothing has changed.
    /// After `Exited` or `Killed` the pid means nothing any more.
    ///
    /// # Errors
    /// `ECHILD` once the program's end was told.
    pub fn next_event(&self, block: bool) -> Result<Option<ChildEvent>, Errno> {
        next_event(self.kernel_pid(), block)
    }

    /// Sends the program a signal.
    ///
    /// # Errors
    /// When the kernel refuses: `EPERM` for a program that runs as another user now.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        kill(self.kernel_pid(), signal)
    }

    fn kernel_pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

/// Forks, calls `before_exec` with the child's pid while the child waits, and
/// lets it exec. The child carries [`RUN_MARKER`] with the run's id. If the
/// caller dies meanwhile, the child exits without exec.
///
/// # Errors
/// When no process can be made, or the command cannot be executed. In the second case `before_exec`
/// has been called, and the child is gone.
pub fn launch(
    mut command: Command,
    run_id: &str,
    before_exec: impl FnOnce(u32),
) -> Result<LaunchedProgram, LaunchError> {
    let name = command.get_program().to_owned();
    let failed = |source| LaunchError::Failed {
        command: name.clone(),
        source,
    };
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    command.env(RUN_MARKER, run_id);
    stop_before_exec(&mut command, theirs, ours.as_raw_fd());
    let mut held = None;
    let spawned = thread::scope(|scope| {
        // The command is dropped after the attempt, and with it the child's end
        // of the pair: a fork that fails ends the wait below.
        let spawning = thread::Builder::new().spawn_scoped(scope, move || command.spawn())?;
        held = read_child_pid(&mut ours);
        if let Some(pid) = held {
            before_exec(pid);
            // Fails when the child was killed meanwhile; waiting for it tells.
            let _ = ours.write_all(&[0]);
        }
        let ended = spawning.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the launching thread panicked")))
    });
    match spawned {
        Ok(child) => Ok(LaunchedProgram { child }),
        Err(source) if held.is_some() => Err(LaunchError::from_exec(name, source)),
        Err(source) => Err(failed(source)),
    }
}

/// Process id that the child sends; none when there is no child.
fn read_child_pid(ours: &mut UnixStream) -> Option<u32> {
    let mut pid = [0; 4];
    ours.read_exact(&mut pid).ok()?;
    Some(u32::from_ne_bytes(pid))
}

fn stop_before_exec(command: &mut Command, mut theirs: UnixStream, ours: RawFd) {
    let limits = original_limits();
    let hold = move || {
        // In the child this is a copy that nobody uses; with it open, the child would not notice
        // the parent's death.
        nix::unistd::close(ours)?;
        theirs.write_all(&std::process::id().to_ne_bytes())?;
        let mut go = [0];
        if theirs.read_exact(&mut go).is_err() {
            // The caller is dead, and an error could be told to nobody. No exit handlers run.
            kill(Pid::this(), Signal::SIGKILL)?;
        }
        if let Some((soft, hard)) = limits {
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
        }
        // The caller reads its signals; the program shall receive its own.
        Ok(SigSet::empty().thread_set_mask()?)
    };
    // SAFETY: between fork and exec the hook only closes, writes and reads
    // descriptors, asks for the pid, kills itself, sets limits and the signal mask, all of which are
    // async-signal-safe, and neither allocates nor takes a lock.
    unsafe { command.pre_exec(hold) };
}
