//! The report as a file.
//!
//! Pitfall: only ordinary files and links are replaced. A device, a pipe or `/dev/stdout`
//! is written to; replacing `/dev/null` by a file would harm the whole host.

use super::RunReport;
use crate::failure::bad_input;
use crate::out_file::OutPlace;
use crate::output;
use anyhow::{Context, Result};
use consort_data::{AtomicFile, PUBLIC};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Destination of the report.
pub(crate) struct ReportFile {
    sink: ReportSink,
    /// Path as the user named it.
    name: PathBuf,
}

enum ReportSink {
    /// A file that is written beside its place and moved into it, so that it is whole or not there.
    Replace(AtomicFile),
    /// A device or a pipe, which is written to and must stay what it is.
    Into(File),
}

impl ReportFile {
    /// Opens it before anything is started, so that a bad path changes nothing.
    pub(crate) fn create(name: &Path) -> Result<Self> {
        let sink = ReportSink::open(name).map_err(|error| bad_input(cannot_write(name, &error)))?;
        let name = name.to_owned();
        Ok(Self { sink, name })
    }

    /// Writes the report as JSON.
    pub(crate) fn write(self, report: &RunReport) -> Result<()> {
        let mut text = Vec::new();
        output::write_json(&mut text, report)?;
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

impl ReportSink {
    fn open(name: &Path) -> std::io::Result<Self> {
        match OutPlace::for_path(name)? {
            OutPlace::File => Self::create_replacement(name),
            OutPlace::Stream => open_stream(name).map(Self::Into),
        }
    }

    fn create_replacement(place: &Path) -> std::io::Result<Self> {
        let file = AtomicFile::create(place, PUBLIC).map_err(|error| folder_error(&error))?;
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

/// Opens a device or a pipe without waiting for a process that reads it.
fn open_stream(name: &Path) -> std::io::Result<File> {
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    // At the end, if it is an ordinary file behind `/dev/stdout`: it may have content.
    let opened = OpenOptions::new()
        .append(true)
        .custom_flags(flags)
        .open(name);
    let stream = opened.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ENXIO) => std::io::Error::other("no process reads from it"),
        _ => error,
    })?;
    let status = OFlag::from_bits_retain(fcntl(&stream, FcntlArg::F_GETFL)?);
    fcntl(&stream, FcntlArg::F_SETFL(status - OFlag::O_NONBLOCK))?;
    Ok(stream)
}

/// The error as one of the report's folder; the name of a temporary file in it helps nobody.
fn folder_error(error: &std::io::Error) -> std::io::Error {
    match error.kind() {
        ErrorKind::NotFound => std::io::Error::other("there is no such folder"),
        ErrorKind::PermissionDenied => std::io::Error::other("its folder may not be written to"),
        kind => std::io::Error::other(kind.to_string()),
    }
}
