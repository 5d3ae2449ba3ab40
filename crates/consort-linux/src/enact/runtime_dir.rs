//! The folder for journals: short-lived, private, and safe from others.

use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::Uid;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Permission bits that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Reason for which a folder cannot hold journals.
#[derive(Debug, Error)]
pub enum RuntimeDirError {
    /// The folder is absent and cannot be made, or is a link or not a folder.
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
    pub(crate) fn first_usable(dirs: &[PathBuf]) -> Result<Self, RuntimeDirError> {
        let mut result = Err(RuntimeDirError::NoneGiven);
        for dir in dirs {
            result = Self::create(dir);
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
                Err(unusable(path, source))
            }
            _ => Self::open(path),
        }
    }

    /// Opens a folder that exists, without following a link in its place.
    pub(crate) fn open(path: &Path) -> Result<Self, RuntimeDirError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(|e| unusable(path, e.into()))?;
        let status = fstat(&fd).map_err(|e| unusable(path, e.into()))?;
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

fn unusable(path: &Path, source: io::Error) -> RuntimeDirError {
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
        RuntimeDir::first_usable(std::slice::from_ref(&path)).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_link_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("consort");
        symlink(parent.path(), &link).unwrap();
        let error = RuntimeDir::first_usable(&[link]).unwrap_err();
        assert!(matches!(error, RuntimeDirError::Unusable { .. }), "{error}");
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused_and_the_next_is_taken() {
        let parent = tempfile::tempdir().unwrap();
        let open = parent.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let error = RuntimeDir::first_usable(std::slice::from_ref(&open)).unwrap_err();
        assert!(
            matches!(error, RuntimeDirError::NotPrivate { .. }),
            "{error}"
        );
        let good = parent.path().join("good");
        assert_eq!(
            RuntimeDir::first_usable(&[open, good.clone()])
                .unwrap()
                .path,
            good
        );
    }
}
