//! Events of the Trace Event Format.

use super::slice::TimelineSegment;
use crate::chip::{Chip, PuPlace};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Microseconds, the format's unit, per second.
const US_PER_S: f64 = 1e6;

/// The process that holds what belongs to no LLC domain.
pub(super) const MACHINE: usize = 0;

/// One event.
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
            events.push(domain_name(place));
        }
        events.push(pu_name(chip, pu, place));
    }
    events
}

fn domain_name(place: PuPlace) -> TraceEvent {
    let name = format!("LLC domain {} (node {})", place.llc, place.node);
    TraceEvent::new("process_name", "M", json!({ "name": name })).with_track(process(place), 0)
}

fn pu_name(chip: &Chip, pu: usize, place: PuPlace) -> TraceEvent {
    let core_type = &chip.topology().core_types()[place.core_type].name;
    let name = format!("PU {pu} (core {}, {core_type})", place.core);
    TraceEvent::new("thread_name", "M", json!({ "name": name })).with_track(process(place), pu)
}
