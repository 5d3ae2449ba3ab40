//! Errors of reading `/proc`.

use super::stat::StatError;
use nix::errno::Errno;
use std::io;
use std::path::Path;
use thiserror::Error;

/// Reason for which a file in `/proc` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProcError {
    /// The thread has exited, or another has its tid now.
    #[error("the thread has exited")]
    Gone,
    /// The thread belongs to somebody else.
    #[error("not permitted to read {0}; run as the thread's owner or as root")]
    Denied(String),
    /// File descriptors are exhausted.
    #[error("out of file descriptors; raise the limit on open files")]
    NoFds,
    /// The text is not of the form that the kernel documents.
    #[error("{path}: {error}")]
    Malformed {
        /// The file.
        path: String,
        /// The departure from the documented form.
        error: StatError,
    },
    /// Reading failed otherwise.
    #[error("{path}: {errno}")]
    Io {
        /// The file.
        path: String,
        /// The kernel's answer.
        errno: Errno,
    },
}

impl ProcError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.display().to_string();
        match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
            Errno::ENOENT | Errno::ESRCH => Self::Gone,
            Errno::EACCES | Errno::EPERM => Self::Denied(path),
            Errno::EMFILE | Errno::ENFILE => Self::NoFds,
            errno => Self::Io { path, errno },
        }
    }

    /// Returns true if the same file may be read a moment later, as when descriptors or memory are
    /// short.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::NoFds => true,
            Self::Io { errno, .. } => matches!(
                errno,
                Errno::ENOMEM | Errno::EINTR | Errno::EAGAIN | Errno::EIO
            ),
            Self::Gone | Self::Denied(_) | Self::Malformed { .. } => false,
        }
    }

    /// The error of a mask that could not be read.
    pub(crate) fn from_mask_errno(tid: u32, errno: Errno) -> Self {
        match errno {
            Errno::ESRCH => Self::Gone,
            errno => Self::Io {
                path: format!("affinity of thread {tid}"),
                errno,
            },
        }
    }

    /// The nearest answer of the kernel; never `EINVAL`, which has a meaning of its own for masks.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::Gone => Errno::ESRCH,
            Self::Denied(_) => Errno::EACCES,
            Self::NoFds => Errno::EMFILE,
            Self::Malformed { .. } => Errno::EIO,
            Self::Io { errno, .. } => *errno,
        }
    }

    pub(crate) fn malformed(path: &Path, error: StatError) -> Self {
        let path = path.display().to_string();
        Self::Malformed { path, error }
    }
}
