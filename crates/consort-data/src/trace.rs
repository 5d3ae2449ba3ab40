//! Timelines for Perfetto and Chrome, in the Trace Event Format (Google, "Trace Event Format", JSON
//! object format).
//!
//! The output is valid JSON after [`TraceWriter::finish`], and after dropping the writer too, unless
//! the underlying writer has failed. Events need not be in the order of time.

use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Microseconds, the format's unit, per second.
const US_PER_S: f64 = 1e6;

const OPENING: &str = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
const CLOSING: &str = "\n]}\n";

/// A row of a timeline: the format calls the groups of rows processes and the rows threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceTrack {
    /// Group of the row.
    pub process: u32,
    /// Number of the row.
    pub track: u32,
}

#[derive(Serialize)]
struct TraceEvent<'a> {
    name: &'a str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// Reach of an instant's line: `t` its track.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Value,
}

/// Writes events one by one.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    /// `None` once `finish` has taken it.
    out: Option<W>,
    is_empty: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a timeline without events.
    ///
    /// # Errors
    /// Those of the writer, as for all other methods.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(OPENING.as_bytes())?;
        Ok(Self {
            out: Some(out),
            is_empty: true,
        })
    }

    /// Names a group of rows.
    pub fn name_process(&mut self, process: u32, name: &str) -> io::Result<()> {
        let track = TraceTrack { process, track: 0 };
        self.write("process_name", "M", track, None, json!({ "name": name }))
    }

    /// Names a row.
    pub fn name_track(&mut self, on: TraceTrack, name: &str) -> io::Result<()> {
        self.write("thread_name", "M", on, None, json!({ "name": name }))
    }

    /// Adds something that lasts from one instant to another, s. Slices of a row must not overlap.
    pub fn add_slice(
        &mut self,
        on: TraceTrack,
        name: &str,
        span_s: [f64; 2],
        args: Value,
    ) -> io::Result<()> {
        self.write(name, "X", on, Some(span_s), args)
    }

    /// Adds something that happens at an instant, s.
    pub fn add_instant(
        &mut self,
        on: TraceTrack,
        name: &str,
        at_s: f64,
        args: Value,
    ) -> io::Result<()> {
        self.write(name, "i", on, Some([at_s; 2]), args)
    }

    /// Adds the value that a counter of a group of rows has from an instant on, s. Values that are
    /// not finite are left out.
    pub fn add_counter(
        &mut self,
        process: u32,
        name: &str,
        at_s: f64,
        value: f64,
    ) -> io::Result<()> {
        if !value.is_finite() {
            return Ok(());
        }
        let on = TraceTrack { process, track: 0 };
        self.write(name, "C", on, Some([at_s; 2]), json!({ "value": value }))
    }

    /// Completes the timeline and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.complete()?;
        let out = self.out.take();
        Ok(out.expect("only finish takes it, and it consumes the timeline"))
    }

    fn complete(&mut self) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        out.write_all(CLOSING.as_bytes())?;
        out.flush()
    }

    /// Writes one event, whole.
    fn write(
        &mut self,
        name: &str,
        ph: &'static str,
        on: TraceTrack,
        span_s: Option<[f64; 2]>,
        args: Value,
    ) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        let event = TraceEvent {
            name,
            ph,
            pid: on.process,
            tid: on.track,
            ts: span_s.map(|[from, _]| from * US_PER_S),
            dur: span_s
                .filter(|_| ph == "X")
                .map(|[from, to]| (to - from) * US_PER_S),
            s: (ph == "i").then_some("t"),
            args,
        };
        let separator = if self.is_empty { "\n" } else { ",\n" };
        let mut line = separator.as_bytes().to_vec();
        serde_json::to_writer(&mut line, &event)?;
        out.write_all(&line)?;
        self.is_empty = false;
        Ok(())
    }
}

impl<W: Write> Drop for TraceWriter<W> {
    /// Completes the timeline as far as the writer permits; only `finish` reports errors.
    fn drop(&mut self) {
        if self.out.is_some() {
            let _ = self.complete();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    const TRACK: TraceTrack = TraceTrack {
        process: 7,
        track: 8,
    };

    fn events(bytes: &[u8]) -> Vec<Value> {
        let file: Value = serde_json::from_slice(bytes).unwrap();
        file["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn events_have_what_the_format_requires() {
        let mut trace = TraceWriter::new(Vec::new()).unwrap();
        trace.name_process(7, "a \"quoted\"\nname").unwrap();
        trace.name_track(TRACK, "row").unwrap();
        trace
            .add_slice(TRACK, "work", [1.0, 1.5], json!({ "cpu": 3 }))
            .unwrap();
        trace.add_instant(TRACK, "move", 2.0, json!({})).unwrap();
        trace.add_counter(7, "IPC", 2.5, 0.5).unwrap();
        trace.add_counter(7, "IPC", 3.0, f64::NAN).unwrap();
        let events = events(&trace.finish().unwrap());
        let kinds: Vec<&str> = events.iter().map(|e| e["ph"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["M", "M", "X", "i", "C"]);
        assert_eq!(events[0]["args"]["name"], "a \"quoted\"\nname");
        assert_eq!(
            (&events[2]["ts"], &events[2]["dur"]),
            (&json!(1e6), &json!(5e5))
        );
        assert_eq!(
            (&events[3]["s"], &events[3]["tid"]),
            (&json!("t"), &json!(8))
        );
        assert_eq!(events[4]["args"], json!({ "value": 0.5 }));
    }

    /// A file that can be read after its writer was dropped.
    #[derive(Clone, Default)]
    struct SharedBytes(Rc<RefCell<Vec<u8>>>);

    impl Write for SharedBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn dropped_timeline_is_complete() {
        let file = SharedBytes::default();
        let mut trace = TraceWriter::new(file.clone()).unwrap();
        trace.add_instant(TRACK, "move", 2.0, json!({})).unwrap();
        drop(trace);
        assert_eq!(events(&file.0.borrow()).len(), 1);
    }
}
