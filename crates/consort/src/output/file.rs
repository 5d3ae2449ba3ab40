//! Results as files, complete or absent.
//!
//! Paths are checked before the work begins, and files are written after it, so that a signal in
//! between leaves nothing. A link is itself replaced and never followed, because another user may have
//! planted it in a folder such as `/tmp`.

use super::args::{ResultOut, TABLE};
use super::{OutputColumn, json_text};
use crate::failure::bad_input;
use anyhow::{Context, Result};
use consort_data::{AtomicFile, List, PUBLIC, Table, TableSink};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::Uid;
use serde::Serialize;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Nature of a path that a result is to be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutPlace {
    /// An ordinary file, a link to one, or nothing: it is replaced.
    File,
    /// A device, a pipe, or a link of the kernel to an open file, such as `/dev/stdout`: it is
    /// written to and must stay what it is.
    Stream,
}

impl OutPlace {
    pub(crate) fn for_path(path: &Path) -> io::Result<Self> {
        let there = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::File),
            there => there?,
        };
        if there.is_symlink() {
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let is_kernels =
                folder.is_some_and(|f| f == Path::new("/dev") || f.starts_with("/proc"));
            return match path.metadata() {
                _ if is_kernels => Ok(Self::Stream),
                Ok(target) if !target.is_file() => Err(io::Error::other(
                    "it is a link to something other than an ordinary file; name its target instead",
                )),
                _ => Ok(Self::File),
            };
        }
        let owner = there.uid();
        match there.file_type() {
            kind if kind.is_file() => Ok(Self::File),
            kind if kind.is_dir() => Err(io::Error::other("it is a folder")),
            // Another user may have put it there for root to fill.
            _ if owner != 0 && owner != Uid::effective().as_raw() => Err(io::Error::other(
                format!("it belongs to user {owner} and is not an ordinary file"),
            )),
            _ => Ok(Self::Stream),
        }
    }
}

/// A checked place for a file that is written when its content is ready.
pub(crate) struct OutFile {
    /// Kind of content, named in errors.
    what: &'static str,
    place: PathBuf,
    replace: bool,
}

impl OutFile {
    /// Checks that the file can be written, and may replace one that exists.
    pub(crate) fn create(what: &'static str, place: &Path, replace: bool) -> Result<Self> {
        let refused = |why: &dyn Display| {
            bad_input(format!("cannot write {what} {}: {why}", place.display()))
        };
        if place.symlink_metadata().is_ok() && !replace {
            return Err(exists_error(place));
        }
        match OutPlace::for_path(place) {
            Ok(OutPlace::File) => {}
            Ok(OutPlace::Stream) => return Err(refused(&"it is no file")),
            Err(error) => return Err(refused(&error)),
        }
        AtomicFile::create(place, PUBLIC).map_err(|error| refused(&error.kind()))?;
        Ok(Self {
            what,
            place: place.to_owned(),
            replace,
        })
    }

    pub(crate) fn write(self, text: &str) -> Result<()> {
        let write = || {
            let file = AtomicFile::create(&self.place, PUBLIC)?;
            file.as_file().write_all(text.as_bytes())?;
            match self.replace {
                true => file.replace(),
                false => file.persist_new(),
            }
        };
        match write() {
            // Another process may have made the file since the check.
            Err(e) if !self.replace && e.kind() == ErrorKind::AlreadyExists => {
                Err(exists_error(&self.place))
            }
            written => written
                .with_context(|| format!("cannot write {} {}", self.what, self.place.display())),
        }
    }
}

fn exists_error(place: &Path) -> anyhow::Error {
    bad_input(format!("{} exists; --force replaces it", place.display()))
}

/// Place of a report: a file that is replaced when the report is whole, or a device or a pipe, such as
/// `/dev/stdout`, which is written to. Replacing `/dev/null` by a file would harm the whole host.
pub(crate) struct ReportFile {
    sink: ReportSink,
    /// Path as the user named it.
    name: PathBuf,
}

enum ReportSink {
    Replace(AtomicFile),
    Into(File),
}

impl ReportFile {
    /// Opens the file, if one was requested, before anything is started, so that a bad path changes
    /// nothing.
    pub(crate) fn begin(name: Option<&Path>) -> Result<Option<Self>> {
        let Some(name) = name else {
            return Ok(None);
        };
        let sink = OutPlace::for_path(name).and_then(|place| match place {
            OutPlace::Stream => open_stream(name).map(ReportSink::Into),
            OutPlace::File => AtomicFile::create(name, PUBLIC)
                .map(ReportSink::Replace)
                // About the folder: the name of a temporary file in it would only mislead.
                .map_err(|error| match error.kind() {
                    ErrorKind::NotFound => io::Error::other("there is no such folder"),
                    ErrorKind::PermissionDenied => {
                        io::Error::other("its folder may not be written to")
                    }
                    kind => io::Error::other(kind.to_string()),
                }),
        });
        let sink = sink.map_err(|error| {
            bad_input(format!("cannot write report {}: {error}", name.display()))
        })?;
        let name = name.to_owned();
        Ok(Some(Self { sink, name }))
    }

    /// Writes a document as JSON.
    pub(crate) fn write_json(self, document: &impl Serialize) -> Result<()> {
        self.write(&json_text(document)?)
    }

    pub(crate) fn write(self, text: &str) -> Result<()> {
        let written = match self.sink {
            ReportSink::Into(mut sink) => sink.write_all(text.as_bytes()),
            ReportSink::Replace(file) => file
                .as_file()
                .write_all(text.as_bytes())
                .and_then(|()| file.replace()),
        };
        written.with_context(|| format!("cannot write report {}", self.name.display()))
    }
}

