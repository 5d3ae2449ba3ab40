//! A workload file: validated, with the positions of its entries for errors.

use super::error::WorkloadError;
use super::spec::WorkloadSpec;
use crate::describe::{self, DescribeError, Locations};

/// A workload file that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFile {
    file: String,
    text: String,
    spec: WorkloadSpec,
}

impl WorkloadFile {
    /// Reads and validates a workload file's text; `file` is its path, for messages and for the
    /// paths in it, which are relative to its folder.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, DescribeError> {
        Ok(Self {
            spec: describe::parse(file, text, WorkloadSpec::validate)?,
            file: file.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Contents of the file.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// A path in the file as seen from where the file's own path is seen from.
    pub(super) fn resolve_path(&self, path: &str) -> String {
        match self.file.rsplit_once('/') {
            Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// Returns the error of an entry with file, line and key.
    pub(super) fn entry_error(&self, entry: usize, error: &WorkloadError) -> WorkloadError {
        let key = format!("entry[{entry}].{}", key_of(error));
        let line = Locations::new(&self.text).line_of(&key);
        DescribeError::new(&self.file, line, &key, &error.to_string(), 0).into()
    }
}

/// The key of an entry to which an error belongs.
fn key_of(error: &WorkloadError) -> &'static str {
    match error {
        WorkloadError::Threads { .. } => "threads",
        WorkloadError::TooMany { .. } => "count",
        _ => "program",
    }
}
