//! The folder for journals: short-lived, private, and safe from others.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// End of the name of a file that is not finished, such as a journal without its header. One whose
/// process is gone is deleted by the next run.
pub(crate) const NEW_SUFFIX: &str = ".new";
/// Permission bits that let others write.
const OTHERS_WRITE: u32 = 0o022;
/// Size of a file that is written on trial, bytes: a page, the least that a file system in memory
/// gives.
const PROBE_BYTES: usize = 4096;

/// Reason for which a folder cannot hold journals.
#[derive(Debug, Error)]
pub enum RuntimeDirError {
    /// The folder is absent and cannot be made, is a link or not a folder, or nothing can be written
    /// in it.
    #[error("cannot use {path} as a private folder: {source}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The folder belongs to somebody else, or others may write in it.
    #[error("{path} is not private: it must belong to uid {uid} and be writable by no other")]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// The uid of the caller.
        uid: u32,
    },
    /// No folder was given.
    #[error("no runtime folder was given")]
    NoneGiven,
}

/// A folder that was checked, held open so that it cannot be exchanged.
#[derive(Debug)]
pub(crate) struct RuntimeDir {
    pub path: PathBuf,
    pub handle: File,
}

impl RuntimeDir {
    /// Opens the first usable folder, making it if need be.
    pub(crate) fn open_first_usable(dirs: &[PathBuf]) -> Result<Self, RuntimeDirError> {
        let mut result = Err(RuntimeDirError::NoneGiven);
        for dir in dirs {
            result = Self::create(dir).and_then(Self::check_writable);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Opens the same folder once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            path: self.path.clone(),
            handle: self.handle.try_clone()?,
        })
    }

    fn create(path: &Path) -> Result<Self, RuntimeDirError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(unusable_error(path, source))
            }
            _ => Self::open(path),
        }
    }

    /// Writes and deletes a file in the folder. Owner and mode do not show that a file system is
    /// read-only, full or over its quota; a file without content does not show the last two.
    fn check_writable(self) -> Result<Self, RuntimeDirError> {
        let probe = self
            .open_probe_file()
            .map_err(|e| unusable_error(&self.path, e.into()));
        // Beyond the limit on file sizes a write would end the process by SIGXFSZ.
        let most = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft);
        let bytes = PROBE_BYTES.min(usize::try_from(most).unwrap_or(usize::MAX));
        let written = match bytes {
            0 => Err(Errno::EFBIG.into()),
            bytes => probe?.write_all(&[0; PROBE_BYTES][..bytes]),
        };
        written.map_err(|source| unusable_error(&self.path, source))?;
        Ok(self)
    }

    /// An open file of the folder that has no name, so that it disappears with its process.
    fn open_probe_file(&self) -> Result<File, Errno> {
        let (flags, mode) = (OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::S_IRUSR);
        match openat(&self.handle, ".", flags | OFlag::O_TMPFILE, mode) {
            // The file system (EOPNOTSUPP) or the kernel (EISDIR) has no files without names.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR) => {}
            opened => return opened.map(File::from),
        }
        // One that a killed process leaves is deleted by the next run, as an unfinished journal.
        let name = format!("probe-{}{NEW_SUFFIX}", std::process::id());
        let flags = flags | OFlag::O_CREAT | OFlag::O_NOFOLLOW;
        let file = openat(&self.handle, name.as_str(), flags, mode)?;
        // Another thread of this process may have deleted it.
        let _ = unlinkat(&self.handle, name.as_str(), UnlinkatFlags::NoRemoveDir);
        Ok(file.into())
    }

    /// Opens a folder that exists, without following a link in its place.
    pub(crate) fn open(path: &Path) -> Result<Self, RuntimeDirError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(|e| unusable_error(path, e.into()))?;
        let status = fstat(&fd).map_err(|e| unusable_error(path, e.into()))?;
        let uid = Uid::effective().as_raw();
        if status.st_uid != uid || status.st_mode & OTHERS_WRITE != 0 {
            let path = path.to_owned();
            return Err(RuntimeDirError::NotPrivate { path, uid });
        }
        Ok(Self {
            path: path.to_owned(),
            handle: fd.into(),
        })
    }
}

fn unusable_error(path: &Path, source: io::Error) -> RuntimeDirError {
    RuntimeDirError::Unusable {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_is_made_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("consort");
        RuntimeDir::open_first_usable(std::slice::from_ref(&path)).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_link_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("consort");
        symlink(parent.path(), &link).unwrap();
        let error = RuntimeDir::open_first_usable(&[link]).unwrap_err();
        assert!(matches!(error, RuntimeDirError::Unusable { .. }), "{error}");
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused_and_the_next_is_taken() {
        let parent = tempfile::tempdir().unwrap();
        let open = parent.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let error = RuntimeDir::open_first_usable(std::slice::from_ref(&open)).unwrap_err();
        assert!(
            matches!(error, RuntimeDirError::NotPrivate { .. }),
            "{error}"
        );
        let good = parent.path().join("good");
        assert_eq!(
            RuntimeDir::open_first_usable(&[open, good.clone()])
                .unwrap()
                .path,
            good
        );
    }
}
