//! Timelines: valid JSON with the slices that went in, and the migrations between them.

use crate::small;
use consort_core::ThreadId;
use consort_sim::chip::Chip;
use consort_sim::timeline::{TimelineSegment, TimelineWriter};
use proptest::prelude::*;
use serde_json::Value;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

fn chip() -> Chip {
    Chip::new(&small::machine(), None).unwrap()
}

fn thread(tid: u32) -> ThreadId {
    ThreadId {
        pid: 3,
        tid,
        start_ticks: 0,
    }
}

fn segment(tid: u32, pu: usize, start_s: f64, end_s: f64) -> TimelineSegment {
    TimelineSegment {
        thread: thread(tid),
        name: "a \"quoted\"\nname".into(),
        pu,
        start_s,
        end_s,
        ips: 1e9,
        cpi: 2.0,
        slowdown: None,
    }
}

fn written(with: impl FnOnce(&mut TimelineWriter<Vec<u8>>) -> io::Result<()>) -> Vec<Value> {
    let mut timeline = TimelineWriter::new(&chip(), Vec::new()).unwrap();
    with(&mut timeline).unwrap();
    events(&timeline.finish().unwrap())
}

fn events(bytes: &[u8]) -> Vec<Value> {
    let file: Value = serde_json::from_slice(bytes).unwrap();
    file["traceEvents"].as_array().unwrap().clone()
}

fn of_kind<'a>(events: &'a [Value], ph: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == ph).collect()
}

#[test]
fn an_empty_timeline_names_the_machines_parts() {
    let events = written(|_| Ok(()));
    let names: Vec<&str> = events
        .iter()
        .map(|e| e["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 1 + 2 + 8);
    assert_eq!(
        names[..3],
        [
            "machine small",
            "LLC domain 0 (node 0)",
            "PU 0 (core 0, big)"
        ]
    );
    assert_eq!(events[10]["pid"], 2);
}

#[test]
fn consecutive_segments_of_a_thread_are_one_slice_with_mean_rates() {
    let mut second = segment(1, 2, 1.0, 2.0);
    (second.ips, second.cpi) = (3e9, 1.0);
    let events = written(|timeline| {
        timeline.add_segment(&segment(1, 2, 0.0, 1.0))?;
        timeline.add_segment(&second)?;
        timeline.add_segment(&segment(2, 2, 2.0, 2.5))?;
        timeline.add_segment(&segment(1, 2, 3.0, 4.0))
    });
    let slices = of_kind(&events, "X");
    assert_eq!(slices.len(), 3);
    assert_eq!(
        (slices[0]["ts"].as_f64(), slices[0]["dur"].as_f64()),
        (Some(0.0), Some(2e6))
    );
    assert_eq!(slices[0]["args"]["ips"], 2e9);
    // 10⁹ instructions of 2 cycles and 3·10⁹ of 1 are 5·10⁹ cycles for 4·10⁹ instructions.
    assert_eq!(slices[0]["args"]["cpi"], 1.25);
    assert_eq!(slices[1]["dur"], 5e5);
}

#[test]
fn a_thread_that_pauses_or_moves_begins_a_new_slice() {
    let events = written(|timeline| {
        timeline.add_segment(&segment(1, 0, 0.0, 1.0))?;
        timeline.add_segment(&segment(1, 0, 1.5, 2.0))?;
        timeline.add_segment(&segment(1, 5, 2.0, 3.0))?;
        timeline.add_segment(&segment(1, 5, 3.0, 3.0))?;
        timeline.add_segment(&segment(1, 99, 3.0, 4.0))
    });
    assert_eq!(of_kind(&events, "X").len(), 3);
}

#[test]
fn a_thread_that_moves_is_seen_to() {
    let events = written(|timeline| {
        timeline.add_segment(&segment(7, 0, 0.0, 0.5))?;
        timeline.add_segment(&segment(7, 0, 1.0, 1.5))?;
        timeline.add_segment(&segment(7, 5, 1.5, 2.0))
    });
    let instants = of_kind(&events, "i");
    assert_eq!(instants.len(), 1);
    assert_eq!(
        (&instants[0]["pid"], &instants[0]["tid"]),
        (&Value::from(2), &Value::from(5))
    );
    assert_eq!(instants[0]["ts"], 1.5e6);
    assert_eq!(instants[0]["args"]["thread"], "3/7");
    assert_eq!(instants[0]["args"]["from_pu"], 0);
}

/// A file that can be looked at after its writer was dropped.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_dropped_timeline_is_complete() {
    let file = Shared::default();
    let mut timeline = TimelineWriter::new(&chip(), file.clone()).unwrap();
    timeline.add_segment(&segment(1, 0, 0.0, 1.0)).unwrap();
    drop(timeline);
    assert_eq!(of_kind(&events(&file.0.borrow()), "X").len(), 1);
}

proptest! {
    #[test]
    fn any_run_is_valid_json_and_no_time_is_lost(
        runs in prop::collection::vec((0u32..3, 0usize..8, 0.001f64..1.0), 0..40),
    ) {
        let mut now = [0.0; 8];
        let mut total = 0.0;
        let events = written(|timeline| {
            runs.iter().try_for_each(|&(tid, pu, seconds)| {
                let start = now[pu];
                now[pu] += seconds;
                total += now[pu] - start;
                timeline.add_segment(&segment(tid, pu, start, now[pu]))
            })
        });
        let slices = of_kind(&events, "X");
        let shown: f64 = slices.iter().map(|s| s["dur"].as_f64().unwrap() / 1e6).sum();
        prop_assert!((shown - total).abs() < 1e-9 * (1.0 + total));
    }
}
