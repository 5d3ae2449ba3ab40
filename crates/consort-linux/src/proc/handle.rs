//! A process that stays the one that was meant, whatever becomes of its number.
//!
//! Between a look at `/proc/PID` and an act by number the process may end, and its number be given
//! to another. An open `/proc/PID` belongs to the process instead: nothing can be read in it once
//! that is gone, and `pidfd_send_signal(2)` takes it as well as a descriptor of `pidfd_open(2)`
//! (since Linux 5.1).

use super::list::read_stat;
use super::stat::Stat;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use rustix::process::pidfd_send_signal;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A process, held by its directory in `/proc`.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    pid: u32,
    start_ticks: u64,
    dir: OwnedFd,
}

impl ProcessHandle {
    /// Opens the process that has this number now, below `root`; none when there is none.
    pub(crate) fn of(root: &Path, pid: u32) -> Option<Self> {
        let path = root.join(format!("proc/{pid}"));
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = open(&path, flags, Mode::empty()).ok()?;
        let start_ticks = stat_in(&dir, pid)?.start_ticks;
        Some(Self {
            pid,
            start_ticks,
            dir,
        })
    }

    /// Opens the process of this number and start; none when it is gone.
    pub(crate) fn open(root: &Path, pid: u32, start_ticks: u64) -> Option<Self> {
        Self::of(root, pid).filter(|handle| handle.start_ticks == start_ticks)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns true if the process has not ended; a zombie counts, as it keeps its number.
    pub(crate) fn is_there(&self) -> bool {
        let stat = stat_in(&self.dir, self.pid);
        stat.is_some_and(|stat| stat.start_ticks == self.start_ticks)
    }

    /// Text of a file in the process's directory; none when the process is gone.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        text_in(&self.dir, name)
    }

    /// Sends the process a signal; returns false if it has ended.
    ///
    /// # Errors
    /// When the kernel does not permit the signal, or answers anything but success and
    /// `ESRCH`.
    pub(crate) fn send(&self, signal: Signal) -> Result<bool, Errno> {
        let Some(wanted) = rustix::process::Signal::from_named_raw(signal as i32) else {
            return Err(Errno::EINVAL);
        };
        match pidfd_send_signal(&self.dir, wanted).map_err(|e| Errno::from_raw(e.raw_os_error())) {
            Ok(()) => Ok(true),
            Err(Errno::ESRCH) => Ok(false),
            // Too old a kernel, or a filter of system calls that does not know the call.
            Err(Errno::ENOSYS | Errno::EPERM) => self.send_by_number(signal),
            Err(errno) => Err(errno),
        }
    }

    /// Sends the signal by number, and looks again: a stranger that was stopped instead is sent
    /// SIGCONT.
    fn send_by_number(&self, signal: Signal) -> Result<bool, Errno> {
        let number = Pid::from_raw(self.pid.cast_signed());
        if !self.is_there() {
            return Ok(false);
        }
        match kill(number, signal) {
            Err(Errno::ESRCH) => return Ok(false),
            result => result?,
        }
        let is_meant = self.is_there();
        if !is_meant && signal == Signal::SIGSTOP {
            // Gone by now, or not stopped: then it does not matter either.
            let _ = kill(number, Signal::SIGCONT);
        }
        Ok(is_meant)
    }
}

/// Continues the process of this number and start; returns false if it has ended.
///
/// # Errors
/// Those of [`ProcessHandle::send`].
pub(crate) fn continue_process(root: &Path, pid: u32, start_ticks: u64) -> Result<bool, Errno> {
    if let Some(process) = ProcessHandle::open(root, pid, start_ticks) {
        return process.send(Signal::SIGCONT);
    }
    let has_ended = match read_stat(root, pid, pid) {
        Ok(stat) => stat.start_ticks != start_ticks,
        Err(error) => !error.is_passing(),
    };
    if has_ended {
        return Ok(false);
    }
    // Descriptors are short. To stay stopped does harm; SIGCONT does none to a stranger that may
    // have the number by now.
    match kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT) {
        Err(Errno::ESRCH) => Ok(false),
        sent => sent.map(|()| true),
    }
}

fn stat_in(dir: &OwnedFd, pid: u32) -> Option<Stat> {
    let text = text_in(dir, &format!("task/{pid}/stat"))?;
    Stat::parse(text.as_bytes()).ok()
}

fn text_in(dir: &OwnedFd, name: &str) -> Option<String> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let mut bytes = Vec::new();
    let mut file = File::from(openat(dir, name, flags, Mode::empty()).ok()?);
    file.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    const ROOT: &str = "/";

    fn sleeper() -> (Child, ProcessHandle) {
        let child = Command::new("sleep").arg("300").spawn().unwrap();
        let handle = ProcessHandle::of(ROOT.as_ref(), child.id()).unwrap();
        (child, handle)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_there_until_it_was_waited_for() {
        let (mut child, handle) = sleeper();
        assert!(handle.is_there());
        assert_eq!(handle.send(Signal::SIGCONT), Ok(true));
        child.kill().unwrap();
        assert!(handle.is_there());
        child.wait().unwrap();
        assert!(!handle.is_there());
        assert_eq!(handle.send(Signal::SIGSTOP), Ok(false));
        assert_eq!(handle.send_by_number(Signal::SIGSTOP), Ok(false));
    }

    #[test]
    fn another_start_is_another_process() {
        let (child, handle) = sleeper();
        let other = handle.start_ticks + 1;
        assert!(ProcessHandle::open(ROOT.as_ref(), child.id(), other).is_none());
        end(child);
    }

    /// Starts processes until one has this number; none where numbers cannot be chosen.
    fn reuse(pid: u32) -> Option<Child> {
        for _ in 0..100 {
            let last = (pid - 1).to_string();
            std::fs::write("/proc/sys/kernel/ns_last_pid", last).ok()?;
            let child = Command::new("sleep").arg("300").spawn().unwrap();
            if child.id() == pid {
                return Some(child);
            }
            end(child);
        }
        None
    }

    #[test]
    fn whoever_is_given_the_number_later_gets_no_signal() {
        let (child, handle) = sleeper();
        let pid = child.id();
        end(child);
        let Some(stranger) = reuse(pid) else {
            use std::io::Write;
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the next pid cannot be chosen here"
            );
            return;
        };
        assert_eq!(handle.send(Signal::SIGSTOP), Ok(false));
        assert!(!handle.is_there());
        // A stop that was sent would be there by now: signals are delivered in the sender's call.
        let stopped = read_stat(ROOT.as_ref(), pid, pid).unwrap().state;
        assert_ne!(stopped, super::super::RunState::Stopped);
        end(stranger);
    }
}
