//! Errors of writing and reading recordings.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why a recording cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// A file cannot be used.
    #[error("cannot {action} recording {}: {source}", path.display())]
    File {
        /// Action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It is no Parquet, or a damaged one.
    #[error("cannot {action} recording {}: {source}", path.display())]
    Parquet {
        /// Action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Fault found in it.
        source: ParquetError,
    },
    /// It is Parquet, but not a recording.
    #[error("{} is no recording of consort: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Description of what it lacks.
        why: String,
    },
    /// It has another schema.
    #[error(
        "recording {} has version {found} of the schema, and this consort reads version {wanted}; \
         use the consort that wrote it",
        path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that is read.
        wanted: u32,
    },
    /// A file is in the way of a recording.
    #[error("{} exists; --force replaces it, or choose another name with -o", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Something of another recording is in the way.
    #[error(
        "{} is left of a recording that was not finished; replay it, or remove it",
        path.display()
    )]
    Left {
        /// The folder.
        path: PathBuf,
    },
}

impl RecordingError {
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File {
            action,
            path,
            source,
        }
    }

    pub(crate) fn parquet(action: &'static str, path: &Path, source: ParquetError) -> Self {
        let path = path.to_owned();
        Self::Parquet {
            action,
            path,
            source,
        }
    }

    pub(crate) fn foreign(path: &Path, why: impl Into<String>) -> Self {
        Self::Foreign {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}
