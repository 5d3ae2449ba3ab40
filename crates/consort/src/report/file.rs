//! The report as a file.

use super::RunReport;
use crate::failure::bad_input;
use crate::output;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A report file that is either whole or not there: written beside its place and moved into it.
pub(crate) struct ReportFile {
    file: NamedTempFile,
    place: PathBuf,
}

impl ReportFile {
    /// Opened before anything is started, so that a bad path changes nothing.
    pub(crate) fn create(place: &Path) -> Result<Self> {
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if place.is_dir() {
            return Err(bad_input(format!("report {} is a folder", place.display())));
        }
        let file = NamedTempFile::new_in(folder).map_err(|error| {
            bad_input(format!("cannot write report {}: {error}", place.display()))
        })?;
        Ok(Self {
            file,
            place: place.to_owned(),
        })
    }

    pub(crate) fn write(mut self, report: &RunReport) -> Result<()> {
        output::json(&mut self.file, report)?;
        let place = self.place.display().to_string();
        self.file
            .persist(&self.place)
            .with_context(|| format!("cannot write report {place}"))?;
        Ok(())
    }
}
