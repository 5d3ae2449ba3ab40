//! Errors of writing and reading tables.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Fault of a file of a table. Its text is one line and names the file.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file's name tells no format.
    #[error("{}: the name does not say the format; expected one that ends in .csv, .arrow or .parquet", .0.display())]
    Format(PathBuf),
    /// The format is not part of this build.
    #[error(
        "{}: this build of Consort writes no {format}; name a .csv file, or build with --features columnar",
        path.display()
    )]
    NotBuilt {
        /// The file.
        path: PathBuf,
        /// Format that it would have to be.
        format: &'static str,
    },
    /// A part has other columns than what was written before.
    #[error("{}: a part has the columns {found}; expected {expected}", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// The part's columns.
        found: String,
        /// The columns of the first part.
        expected: String,
    },
    /// A field is not what its column holds.
    #[error("{}:{line}: {column}: is '{found}'; expected {expected}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The field.
        found: String,
        /// Form that would be right.
        expected: &'static str,
    },
    /// The file cannot be written or read.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl TableError {
    /// A failure of the file system or of a format's library.
    pub(crate) fn file(
        path: &Path,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::File {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }
}
