//! Starting a program that is managed before its first instruction.
//!
//! The standard library forks and execs, with its lookup in `PATH` and its report of exec errors. A
//! hook in the child stops it between the two, until the parent is done with its preparations. As
//! `spawn` returns only after the exec, it runs on a thread of its own. In the child nothing but
//! async-signal-safe calls are made, so other threads of the parent do no harm.
//!
//! The program stays in the caller's process group, so the terminal treats the two as one job.
//! Handlers do not survive an exec; signals that the caller was started with ignored, as under
//! `nohup`, stay ignored; the mask of blocked signals is emptied and SIGPIPE is as by default.

use nix::errno::Errno;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, rlim_t, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::Serialize;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;
use thiserror::Error;

/// Environment variable that marks the programs of a run.
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
    /// Time after its exec.
    started: Instant,
    /// CPU time of this process and its readers of code at that time, s.
    own_before_s: f64,
    times: OnceCell<CommandTimes>,
}

/// Times of a command from its exec to its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CommandTimes {
    /// Wall-clock time, s.
    pub wall_s: f64,
    /// CPU time of the command and of the descendants that were waited for, s.
    pub cpu_s: f64,
    /// CPU time that Consort used meanwhile, without its guardian, s.
    pub own_cpu_s: f64,
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
    /// `ECHILD` once the program's end was reported.
    pub fn next_event(&self, block: bool) -> Result<Option<ChildEvent>, Errno> {
        // The kernel adds the CPU time of a child when its end is reported. No other child is waited
        // for meanwhile, so that the difference is that of `wait4(2)`.
        let children_before_s = children_cpu_s();
        let event = next_event(self.kernel_pid(), block)?;
        if event.and_then(exit_code).is_some() {
            // Set only once, because an end is reported once.
            let _ = self.times.set(CommandTimes {
                wall_s: self.started.elapsed().as_secs_f64(),
                cpu_s: children_cpu_s() - children_before_s,
                own_cpu_s: own_cpu_s() - self.own_before_s,
            });
        }
        Ok(event)
    }

    /// Times of the program; `None` until its end was reported.
    pub fn times(&self) -> Option<CommandTimes> {
        self.times.get().copied()
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

/// CPU time of all children that have ended and been waited for, including their children, s. The
/// guardian does not count, because it still runs.
pub(crate) fn children_cpu_s() -> f64 {
    cpu_s(UsageWho::RUSAGE_CHILDREN)
}

fn own_cpu_s() -> f64 {
    cpu_s(UsageWho::RUSAGE_SELF) + crate::reader::cpu_s()
}

fn cpu_s(who: UsageWho) -> f64 {
    getrusage(who).map_or(0.0, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}

/// Highest limit that is of use: some hosts allow 10^9, and programs make tables of that length.
const HIGHEST_DESCRIPTOR_LIMIT: rlim_t = 1 << 19;

/// Soft and hard limit before the soft one was raised.
static ORIGINAL_LIMITS: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Raises the soft limit on open files (`RLIMIT_NOFILE`) of this process as far as the hard one
/// allows. Call it before anything that shares out descriptors.
///
/// Managing takes descriptors for each thread, and the usual soft limit of 1,024 exists for programs
/// that use `select(2)`, which Consort does not.
pub fn raise_descriptor_limit() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let wanted = hard.min(HIGHEST_DESCRIPTOR_LIMIT);
    if soft >= wanted {
        return;
    }
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => drop(ORIGINAL_LIMITS.set((soft, hard))),
        Err(error) => tracing::debug!(%error, "the limit on open files stays {soft}"),
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
    // On a thread of its own, because `spawn` returns only after the exec, which waits for this
    // thread.
    let spawned = thread::scope(|scope| {
        // The command is dropped after the attempt, and with it the child's end
        // of the pair: a fork that fails ends the wait below.
        let start = move || {
            let child = command.spawn()?;
            Ok(LaunchedProgram {
                child,
                started: Instant::now(),
                own_before_s: own_cpu_s(),
                times: OnceCell::new(),
            })
        };
        let spawning = thread::Builder::new().spawn_scoped(scope, start)?;
        // The child sends its pid. The read fails if there is no child.
        let mut pid = [0; 4];
        held = (ours.read_exact(&mut pid).ok()).map(|()| u32::from_ne_bytes(pid));
        if let Some(pid) = held {
            before_exec(pid);
            // The write fails if the child was killed meanwhile, which waiting for it shows.
            let _ = ours.write_all(&[0]);
        }
        let ended = spawning.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the launching thread panicked")))
    });
    match spawned {
        Ok(launched) => Ok(launched),
        Err(source) if held.is_some() => Err(LaunchError::from_exec(name, source)),
        Err(source) => Err(failed(source)),
    }
}

fn stop_before_exec(command: &mut Command, mut theirs: UnixStream, ours: RawFd) {
    // The program gets the limits that Consort was started with.
    let limits = ORIGINAL_LIMITS.get().copied();
    let hold = move || {
        // The child has a copy of the parent's end. While it is open, the child would not notice the
        // parent's death.
        nix::unistd::close(ours)?;
        theirs.write_all(&std::process::id().to_ne_bytes())?;
        let mut go = [0];
        if theirs.read_exact(&mut go).is_err() {
            // The parent is dead, so that no process could read an error. SIGKILL runs no exit handlers.
            kill(Pid::this(), Signal::SIGKILL)?;
        }
        if let Some((soft, hard)) = limits {
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
        }
        // The caller reads its signals; the program shall receive its own.
        Ok(SigSet::empty().thread_set_mask()?)
    };
    // SAFETY: between fork and exec the hook only closes, writes and reads descriptors, reads the pid,
    // kills itself, and sets limits and the signal mask. All these calls are async-signal-safe, and
    // the hook neither allocates nor takes a lock.
    unsafe { command.pre_exec(hold) };
}

/// A change of a child's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// The child exited with a code.
    Exited(i32),
    /// A signal killed the child.
    Killed(Signal),
    /// A signal stopped the child.
    Stopped(Signal),
    /// The child continues after a stop.
    Continued,
}

