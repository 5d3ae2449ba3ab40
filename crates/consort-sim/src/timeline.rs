//! Timelines for Perfetto and Chrome: which thread ran where, when and how fast.
//!
//! [`TimelineWriter`] streams events in the Trace Event Format (Google, "Trace Event Format", JSON
//! object format) to any writer. Processes are LLC domains, tracks are PUs, slices are threads;
//! memory utilisation is a counter track. The output is valid JSON after
//! [`TimelineWriter::finish`], and after dropping the writer too, unless the underlying writer has
//! failed.
//!
//! Pitfall: a slice is written when the next one on its PU begins or at the end; the file is not
//! sorted by time, which viewers do not need.

use crate::chip::{Chip, PuPlace};
use consort_core::ThreadId;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A thread on a PU at a constant rate.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineSegment {
    /// The thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: Arc<str>,
    /// Number of the PU.
    pub pu: usize,
    /// Begin, s of simulated time.
    pub start_s: f64,
    /// End, s of simulated time.
    pub end_s: f64,
    /// Instructions per second.
    pub ips: f64,
    /// Cycles per instruction.
    pub cpi: f64,
    /// Time together / time alone, if it is known.
    pub slowdown: Option<f64>,
}

/// Relative to its end, by how much the next segment may begin later and still follow, s: rounding
/// of sums, far below any event's distance.
const GAP_S: f64 = 1e-12;

impl TimelineSegment {
    /// Joins the next segment if it follows this one: same thread, same PU, no gap. Rates become
    /// means: instructions by time, cycles by instructions, slowdown by time.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        let gap = (next.start_s - self.end_s).abs();
        let follows = gap <= GAP_S * self.end_s.abs().max(1.0);
        if self.thread != next.thread || self.pu != next.pu || !follows {
            return false;
        }
        let (old_s, new_s) = (self.seconds(), next.seconds());
        let (old, new) = (self.ips * old_s, next.ips * new_s);
        self.cpi = weighted_mean(self.cpi, old, next.cpi, new);
        self.ips = weighted_mean(self.ips, old_s, next.ips, new_s);
        let slowdowns = self.slowdown.zip(next.slowdown);
        self.slowdown = slowdowns.map(|(a, b)| weighted_mean(a, old_s, b, new_s));
        self.end_s = next.end_s;
        true
    }

    pub(super) fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// The weighted mean; the first where there is no weight.
fn weighted_mean(a: f64, weight_a: f64, b: f64, weight_b: f64) -> f64 {
    let weight = weight_a + weight_b;
    if weight > 0.0 {
        (a * weight_a + b * weight_b) / weight
    } else {
        a
    }
}

/// Microseconds, the format's unit, per second.
const US_PER_S: f64 = 1e6;

/// The process that holds what belongs to no LLC domain.
pub(super) const MACHINE: usize = 0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TraceEvent {
    name: String,
    ph: &'static str,
    pid: usize,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// Reach of an instant's line: `t` its track, `g` everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Map<String, Value>,
}

impl TraceEvent {
    fn new(name: &str, ph: &'static str, args: Value) -> Self {
        let Value::Object(args) = args else {
            return Self::new(name, ph, json!({ "value": args }));
        };
        Self {
            name: name.to_owned(),
            ph,
            pid: MACHINE,
            tid: 0,
            ts: None,
            dur: None,
            s: None,
            args,
        }
    }

    fn with_track(mut self, pid: usize, tid: usize) -> Self {
        (self.pid, self.tid) = (pid, tid);
        self
    }

    fn with_time(mut self, seconds: f64) -> Self {
        self.ts = Some(seconds * US_PER_S);
        self
    }

    /// A thread's slice on its PU.
    pub(super) fn from_segment(segment: &TimelineSegment, pid: usize) -> Self {
        let mut args = json!({
            "program": segment.thread.pid,
            "thread": segment.thread.tid,
            "ips": segment.ips,
            "cpi": segment.cpi,
        });
        if let Some(slowdown) = segment.slowdown {
            args["slowdown"] = json!(slowdown);
        }
        let slice = Self::new(&segment.name, "X", args);
        let mut slice = slice.with_track(pid, segment.pu).with_time(segment.start_s);
        slice.dur = Some(segment.seconds() * US_PER_S);
        slice
    }

    /// Something that happens at once on a PU.
    pub(super) fn instant_on_pu(name: &str, pid: usize, pu: usize, at_s: f64, args: Value) -> Self {
        let mut event = Self::new(name, "i", args)
            .with_track(pid, pu)
            .with_time(at_s);
        event.s = Some("t");
        event
    }
}

/// The process of a place.
pub(super) fn process(place: PuPlace) -> usize {
    place.llc + 1
}

/// Names of processes and tracks.
pub(super) fn names(chip: &Chip) -> Vec<TraceEvent> {
    let mut events = vec![TraceEvent::new(
        "process_name",
        "M",
        json!({ "name": format!("machine {}", chip.spec().name) }),
    )];
    let mut domain = None;
    for (pu, &place) in chip.places().iter().enumerate() {
        if domain != Some(place.llc) {
            domain = Some(place.llc);
            let name = format!("LLC domain {} (node {})", place.llc, place.node);
            let event = TraceEvent::new("process_name", "M", json!({ "name": name }));
            events.push(event.with_track(process(place), 0));
        }
        let core_type = &chip.topology().core_types()[place.core_type].name;
        let name = format!("PU {pu} (core {}, {core_type})", place.core);
        let event = TraceEvent::new("thread_name", "M", json!({ "name": name }));
        events.push(event.with_track(process(place), pu));
    }
    events
}

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
    /// Completes the timeline as far as the writer permits; only `finish` reports errors.
    fn drop(&mut self) {
        if self.out.is_some() {
            let _ = self.complete();
        }
    }
}
