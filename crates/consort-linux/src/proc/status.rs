//! The file `/proc/<pid>/status` (`proc_pid_status(5)`).

use super::error::ProcError;
use crate::read;
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

    /// Text after a field's name and colon, without surrounding blanks; none without such a field.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
