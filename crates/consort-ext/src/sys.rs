//! The system calls that hand threads over and take them back.

use consort_core::ThreadId;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The kernel's number of the policy whose threads a partial sched_ext scheduler governs.
pub(crate) const SCHED_EXT: i32 = 7;
/// The default policy of threads.
pub(crate) const ORDINARY: i32 = 0;
/// A bit next to the policy: children start without it.
const RESET_ON_FORK: i32 = 0x4000_0000;
/// Since Linux 6.9: the descriptor names the thread, not its process.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;
const PR_SCHED_CORE: libc::c_int = 62;
const PR_SCHED_CORE_GET: libc::c_ulong = 0;

/// A thread's scheduling policy, and whether its children start without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchedulingPolicy {
    pub(crate) number: i32,
    reset_on_fork: bool,
}

impl SchedulingPolicy {
    pub(crate) fn with_number(self, number: i32) -> Self {
        Self { number, ..self }
    }

    fn code(self) -> i32 {
        self.number | if self.reset_on_fork { RESET_ON_FORK } else { 0 }
    }
}

/// A descriptor of one thread, for the kernel's tables that belong to threads.
pub(crate) fn open(thread: ThreadId) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, thread.tid, PIDFD_THREAD) };
    let fd = i32::try_from(check(fd)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened the descriptor for us alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // The number may have been given to a later thread before it was opened, but not afterwards.
    if start_ticks(thread)? == thread.start_ticks {
        return Ok(fd);
    }
    Err(io::Error::from_raw_os_error(libc::ESRCH))
}

/// The bytes under which a table finds the thread.
pub(crate) fn key(fd: &OwnedFd) -> [u8; 4] {
    fd.as_raw_fd().to_ne_bytes()
}

/// Field 22 of the thread's `stat`. The name in field 2 may contain anything, so the fields are
/// counted from its last parenthesis.
fn start_ticks(thread: ThreadId) -> io::Result<u64> {
    let path = format!("/proc/{}/task/{}/stat", thread.pid, thread.tid);
    let text = std::fs::read_to_string(path)?;
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = behind_name.split_whitespace().nth(19);
    let unreadable = || io::Error::other("no start time in the thread's stat");
    field
        .and_then(|ticks| ticks.parse().ok())
        .ok_or_else(unreadable)
}

pub(crate) fn policy(thread: ThreadId) -> io::Result<SchedulingPolicy> {
    // SAFETY: the call takes a number and no memory.
    let code = unsafe { libc::sched_getscheduler(raw_tid(thread)) };
    let code = i32::try_from(check(code.into())?).map_err(io::Error::other)?;
    Ok(SchedulingPolicy {
        number: code & !RESET_ON_FORK,
        reset_on_fork: code & RESET_ON_FORK != 0,
    })
}

/// Nice value, mask and control group stay as they are.
pub(crate) fn set_policy(thread: ThreadId, policy: SchedulingPolicy) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads `none`, which lives until the call returns.
    let result =
        unsafe { libc::sched_setscheduler(raw_tid(thread), policy.code(), &raw const none) };
    check(result.into()).map(drop)
}

/// The thread's core-scheduling cookie; 0 if it has none, or if the kernel does not support
/// cookies.
pub(crate) fn cookie(thread: ThreadId) -> u64 {
    let mut cookie = 0u64;
    let one_thread: libc::c_ulong = 0;
    // SAFETY: the kernel writes eight bytes to `cookie`, which lives until the call returns.
    let result = unsafe {
        libc::prctl(
            PR_SCHED_CORE,
            PR_SCHED_CORE_GET,
            libc::c_ulong::from(thread.tid),
            one_thread,
            &raw mut cookie,
        )
    };
    if result == 0 { cookie } else { 0 }
}

fn raw_tid(thread: ThreadId) -> libc::pid_t {
    libc::pid_t::from_ne_bytes(thread.tid.to_ne_bytes())
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> ThreadId {
        let tid = u32::try_from(nix::unistd::gettid().as_raw()).unwrap();
        let thread = ThreadId {
            pid: std::process::id(),
            tid,
            start_ticks: 0,
        };
        let start_ticks = start_ticks(thread).unwrap();
        ThreadId {
            start_ticks,
            ..thread
        }
    }

    #[test]
    fn policy_reads_back_as_set() {
        let before = policy(me()).unwrap();
        let batch = before.with_number(libc::SCHED_BATCH);
        set_policy(me(), batch).unwrap();
        assert_eq!(policy(me()).unwrap(), batch);
        set_policy(me(), before).unwrap();
    }

    #[test]
    fn ordinary_threads_have_no_cookie() {
        assert_eq!(cookie(me()), 0);
    }

    #[test]
    fn later_thread_with_same_number_is_refused() {
        let later = ThreadId {
            start_ticks: me().start_ticks + 1,
            ..me()
        };
        // Kernels before 6.9 have no descriptors of threads; they refuse with another error.
        let error = open(later).unwrap_err().raw_os_error();
        assert!(
            matches!(error, Some(libc::ESRCH | libc::EINVAL)),
            "{error:?}"
        );
    }
}
