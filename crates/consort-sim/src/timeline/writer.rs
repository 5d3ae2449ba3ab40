//! The streaming writer.

use super::event::{TraceEvent, names, process};
use super::slice::TimelineSegment;
use crate::chip::Chip;
use consort_core::ThreadId;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};

const OPENING: &str = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
const CLOSING: &str = "\n]}\n";

/// Writes a timeline while the simulation runs.
#[derive(Debug)]
pub struct TimelineWriter<W: Write> {
    /// None once `finish` has taken it.
    out: Option<W>,
    /// True if no event has been written.
    empty: bool,
    /// Process of each PU.
    processes: Vec<usize>,
    /// Per PU, the slice that may still grow.
    open: Vec<Option<TimelineSegment>>,
    /// The PU of each thread's last segment.
    last_pus: BTreeMap<ThreadId, usize>,
}

impl<W: Write> TimelineWriter<W> {
    /// Begins a timeline with the names of the chip's parts.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(chip: &Chip, mut out: W) -> io::Result<Self> {
        out.write_all(OPENING.as_bytes())?;
        let mut timeline = Self {
            out: Some(out),
            empty: true,
            processes: chip.places().iter().map(|&place| process(place)).collect(),
            open: vec![None; chip.places().len()],
            last_pus: BTreeMap::new(),
        };
        names(chip)
            .iter()
            .try_for_each(|e| timeline.write_event(e))?;
        Ok(timeline)
    }

    /// Adds a segment; one that follows the last on its PU and is of the same thread lengthens it,
    /// and one of a thread that was on another PU is a migration.
    /// Segments of no length, and those on PUs that the chip does not have, are left out.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_segment(&mut self, segment: &TimelineSegment) -> io::Result<()> {
        let Some(open) = self.open.get_mut(segment.pu) else {
            return Ok(());
        };
        let short = segment.seconds() <= 0.0;
        if short || open.as_mut().is_some_and(|last| last.join(segment)) {
            return Ok(());
        }
        if let Some(ended) = open.replace(segment.clone()) {
            self.write_slice(&ended)?;
        }
        match self.last_pus.insert(segment.thread, segment.pu) {
            Some(before) if before != segment.pu => self.write_migration(segment, before),
            _ => Ok(()),
        }
    }

    /// Notes that the thread of a segment was on another PU before.
    fn write_migration(&mut self, segment: &TimelineSegment, from_pu: usize) -> io::Result<()> {
        let (thread, to_pu) = (segment.thread.to_string(), segment.pu);
        let args = json!({ "thread": thread, "from_pu": from_pu, "to_pu": to_pu });
        let pid = self.processes[to_pu];
        self.write_event(&TraceEvent::instant_on_pu(
            "migration",
            pid,
            to_pu,
            segment.start_s,
            args,
        ))
    }

    /// Completes the timeline and gives the writer back.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.complete()?;
        let out = self.out.take();
        Ok(out.expect("only finish takes it, and it consumes the timeline"))
    }

    fn complete(&mut self) -> io::Result<()> {
        let open: Vec<TimelineSegment> = self.open.iter_mut().filter_map(Option::take).collect();
        open.iter().try_for_each(|slice| self.write_slice(slice))?;
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        out.write_all(CLOSING.as_bytes())?;
        out.flush()
    }

    fn write_slice(&mut self, slice: &TimelineSegment) -> io::Result<()> {
        let pid = self.processes[slice.pu];
        self.write_event(&TraceEvent::from_segment(slice, pid))
    }

    /// Writes one event, whole.
    fn write_event(&mut self, event: &TraceEvent) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        let separator = if self.empty { "\n" } else { ",\n" };
        let mut line = separator.as_bytes().to_vec();
        serde_json::to_writer(&mut line, event)?;
        out.write_all(&line)?;
        self.empty = false;
        Ok(())
    }
}

impl<W: Write> Drop for TimelineWriter<W> {
    /// Completes the timeline as far as the writer lets; `finish` tells of errors.
    fn drop(&mut self) {
        if self.out.is_some() {
            let _ = self.complete();
        }
    }
}
