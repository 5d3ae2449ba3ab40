//! Threads as `/proc` describes them: names, states, consumption and owners.
//!
//! Discovery and enactment both read these files, and must agree on the identity of a thread. Every
//! reader takes the directory that `/proc` is below.
//!
//! Pitfall: a thread may end between any two reads. [`ProcError::Gone`] is a normal answer,
//! not a failure.

mod handle;
mod list;
mod stat;

pub(crate) use handle::{ProcessHandle, continue_process};
#[cfg(test)]
pub(crate) use list::tests::process;
pub(crate) use list::{
    ProcStatus, ProgramProcesses, ThreadUsers, latest_number, name_of, numbers_in, parent_of,
    read_process, read_process_tree, read_processes, read_stat, thread_dir, unless_gone,
};
pub use list::{process_tree, threads_of};
#[cfg(test)]
pub(crate) use stat::tests::line_of;
pub use stat::{RunState, Stat, StatError};
pub(crate) use stat::{STAT_BYTES, read_open};

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use std::io;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// Reason for which a file in `/proc` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProcError {
    /// The thread has exited, or another has its tid now.
    #[error("the thread has exited")]
    Gone,
    /// The thread belongs to another user.
    #[error("not permitted to read {0}; run as the thread's owner or as root")]
    Denied(String),
    /// File descriptors are exhausted.
    #[error("out of file descriptors; raise the limit on open files")]
    NoFds,
    /// The text is not of the form that the kernel documents.
    #[error("{path}: {error}")]
    Malformed {
        /// The file.
        path: String,
        /// The departure from the documented form.
        error: StatError,
    },
    /// Reading failed otherwise.
    #[error("{path}: {errno}")]
    Io {
        /// The file.
        path: String,
        /// The kernel's answer.
        errno: Errno,
    },
}

impl ProcError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.display().to_string();
        match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
            Errno::ENOENT | Errno::ESRCH => Self::Gone,
            Errno::EACCES | Errno::EPERM => Self::Denied(path),
            Errno::EMFILE | Errno::ENFILE => Self::NoFds,
            errno => Self::Io { path, errno },
        }
    }

    /// Returns true if the same file may be read a moment later, as when descriptors or memory are
    /// short.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::NoFds => true,
            Self::Io { errno, .. } => matches!(
                errno,
                Errno::ENOMEM | Errno::EINTR | Errno::EAGAIN | Errno::EIO
            ),
            Self::Gone | Self::Denied(_) | Self::Malformed { .. } => false,
        }
    }

    /// The error of a mask that could not be read.
    pub(crate) fn from_mask_errno(tid: u32, errno: Errno) -> Self {
        match errno {
            Errno::ESRCH => Self::Gone,
            errno => Self::Io {
                path: format!("affinity of thread {tid}"),
                errno,
            },
        }
    }

    /// The nearest answer of the kernel; never `EINVAL`, which has a meaning of its own for masks.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::Gone => Errno::ESRCH,
            Self::Denied(_) => Errno::EACCES,
            Self::NoFds => Errno::EMFILE,
            Self::Malformed { .. } => Errno::EIO,
            Self::Io { errno, .. } => *errno,
        }
    }

    pub(crate) fn malformed(path: &Path, error: StatError) -> Self {
        let path = path.display().to_string();
        Self::Malformed { path, error }
    }
}

/// Length of a clock tick (`USER_HZ`, 100 per second on every architecture in use), ns.
pub(crate) fn tick_ns() -> u64 {
    let per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let per_s = per_s.and_then(|n| u64::try_from(n).ok());
    1_000_000_000 / per_s.filter(|&n| n > 0).unwrap_or(100)
}

/// Clock ticks since boot: the clock of threads' start times.
pub(crate) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
    let now_ns = now.map_or(0, |now| now.as_nanos());
    u64::try_from(now_ns / u128::from(tick_ns())).unwrap_or(u64::MAX)
}
