//! `perf_event_open(2)`, with errors that suggest a remedy.

use nix::errno::Errno;
use perf_event_open_sys as sys;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use thiserror::Error;

/// The thread or PU that an event is counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfTarget {
    /// One thread wherever it runs.
    Thread {
        /// Kernel thread id; 0 is the caller.
        tid: u32,
    },
    /// One thread while it runs on one PU. With `inherit`, an event that has a
    /// ring buffer must be of this kind (`perf_event_open(2)`, "inherit").
    ThreadOnPu {
        /// Kernel thread id; 0 is the caller.
        tid: u32,
        /// The PU's number.
        pu: u32,
    },
    /// Everything that runs on one PU; for root, CAP_PERFMON and `perf_event_paranoid` 0 or less.
    Pu {
        /// The PU's number.
        pu: u32,
    },
}

impl PerfTarget {
    fn pid_and_cpu(self) -> (i32, i32) {
        let id = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        match self {
            Self::Thread { tid } => (id(tid), -1),
            Self::ThreadOnPu { tid, pu } => (id(tid), id(pu)),
            Self::Pu { pu } => (-1, id(pu)),
        }
    }
}

/// Reason for which an event could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PerfError {
    /// `perf_event_paranoid`, a missing capability or a seccomp filter forbids it.
    #[error(
        "perf events are not permitted; lower kernel.perf_event_paranoid to 2 or grant CAP_PERFMON"
    )]
    NotPermitted,
    /// The kernel has no perf events at all.
    #[error("this kernel has no perf events (CONFIG_PERF_EVENTS)")]
    NoPerf,
    /// There is no PMU for the event, as in most virtual machines.
    #[error("no PMU on this host offers the event")]
    NoSuchEvent,
    /// The thread is gone.
    #[error("the thread has exited")]
    Gone,
    /// File descriptors are exhausted.
    #[error("out of file descriptors; raise the limit on open files")]
    NoFds,
    /// The locked-memory allowance for ring buffers is used up.
    #[error("no memory left for ring buffers; raise kernel.perf_event_mlock_kb")]
    NoMemory,
    /// The kernel gave another answer.
    #[error("perf_event_open failed: {0}")]
    Other(Errno),
}

impl From<Errno> for PerfError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EACCES | Errno::EPERM => Self::NotPermitted,
            Errno::ENOSYS => Self::NoPerf,
            Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP => Self::NoSuchEvent,
            Errno::ESRCH => Self::Gone,
            Errno::EMFILE | Errno::ENFILE => Self::NoFds,
            Errno::ENOMEM => Self::NoMemory,
            other => Self::Other(other),
        }
    }
}

/// Opens one event, close-on-exec, optionally as a member of a group.
///
/// # Errors
/// When the kernel refuses, with its answer as a [`PerfError`].
pub fn open(
    attr: &mut sys::bindings::perf_event_attr,
    target: PerfTarget,
    group: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, PerfError> {
    attr.size = size_of::<sys::bindings::perf_event_attr>() as u32;
    let (pid, cpu) = target.pid_and_cpu();
    let leader = group.map_or(-1, |fd| fd.as_raw_fd());
    // Programs that Consort launches must not inherit the descriptor.
    let flags = u64::from(sys::bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` is a valid, exclusively borrowed attribute block whose size field is set.
    let fd = unsafe { sys::perf_event_open(attr, pid, cpu, leader, flags) };
    if fd < 0 {
        return Err(Errno::last().into());
    }
    // SAFETY: the kernel has just returned this descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The host's `kernel.perf_event_max_sample_rate`, if it can be read: events that ask for more
/// samples per second are refused. The kernel itself lowers it where sampling takes too long.
pub(crate) fn max_sample_rate_hz(root: &Path) -> Option<u64> {
    let file = root.join("proc/sys/kernel/perf_event_max_sample_rate");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The host's `kernel.perf_event_paranoid`, if it can be read.
pub fn paranoid_level(root: &Path) -> Option<i32> {
    let path = root.join("proc/sys/kernel/perf_event_paranoid");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
