//! `--timeline`: the run as Perfetto shows it.

use crate::failure::bad_input;
use crate::out_file::OutPlace;
use anyhow::{Context, Result};
use consort_data::{AtomicFile, PUBLIC};
use consort_sim::chip::Chip;
use consort_sim::engine::{PuUse, RunSegment};
use consort_sim::timeline::{self, TimelineWriter};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// A timeline that becomes the file only when it is whole.
#[derive(Clone)]
pub(super) struct SimulationTimeline(Rc<RefCell<TimelineState>>);

struct TimelineState {
    writer: Option<TimelineWriter<BufWriter<File>>>,
    /// The first error; later segments are not written.
    error: Option<io::Error>,
    partial: Option<AtomicFile>,
    path: PathBuf,
}

impl SimulationTimeline {
    /// Begins beside `path`, which must be an ordinary file or not there: what is replaced at the
    /// end must not be a device.
    pub(super) fn begin(path: &Path, chip: &Chip) -> Result<Self> {
        Self::open(path, chip).map_err(|error| {
            bad_input(format!("cannot write timeline {}: {error}", path.display()))
        })
    }

    fn open(path: &Path, chip: &Chip) -> io::Result<Self> {
        let place = path.to_owned();
        if OutPlace::for_path(&place)? == OutPlace::Stream {
            return Err(io::Error::other("it is not an ordinary file"));
        }
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if !folder.is_dir() {
            let what = format!("there is no folder {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        }
        let partial = AtomicFile::create(&place, PUBLIC)?;
        let out = BufWriter::new(partial.as_file().try_clone()?);
        Ok(Self(Rc::new(RefCell::new(TimelineState {
            writer: Some(TimelineWriter::new(chip, out)?),
            error: None,
            partial: Some(partial),
            path: place,
        }))))
    }

    pub(super) fn write_segment(&self, segment: &RunSegment<'_>) {
        let mut state = self.0.borrow_mut();
        if state.error.is_some() {
            return;
        }
        let piece = timeline_segment(segment);
        let written = state
            .writer
            .as_mut()
            .map(|writer| writer.add_segment(&piece));
        state.error = written.and_then(Result::err);
    }

    /// Puts the file in its place.
    pub(super) fn finish(self) -> Result<()> {
        let mut state = self.0.borrow_mut();
        let path = state.path.clone();
        let what = || format!("cannot write timeline {}", path.display());
        if let Some(error) = state.error.take() {
            return Err(error).with_context(what);
        }
        if let Some(writer) = state.writer.take() {
            writer
                .finish()
                .with_context(what)?
                .flush()
                .with_context(what)?;
        }
        if let Some(partial) = state.partial.take() {
            partial.replace().with_context(what)?;
        }
        Ok(())
    }
}

fn timeline_segment(segment: &RunSegment<'_>) -> timeline::TimelineSegment {
    let works = segment.doing == PuUse::Work;
    timeline::TimelineSegment {
        thread: segment.thread,
        name: Arc::from(match segment.doing {
            PuUse::Work => segment.name.to_owned(),
            PuUse::Kernel => format!("{} (switching)", segment.name),
            PuUse::Overhead => format!("{} (refilling)", segment.name),
            PuUse::Spin => format!("{} (spinning)", segment.name),
        }),
        pu: segment.pu,
        start_s: segment.from_ps as f64 / 1e12,
        end_s: segment.to_ps as f64 / 1e12,
        ips: if works { segment.rates.ips } else { 0.0 },
        cpi: if works { segment.rates.cpi } else { 0.0 },
        slowdown: None,
    }
}
