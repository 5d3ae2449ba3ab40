//! Tables and figures as files.

use crate::atomic_file::write_atomically;
use crate::figure::Figure;
use crate::report_table::ReportTable;
use crate::svg::{SvgError, draw};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why files could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A figure.
    #[error(transparent)]
    Svg(#[from] SvgError),
    /// The file system.
    #[error("cannot write {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

/// Name and content of a file.
pub type FileContent = (String, Vec<u8>);

/// Tables as `PREFIXKEY.csv`, then figures as `PREFIXKEY.svg`.
///
/// # Errors
/// If a figure cannot be drawn.
pub fn file_contents(
    prefix: &str,
    tables: &[ReportTable],
    figures: &[Figure],
) -> Result<Vec<FileContent>, WriteError> {
    let mut parts = Vec::new();
    for table in tables {
        let content = table.to_csv().into_bytes();
        parts.push((format!("{prefix}{}.csv", table.key()), content));
    }
    for figure in figures {
        let content = draw(figure)?.into_bytes();
        parts.push((format!("{prefix}{}.svg", figure.key()), content));
    }
    Ok(parts)
}

/// Writes files into a folder that exists; each is complete or absent. Returns their paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write_files(folder: &Path, files: &[FileContent]) -> Result<Vec<PathBuf>, WriteError> {
    let paths = files.iter().map(|(name, content)| {
        let path = folder.join(name);
        match write_atomically(folder, name, content) {
            Ok(()) => Ok(path),
            Err(cause) => Err(WriteError::Io { path, cause }),
        }
    });
    paths.collect()
}

/// Writes tables as `KEY.csv` and figures as `KEY.svg` into a folder, which is made if it is not
/// there. Returns the paths.
///
/// # Errors
/// If a figure cannot be drawn or a file cannot be written.
pub fn write_tables_and_figures(
    folder: &Path,
    tables: &[ReportTable],
    figures: &[Figure],
) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(folder).map_err(|cause| WriteError::Io {
        path: folder.to_owned(),
        cause,
    })?;
    write_files(folder, &file_contents("", tables, figures)?)
}
