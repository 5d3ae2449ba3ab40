//! Timelines for Perfetto: of live and of simulated runs.

mod live;
mod simulated;

use crate::failure::bad_input;
use crate::output::file::OutPlace;
use anyhow::{Context, Result};
use consort_data::{AtomicFile, PUBLIC, TraceWriter};
pub(crate) use live::LiveTimeline;
pub(crate) use simulated::SimulationTimeline;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Timeline that is written while a run lasts, and becomes the file only when it is whole.
pub(crate) struct TimelineFile {
    partial: AtomicFile,
    path: PathBuf,
}

type FileTrace = TraceWriter<BufWriter<File>>;

impl TimelineFile {
    /// Begins a file next to `path`, which must be an ordinary file or absent: a device must not be
    /// replaced at the end.
    fn begin(path: &Path) -> Result<(Self, FileTrace)> {
        let open = || -> io::Result<(AtomicFile, FileTrace)> {
            if OutPlace::for_path(path)? == OutPlace::Stream {
                return Err(io::Error::other("it is not an ordinary file"));
            }
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if !folder.is_dir() {
                let what = format!("there is no folder {}", folder.display());
                return Err(io::Error::new(io::ErrorKind::NotFound, what));
            }
            let partial = AtomicFile::create(path, PUBLIC)?;
            let out = BufWriter::new(partial.as_file().try_clone()?);
            Ok((partial, TraceWriter::new(out)?))
        };
        let (partial, trace) = open().map_err(|error| {
            bad_input(format!("cannot write timeline {}: {error}", path.display()))
        })?;
        let path = path.to_owned();
        Ok((Self { partial, path }, trace))
    }

    /// Puts the file in its place, if nothing failed so far.
    fn finish(self, trace: io::Result<FileTrace>) -> Result<()> {
        let written = trace
            .and_then(TraceWriter::finish)
            .and_then(|_| self.partial.replace());
        written.with_context(|| format!("cannot write timeline {}", self.path.display()))
    }
}
