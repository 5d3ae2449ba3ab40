//! `perf_event_open(2)`, with errors that suggest a remedy.

use nix::errno::Errno;
use perf_event_open_sys as sys;
use perf_event_open_sys::bindings as b;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use thiserror::Error;

/// The thread or CPU that an event is counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfTarget {
    /// One thread wherever it runs.
    Thread {
        /// Kernel thread id; 0 is the caller.
        tid: u32,
    },
    /// One thread while it runs on one CPU. With `inherit`, an event that has a
    /// ring buffer must be of this kind (`perf_event_open(2)`, "inherit").
    ThreadOnPu {
        /// Kernel thread id; 0 is the caller.
        tid: u32,
        /// The CPU's number.
        pu: u32,
    },
    /// Everything that runs on one CPU; for root, CAP_PERFMON and `perf_event_paranoid` 0 or less.
    Pu {
        /// The CPU's number.
        pu: u32,
    },
}

impl PerfTarget {}

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
    // The kernel takes -1 for any CPU or, with a CPU, for any thread.
    let id = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let (pid, cpu) = match target {
        PerfTarget::Thread { tid } => (id(tid), -1),
        PerfTarget::ThreadOnPu { tid, pu } => (id(tid), id(pu)),
        PerfTarget::Pu { pu } => (-1, id(pu)),
    };
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

/// Records that an event writes into its ring besides samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sideband {
    /// Samples only.
    None,
    /// Thread starts and ends, names, executable mappings.
    Tasks,
}

/// The threads that an event follows, and the moment from which it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowMode {
    /// The thread alone, at once.
    Thread,
    /// The thread and all that it will ever start, at once.
    Offspring,
    /// The thread and all that it will ever start, from its next `exec` on.
    OffspringFromExec,
    /// Whatever runs on the CPU, from the moment on that the event is enabled.
    Everyone,
}

/// The fields that every sample carries, in the order in which the kernel writes them.
pub(crate) const SAMPLE_FIELDS: u64 =
    (b::PERF_SAMPLE_IP | b::PERF_SAMPLE_TID | b::PERF_SAMPLE_TIME | b::PERF_SAMPLE_CPU) as u64;

/// Registers in every sample, by the kernel's bits (`asm/perf_regs.h`). On `x86_64` they are the
/// general ones, rax to rsp and r8 to r15, from which addresses are computed. Elsewhere it is the
/// instruction pointer alone: with any register the kernel writes the mode that the thread ran in.
const REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    0xff_00ff
} else if cfg!(target_arch = "x86") {
    1 << 8
} else if cfg!(target_arch = "aarch64") {
    1 << 32
} else {
    0
};

/// A CPU-clock sampler of user-mode instruction pointers at `rate_hz` samples per second of CPU
/// time. The reader is woken when `wakeup_bytes` are waiting in the ring.
pub(crate) fn cpu_clock(
    rate_hz: u64,
    follow: FollowMode,
    sideband: Sideband,
    wakeup_bytes: u32,
) -> b::perf_event_attr {
    let mut attr = b::perf_event_attr {
        type_: b::PERF_TYPE_SOFTWARE,
        config: u64::from(b::PERF_COUNT_SW_CPU_CLOCK),
        sample_type: match REGISTERS {
            0 => SAMPLE_FIELDS,
            _ => SAMPLE_FIELDS | u64::from(b::PERF_SAMPLE_REGS_USER),
        },
        sample_regs_user: REGISTERS,
        clockid: nix::libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_freq = rate_hz.max(1);
    attr.__bindgen_anon_2.wakeup_watermark = wakeup_bytes;
    attr.set_freq(1);
    attr.set_watermark(1);
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    // With the kernel's side, `perf_event_paranoid` 2 would refuse the event.
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    set_follow(&mut attr, follow);
    if sideband == Sideband::Tasks {
        attr.set_task(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_mmap(1);
        attr.set_mmap2(1);
    }
    attr
}

fn set_follow(attr: &mut b::perf_event_attr, follow: FollowMode) {
    let from_exec = follow == FollowMode::OffspringFromExec;
    let everyone = follow == FollowMode::Everyone;
    let inherits = matches!(
        follow,
        FollowMode::Offspring | FollowMode::OffspringFromExec
    );
    attr.set_inherit(u64::from(inherits));
    attr.set_disabled(u64::from(from_exec || everyone));
    attr.set_enable_on_exec(u64::from(from_exec));
    attr.set_exclude_idle(u64::from(everyone));
}