/// Opens a device or a pipe without waiting for a process that reads it.
fn open_stream(name: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    // At the end, if it is an ordinary file behind `/dev/stdout`: it may have content.
    let opened = OpenOptions::new()
        .append(true)
        .custom_flags(flags)
        .open(name);
    let stream = opened.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ENXIO) => io::Error::other("no process reads from it"),
        _ => error,
    })?;
    // Writes wait for a slow reader again; without that they would fail with EAGAIN.
    let status = OFlag::from_bits_retain(fcntl(&stream, FcntlArg::F_GETFL)?);
    fcntl(&stream, FcntlArg::F_SETFL(status - OFlag::O_NONBLOCK))?;
    Ok(stream)
}

/// Files of a result, begun before anything is run, so that a bad path wastes no time.
pub(crate) struct ResultFiles {
    pub(crate) page: Option<ReportFile>,
    pub(crate) document: Option<ReportFile>,
    pub(crate) table: TableOutput,
}

impl ResultFiles {
    /// Begins the files that `--out` names.
    pub(crate) fn begin(out: &ResultOut) -> Result<Self> {
        let mut places = [const { None }; 3];
        let page = out.report_html.iter().map(|path| (path, true));
        for (path, is_page) in out.out.iter().map(|path| (path, false)).chain(page) {
            let end = path.extension().and_then(|end| end.to_str());
            let place = match end {
                _ if is_page => &mut places[0],
                Some("html") => &mut places[0],
                Some("json") => &mut places[1],
                _ => &mut places[2],
            };
            if place.replace(path.as_path()).is_some() {
                return Err(bad_input(format!(
                    "--out {}: too many; expected at most one page (.html), one document (.json) \
                     and one table",
                    path.display()
                )));
            }
        }
        let [page, document, table] = places;
        Ok(Self {
            page: ReportFile::begin(page)?,
            document: ReportFile::begin(document)?,
            table: TableOutput::begin(table)?,
        })
    }
}

/// The requested table file, begun before anything is run, so that a bad path wastes no time.
pub(crate) struct TableOutput(Option<TableSink>);

impl TableOutput {
    /// Begins the file, if one was requested.
    pub(crate) fn begin(out: Option<&Path>) -> Result<Self> {
        let sink = out.map(TableSink::create).transpose();
        Ok(Self(sink.map_err(bad_input)?))
    }

    /// Begins the file, if one was requested in addition to a folder or file of the verb's own, and
    /// to a page if it writes `pages`.
    pub(crate) fn begin_from_out(out: &[PathBuf], pages: usize) -> Result<Self> {
        let tables = out.iter().filter(|path| consort_data::is_table_path(path));
        let (tables, found) = (tables.count(), out.iter().filter(|path| is_page_path(path)));
        let found = found.count();
        if tables > 1 || found > pages || out.len() - tables - found > 1 {
            let names = out.iter().map(|path| path.display().to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            let page = if pages > 0 { ", one page (.html)" } else { "" };
            return Err(bad_input(format!(
                "--out {names}: too many or of no use here; expected at most one table \
                 ({TABLE}){page} and one other"
            )));
        }
        Self::begin(table_output(out))
    }

    /// Adds a table, which is made only if there is a file.
    pub(crate) fn add(&mut self, table: impl FnOnce() -> Table) -> Result<()> {
        if let Some(sink) = &mut self.0 {
            sink.write(&table())?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        Ok(self.0.map_or(Ok(()), TableSink::finish)?)
    }

    /// Writes a file of one table.
    pub(crate) fn write(mut self, table: impl FnOnce() -> Table) -> Result<()> {
        self.add(table)?;
        self.finish()
    }
}

/// Writes a list to a file, if one was requested, with the columns that its CSV has on stdout.
pub(crate) fn write_list<R>(
    out: Option<&Path>,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<()> {
    TableOutput::begin(out)?.write(|| List::new(columns, rows).to_table())
}

/// The folder or file of the verb's own among the names given to `--out`.
pub(crate) fn own_output(out: &[PathBuf]) -> Option<&Path> {
    let mut others =
        { out.iter() }.filter(|path| !consort_data::is_table_path(path) && !is_page_path(path));
    others.next().map(PathBuf::as_path)
}

/// The page's file among the names given to `--out`.
pub(crate) fn page_output(out: &[PathBuf]) -> Option<&Path> {
    let mut pages = out.iter().filter(|path| is_page_path(path));
    pages.next().map(PathBuf::as_path)
}

fn is_page_path(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "html")
}

/// The table's file among the names given to `--out`.
pub(crate) fn table_output(out: &[PathBuf]) -> Option<&Path> {
    let mut tables = out.iter().filter(|path| consort_data::is_table_path(path));
    tables.next().map(PathBuf::as_path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn link_is_replaced_and_its_target_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        assert!(OutFile::create("model", &link, false).is_err());
        let out = OutFile::create("model", &link, true).unwrap();
        out.write("new").unwrap();
        assert!(!link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "new");
    }

    #[test]
    fn planted_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, target: &str| {
            let link = folder.path().join(name);
            symlink(target, &link).unwrap();
            link
        };
        assert_eq!(
            OutPlace::for_path(&link("absent", "/nowhere")).unwrap(),
            OutPlace::File
        );
        assert!(OutPlace::for_path(&link("device", "/dev/null")).is_err());
        assert!(OutPlace::for_path(folder.path()).is_err());
        assert_eq!(
            OutPlace::for_path(Path::new("/dev/null")).unwrap(),
            OutPlace::Stream
        );
        assert_eq!(
            OutPlace::for_path(Path::new("/dev/stdin")).unwrap(),
            OutPlace::Stream
        );
        assert_eq!(
            OutPlace::for_path(&folder.path().join("none")).unwrap(),
            OutPlace::File
        );
    }
}
