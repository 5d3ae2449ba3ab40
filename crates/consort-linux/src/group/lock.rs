//! The lock of a group: the run that holds it leads.
//!
//! The lock's file is deleted by its holder in the end. So a lock counts only if its file still has
//! its name; otherwise the next run would lock another file of the same name.

use super::error::GroupError;
use super::name::GroupName;
use crate::enact::RuntimeDir;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A group's files in a folder that was checked.
#[derive(Debug)]
pub(super) struct GroupFolder {
    dir: RuntimeDir,
    name: GroupName,
}

/// The lock, held as long as this value lives.
#[derive(Debug)]
pub(super) struct GroupLock {
    folder: GroupFolder,
    _file: File,
}

/// The group that a file belongs to, by its name.
pub(super) fn group_from_file_name(file: &str) -> Option<String> {
    let rest = file.strip_prefix("group-")?;
    let group = rest.strip_suffix(".lock").or(rest.strip_suffix(".socket"));
    group.map(str::to_owned)
}

impl GroupFolder {
    /// The folder in which a run leads the group already, or else the first in which one can lead. A
    /// leader may be in a later folder: its environment is another, or the first was full when it
    /// began.
    pub(super) fn new(dirs: &[PathBuf], name: &GroupName) -> Result<Self, GroupError> {
        let there = dirs.iter().filter_map(|dir| RuntimeDir::open(dir).ok());
        let mut there = there.map(|dir| Self::from_dir(dir, name.clone()));
        match there.find(Self::is_led) {
            Some(folder) => Ok(folder),
            None => Ok(Self::from_dir(
                RuntimeDir::open_first_usable(dirs)?,
                name.clone(),
            )),
        }
    }

    /// Returns true if another open file has the lock. The look takes the lock, shared, for a
    /// moment; a run that tries at this moment tries again.
    fn is_led(&self) -> bool {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = openat(
            &self.dir.handle,
            self.lock_name().as_str(),
            flags,
            Mode::empty(),
        );
        let shared = opened.map(|file| File::from(file).try_lock_shared());
        matches!(shared, Ok(Err(TryLockError::WouldBlock)))
    }

    pub(super) fn from_dir(dir: RuntimeDir, name: GroupName) -> Self {
        Self { dir, name }
    }

    pub(super) fn group(&self) -> &GroupName {
        &self.name
    }

    fn lock_name(&self) -> String {
        format!("group-{}.lock", self.name)
    }

    fn socket_name(&self) -> String {
        format!("group-{}.socket", self.name)
    }

    /// Path of the socket by way of the open folder: the folder cannot be exchanged, and however
    /// deep it lies, the path is short enough for a socket (108 bytes, `unix(7)`).
    pub(super) fn socket(&self) -> PathBuf {
        let fd = self.dir.handle.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{fd}")).join(self.socket_name())
    }

    /// Takes the lock; gives the folder back when another run has it.
    pub(super) fn lock(self) -> Result<Result<GroupLock, Self>, GroupError> {
        let file = self.open()?;
        match file.try_lock() {
            Ok(()) if self.is_current_file(&file) => Ok(Ok(GroupLock {
                folder: self,
                _file: file,
            })),
            Ok(()) | Err(TryLockError::WouldBlock) => Ok(Err(self)),
            Err(TryLockError::Error(source)) => Err(self.error("lock", source)),
        }
    }

    fn open(&self) -> Result<File, GroupError> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        openat(&self.dir.handle, self.lock_name().as_str(), flags, mode)
            .map(File::from)
            .map_err(|errno| self.error("open", errno.into()))
    }

    fn is_current_file(&self, file: &File) -> bool {
        let name = self.lock_name();
        let named = fstatat(
            &self.dir.handle,
            name.as_str(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        );
        matches!((named, fstat(file)), (Ok(a), Ok(b)) if a.st_ino == b.st_ino)
    }

    fn error(&self, action: &'static str, source: io::Error) -> GroupError {
        let path = self.dir.path.join(self.lock_name());
        GroupError::File {
            action,
            path,
            source,
        }
    }

    fn delete(&self, name: &str) {
        // What is not there need not be deleted.
        let _ = unlinkat(&self.dir.handle, name, UnlinkatFlags::NoRemoveDir);
    }
}

impl GroupLock {
    pub(super) fn group(&self) -> &GroupName {
        self.folder.group()
    }

    /// Path for a new socket; one that a killed leader has left there is deleted.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.delete(&self.folder.socket_name());
        self.folder.socket()
    }
}

impl Drop for GroupLock {
    fn drop(&mut self) {
        self.folder.delete(&self.folder.socket_name());
        self.folder.delete(&self.folder.lock_name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(dir: &tempfile::TempDir) -> GroupFolder {
        GroupFolder::new(&[dir.path().to_owned()], &"g".parse().unwrap()).unwrap()
    }

    #[test]
    fn one_holds_it_at_a_time_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let first = folder(&dir).lock().unwrap().unwrap();
        assert!(folder(&dir).lock().unwrap().is_err());
        drop(first);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(folder(&dir).lock().unwrap().is_ok());
    }

    #[test]
    fn leader_in_a_later_folder_is_found() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let _held = folder(&a).lock().unwrap().unwrap();
        let dirs = [b.path().to_owned(), a.path().to_owned()];
        let found = GroupFolder::new(&dirs, &"g".parse().unwrap()).unwrap();
        assert!(found.lock().unwrap().is_err());
        let other = GroupFolder::new(&dirs, &"h".parse().unwrap()).unwrap();
        assert_eq!(other.dir.path, b.path());
    }

    #[test]
    fn a_lock_on_a_deleted_file_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let late = folder(&dir);
        let stale = late.open().unwrap();
        drop(folder(&dir).lock().unwrap().unwrap());
        assert!(!late.is_current_file(&stale));
    }

    #[test]
    fn other_groups_have_other_locks() {
        let dir = tempfile::tempdir().unwrap();
        let _held = folder(&dir).lock().unwrap().unwrap();
        let other = GroupFolder::new(&[dir.path().to_owned()], &"h".parse().unwrap()).unwrap();
        assert!(other.lock().unwrap().is_ok());
    }
}
