//! The lock of a group: the run that holds it leads.
//!
//! The lock's file is deleted by its holder in the end. So a lock counts only if its file still has
//! its name; otherwise the next run would lock another file of the same name. For the same reason
//! deleting the files of killed leaders does not disturb a run that is about to lead.

use super::{GroupError, GroupName};
use crate::enact::RuntimeDir;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The files of a group in a folder that was checked.
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

impl GroupFolder {
    /// The folder in which a run leads the group already, or else the first in which one can lead. A
    /// leader may be in a later folder, because its environment differs or the first was full when it
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

    /// Returns true if another open file has the lock. The check takes the lock, shared, for a
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

    fn from_dir(dir: RuntimeDir, name: GroupName) -> Self {
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

    /// Takes the lock; returns the folder if another run has it.
    pub(super) fn lock(self) -> Result<Result<GroupLock, Self>, GroupError> {
        let file = self.open()?;
        match file.try_lock() {
            Ok(()) if self.is_current_file(&file) => Ok(Ok(GroupLock {
                folder: self,
                _file: file,
            })),
            // A lock on a file that was deleted meanwhile does not count, because the next run
            // would lock a new file of the same name.
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
        // It may be gone already.
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
        // The lock's file last: once it is gone, another run may lead and make its own socket.
        self.folder.delete(&self.folder.socket_name());
        self.folder.delete(&self.folder.lock_name());
    }
}

/// Deletes, from a folder for journals, locks and sockets of groups that no run leads.
pub(crate) fn delete_stale_files(dir: &Path) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let group_of = |file: String| {
        let rest = file.strip_prefix("group-")?;
        let group = rest.strip_suffix(".lock").or(rest.strip_suffix(".socket"));
        group.map(str::to_owned)
    };
    // A set, because a group has two files.
    let groups: BTreeSet<String> = names.filter_map(group_of).collect();
    for group in groups {
        let (Ok(dir), Ok(name)) = (RuntimeDir::open(dir), group.parse()) else {
            continue;
        };
        // Dropping the lock deletes the files.
        match GroupFolder::from_dir(dir, name).lock() {
            Ok(Ok(lock)) => drop(lock),
            Ok(Err(_)) => {}
            Err(error) => tracing::warn!(%error, "a group's files are left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn folder(dir: &tempfile::TempDir) -> GroupFolder {
        GroupFolder::new(&[dir.path().to_owned()], &"g".parse().unwrap()).unwrap()
    }

    #[test]
    fn one_run_holds_the_lock_at_a_time() {
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
    fn lock_on_deleted_file_does_not_count() {
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

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_files_without_holder_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["group-dead.lock", "group-.lock", "x.journal"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        drop(UnixListener::bind(dir.path().join("group-dead.socket")).unwrap());
        let folder = GroupFolder::new(&[dir.path().to_owned()], &"led".parse().unwrap()).unwrap();
        let _held = folder.lock().unwrap().unwrap();
        delete_stale_files(dir.path());
        assert_eq!(names(&dir), ["group-.lock", "group-led.lock", "x.journal"]);
    }

    #[test]
    fn concurrent_deletion_leaves_one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = std::sync::atomic::AtomicUsize::new(0);
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| delete_stale_files(dir.path())));
                scope.spawn(|| {
                    for _ in 0..500 {
                        let dirs = [dir.path().to_owned()];
                        let folder = GroupFolder::new(&dirs, &"g".parse().unwrap()).unwrap();
                        if let Ok(lock) = folder.lock().unwrap() {
                            assert_eq!(held.fetch_add(1, order), 0);
                            std::thread::yield_now();
                            held.fetch_sub(1, order);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert_eq!(names(&dir), [""; 0]);
    }
}
