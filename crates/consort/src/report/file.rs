//! The report as a file.
//!
//! Pitfall: only ordinary files are replaced. A device, a pipe or `/dev/stdout`
//! is written to; replacing `/dev/null` by a file would harm the whole host.

use super::RunReport;
use crate::failure::bad_input;
use crate::output;
use anyhow::{Context, Result};
use consort_output::{PUBLIC, WholeFile};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Destination of the report.
pub(crate) struct ReportFile {
    sink: Sink,
    /// Path as the user named it.
    name: PathBuf,
}

enum Sink {
    /// A file that is written beside its place and moved into it, so that it is whole or not there.
    Replace(WholeFile),
    /// A device or a pipe, which is written to and must stay what it is.
    Into(File),
}

impl ReportFile {
    /// Opens it before anything is started, so that a bad path changes nothing.
    pub(crate) fn create(name: &Path) -> Result<Self> {
        let sink = Sink::open(name).map_err(|error| bad_input(cannot_write(name, &error)))?;
        let name = name.to_owned();
        Ok(Self { sink, name })
    }

    /// Writes the report as JSON.
    pub(crate) fn write(self, report: &RunReport) -> Result<()> {
        let mut text = Vec::new();
        output::json(&mut text, report)?;
        self.write_text(&text)
    }

    /// Writes a rendered report.
    pub(crate) fn write_text(self, text: &[u8]) -> Result<()> {
        let name = self.name;
        self.sink
            .write(text)
            .with_context(|| format!("cannot write report {}", name.display()))
    }
}

fn cannot_write(name: &Path, error: &dyn fmt::Display) -> String {
    format!("cannot write report {}: {error}", name.display())
}

impl Sink {
    fn open(name: &Path) -> std::io::Result<Self> {
        // Through links, so that the file behind a link is replaced and the link stays.
        let place = name.canonicalize().unwrap_or_else(|_| name.to_owned());
        match place.metadata() {
            Ok(there) if there.is_dir() => Err(std::io::Error::other("it is a folder")),
            Ok(there) if !there.is_file() => {
                let sink = OpenOptions::new().write(true).open(name)?;
                Ok(Self::Into(sink))
            }
            _ => Self::beside(&place),
        }
    }

    fn beside(place: &Path) -> std::io::Result<Self> {
        let file = WholeFile::create(place, PUBLIC).map_err(|error| of_folder(&error))?;
        Ok(Self::Replace(file))
    }

    fn write(self, text: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Into(mut sink) => sink.write_all(text),
            Self::Replace(file) => {
                file.as_file().write_all(text)?;
                file.replace()
            }
        }
    }
}

/// The error as one of the report's folder; the name of a temporary file in it helps nobody.
fn of_folder(error: &std::io::Error) -> std::io::Error {
    match error.kind() {
        ErrorKind::NotFound => std::io::Error::other("there is no such folder"),
        ErrorKind::PermissionDenied => std::io::Error::other("its folder may not be written to"),
        kind => std::io::Error::other(kind.to_string()),
    }
}