/// Exit status that passes a child's end on: its own code, or 128 and the number of the signal that
/// killed it. None while it lives.
pub fn exit_code(event: ChildEvent) -> Option<u8> {
    match event {
        // The kernel keeps eight bits of an exit code.
        ChildEvent::Exited(code) => Some((code & 0xff) as u8),
        ChildEvent::Killed(signal) => u8::try_from(128 + signal as i32).ok(),
        ChildEvent::Stopped(_) | ChildEvent::Continued => None,
    }
}

/// Waits for the next change of a child's state; without `block`, none if nothing has changed.
pub(crate) fn next_event(pid: Pid, block: bool) -> Result<Option<ChildEvent>, Errno> {
    let mut flags = WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
    flags.set(WaitPidFlag::WNOHANG, !block);
    // A signal may interrupt the call.
    loop {
        match waitpid(pid, Some(flags)) {
            Err(Errno::EINTR) => {}
            status => return status.map(event),
        }
    }
}

fn event(status: WaitStatus) -> Option<ChildEvent> {
    match status {
        WaitStatus::Exited(_, code) => Some(ChildEvent::Exited(code)),
        WaitStatus::Signaled(_, signal, _) => Some(ChildEvent::Killed(signal)),
        WaitStatus::Stopped(_, signal) => Some(ChildEvent::Stopped(signal)),
        WaitStatus::Continued(_) => Some(ChildEvent::Continued),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(exit_code(ChildEvent::Exited(0)), Some(0));
        assert_eq!(exit_code(ChildEvent::Exited(300)), Some(44));
        assert_eq!(exit_code(ChildEvent::Killed(Signal::SIGTERM)), Some(143));
        assert_eq!(exit_code(ChildEvent::Stopped(Signal::SIGTSTP)), None);
    }
}
