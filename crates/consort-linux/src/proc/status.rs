//! The file `/proc/<pid>/status` (`proc_pid_status(5)`).

use super::ProcError;
use super::list::{read_stat, thread_dir};
use crate::read;
use consort_core::ThreadId;
use std::path::Path;
use std::str::FromStr;

/// Text of a status file. A thread's name cannot imitate a line: the kernel escapes newlines in
/// this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcStatus(String);

impl ProcStatus {
    pub(crate) fn read(path: &Path) -> Result<Self, ProcError> {
        let text = read::bytes(path).map_err(|e| ProcError::io(path, &e))?;
        Ok(Self(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Text after a field's name and colon, without surrounding blanks; `None` without such a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.trim())
    }

    /// Value of a field that holds nothing else.
    pub(crate) fn value<T: FromStr>(&self, name: &str) -> Option<T> {
        self.field(name)?.parse().ok()
    }
}

#[cfg(test)]
impl From<&str> for ProcStatus {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// The name of a process, as the kernel has it.
pub(crate) fn name_of(root: &Path, pid: u32) -> Result<String, ProcError> {
    let path = root.join("proc").join(pid.to_string()).join("comm");
    let name = read::bytes(&path).map_err(|error| ProcError::io(&path, &error))?;
    let name = String::from_utf8_lossy(&name);
    Ok(name.trim_end_matches('\n').to_owned())
}

/// The users that a thread acts for: real, effective, saved and that of files (`credentials(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadUsers([u32; 4]);

impl ThreadUsers {
    /// Users of the first thread of a process.
    pub(crate) fn from_process(root: &Path, pid: u32) -> Result<Self, ProcError> {
        let path = root.join("proc").join(pid.to_string()).join("status");
        Ok(Self::from_status(&ProcStatus::read(&path)?))
    }

    /// Users of a thread.
    pub(crate) fn from_thread(root: &Path, id: ThreadId) -> Result<Self, ProcError> {
        let status = ProcStatus::read(&thread_dir(root, id.pid, id.tid).join("status"))?;
        // Read after the users: they are those of this thread and of no later one.
        match read_stat(root, id.pid, id.tid)?.start_ticks == id.start_ticks {
            true => Ok(Self::from_status(&status)),
            false => Err(ProcError::Gone),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_uids(uids: [u32; 4]) -> Self {
        Self(uids)
    }

    /// Users as a status says; that of no account (`u32::MAX`) in place of a missing one.
    fn from_status(status: &ProcStatus) -> Self {
        let text = status.field("Uid").unwrap_or_default();
        let mut uids = text.split_ascii_whitespace().map(|uid| uid.parse().ok());
        Self(std::array::from_fn(|_| {
            uids.next().flatten().unwrap_or(u32::MAX)
        }))
    }

    /// The real user, who started the thread.
    pub(crate) fn real_uid(self) -> u32 {
        self.0[0]
    }

    /// Returns a user other than this one that the thread acts for or can become, as one that
    /// executes a setuid file; `None` if the thread belongs to the user alone.
    pub(crate) fn other_than(self, uid: u32) -> Option<u32> {
        self.0.into_iter().find(|&of| of != uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = ProcStatus::from("Name:\tx\nNStgid:\t1\nTgid:\t42\nGroups:\t\n");
        assert_eq!(status.value::<u32>("Tgid"), Some(42));
        assert_eq!(status.value::<u32>("Name"), None);
        assert_eq!(status.field("Groups"), Some(""));
        assert_eq!(status.field("Tg"), None);
    }

    #[test]
    fn a_process_that_is_not_there_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let status = ProcStatus::read(&dir.path().join("status"));
        assert_eq!(status, Err(ProcError::Gone));
    }

    #[test]
    fn this_process_has_a_name_and_an_owner() {
        let root = Path::new("/");
        let own = std::process::id();
        assert!(name_of(root, own).is_ok_and(|name| !name.is_empty()));
        let users = ThreadUsers::from_process(root, own).unwrap();
        assert_eq!(users.0[0], nix::unistd::getuid().as_raw());
        let none = ThreadUsers::from_process(root, u32::MAX);
        assert_eq!(none, Err(ProcError::Gone));
    }

    #[test]
    fn setuid_program_does_not_belong_to_its_user_alone() {
        let of = |uids: &str| {
            let status = format!("Uid:\t{uids}\nGid:\t7\t7\t7\t7\n");
            ThreadUsers::from_status(&ProcStatus::from(status.as_str()))
        };
        assert_eq!(of("7\t7\t7\t7").other_than(7), None);
        assert_eq!(of("7\t0\t0\t0").other_than(7), Some(0));
        // One that can become root again at any time.
        assert_eq!(of("7\t7\t0\t7").other_than(7), Some(0));
        assert_eq!(of("").other_than(7), Some(u32::MAX));
    }

    #[test]
    fn users_of_later_thread_are_not_returned() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(11, "x", 5)]);
        let id = |start_ticks| ThreadId {
            pid: 10,
            tid: 11,
            start_ticks,
        };
        let users = ThreadUsers::from_thread(dir.path(), id(5)).unwrap();
        assert_eq!(users.other_than(0), None);
        let later = ThreadUsers::from_thread(dir.path(), id(4));
        assert_eq!(later, Err(ProcError::Gone));
    }
}
