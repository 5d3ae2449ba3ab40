//! A process that stays the one that was meant, whatever becomes of its number.
//!
//! Between a look at `/proc/PID` and an act by number the process may end, and its number be given
//! to another. An open `/proc/PID` belongs to the process instead: nothing can be read in it once
//! that is gone, and `pidfd_send_signal(2)` takes it as well as a descriptor of `pidfd_open(2)`
//! (since Linux 5.1).

use super::ProcError;
use super::list::{read_stat, unless_gone};
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
use std::path::{Path, PathBuf};

/// A process, held by its directory in `/proc`.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    pid: u32,
    start_ticks: u64,
    dir: OwnedFd,
}

impl ProcessHandle {
    /// Opens the process that has this number now, below `root`; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be opened although it may be there, as when descriptors are short.
    pub(crate) fn open_current(root: &Path, pid: u32) -> Result<Option<Self>, ProcError> {
        let path = root.join(format!("proc/{pid}"));
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = open(&path, flags, Mode::empty()).map_err(|e| ProcError::io(&path, &e.into()));
        let Some(dir) = unless_gone(opened)? else {
            return Ok(None);
        };
        let stat = stat_in(&dir, pid)?;
        Ok(stat.map(|stat| Self {
            pid,
            start_ticks: stat.start_ticks,
            dir,
        }))
    }

    /// Opens the process of this number and start; `None` if it is gone.
    ///
    /// # Errors
    /// Those of [`ProcessHandle::open_current`].
    pub(crate) fn open(root: &Path, pid: u32, start_ticks: u64) -> Result<Option<Self>, ProcError> {
        let handle = Self::open_current(root, pid)?;
        Ok(handle.filter(|handle| handle.start_ticks == start_ticks))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns true if the process has not ended; a zombie counts, as it keeps its number.
    ///
    /// # Errors
    /// Those of [`ProcessHandle::open_current`].
    pub(crate) fn is_there(&self) -> Result<bool, ProcError> {
        let stat = stat_in(&self.dir, self.pid)?;
        Ok(stat.is_some_and(|stat| stat.start_ticks == self.start_ticks))
    }

    /// Text of a file in the process's directory; `None` if the process is gone.
    ///
    /// # Errors
    /// Those of [`ProcessHandle::open_current`].
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>, ProcError> {
        text_in(&self.dir, self.pid, name)
    }

    /// Sends the process a signal; returns false if it has ended.
    ///
    /// # Errors
    /// When the kernel does not permit the signal, or answers anything but success and `ESRCH`.
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
        // SIGCONT does no harm to a stranger. To stay stopped does, if nothing can be looked up.
        match self.is_there() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(_) if signal == Signal::SIGCONT => {}
            Err(error) => return Err(error.errno()),
        }
        match kill(number, signal) {
            Err(Errno::ESRCH) => return Ok(false),
            result => result?,
        }
        // It was there a moment ago, and one that was stopped must be accounted for.
        let is_meant = self.is_there().unwrap_or(true);
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
    match ProcessHandle::open(root, pid, start_ticks) {
        Ok(Some(process)) => return process.send(Signal::SIGCONT),
        Ok(None) => return Ok(false),
        Err(_) => {}
    }
    let has_ended = match read_stat(root, pid, pid) {
        Ok(stat) => stat.start_ticks != start_ticks,
        Err(error) => error == ProcError::Gone,
    };
    if has_ended {
        return Ok(false);
    }
    // Descriptors may be short. To stay stopped does harm; SIGCONT does none to a stranger that may
    // have the number by now.
    match kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT) {
        Err(Errno::ESRCH) => Ok(false),
        sent => sent.map(|()| true),
    }
}

fn stat_in(dir: &OwnedFd, pid: u32) -> Result<Option<Stat>, ProcError> {
    let name = format!("task/{pid}/stat");
    let Some(text) = text_in(dir, pid, &name)? else {
        return Ok(None);
    };
    let parsed = Stat::parse(text.as_bytes());
    let stat = parsed.map_err(|error| ProcError::malformed(&path_of(pid, &name), error))?;
    Ok(Some(stat))
}

fn text_in(dir: &OwnedFd, pid: u32, name: &str) -> Result<Option<String>, ProcError> {
    let read = || -> std::io::Result<Vec<u8>> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let mut bytes = Vec::new();
        File::from(openat(dir, name, flags, Mode::empty())?).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| ProcError::io(&path_of(pid, name), &error));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(unless_gone(bytes)?.map(text))
}

/// Path of a process's file, for messages.
fn path_of(pid: u32, name: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    const ROOT: &str = "/";

    fn sleeper() -> (Child, ProcessHandle) {
        let child = Command::new("sleep").arg("300").spawn().unwrap();
        let handle = ProcessHandle::open_current(ROOT.as_ref(), child.id())
            .unwrap()
            .unwrap();
        (child, handle)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn process_is_there_until_waited_for() {
        let (mut child, handle) = sleeper();
        assert_eq!(handle.is_there(), Ok(true));
        assert_eq!(handle.send(Signal::SIGCONT), Ok(true));
        child.kill().unwrap();
        assert_eq!(handle.is_there(), Ok(true));
        child.wait().unwrap();
        assert_eq!(handle.is_there(), Ok(false));
        assert_eq!(handle.send(Signal::SIGSTOP), Ok(false));
        assert_eq!(handle.send_by_number(Signal::SIGSTOP), Ok(false));
    }

    #[test]
    fn another_start_is_another_process() {
        let (child, handle) = sleeper();
        let other = handle.start_ticks + 1;
        let opened = ProcessHandle::open(ROOT.as_ref(), child.id(), other);
        assert!(opened.unwrap().is_none());
        end(child);
    }

    #[test]
    fn process_that_cannot_be_read_has_not_ended() {
        let dir = tempfile::tempdir().unwrap();
        // A folder in place of a file answers EISDIR to every user.
        std::fs::create_dir_all(dir.path().join("proc/10/task/10/stat")).unwrap();
        let opened = ProcessHandle::open(dir.path(), 10, 1);
        assert!(matches!(opened, Err(ProcError::Io { .. })), "{opened:?}");
        let gone = ProcessHandle::open(dir.path(), 11, 1);
        assert!(gone.unwrap().is_none());
    }

    /// Starts processes until one has this number; `None` if numbers cannot be chosen.
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
    fn later_owner_of_number_gets_no_signal() {
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
        assert_eq!(handle.is_there(), Ok(false));
        // A stop that was sent would be there by now: signals are delivered in the sender's call.
        let stopped = read_stat(ROOT.as_ref(), pid, pid).unwrap().state;
        assert_ne!(stopped, super::super::RunState::Stopped);
        end(stranger);
    }
}
