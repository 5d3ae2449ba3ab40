//! `--timeline`: the recording as Perfetto shows it, a track per thread and a slice per quantum.

use consort_core::{ControlTurn, Plan, ThreadId, ThreadObservation};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Events so far, in the format of Chrome's tracing (Trace Event Format, 2016).
#[derive(Default)]
pub(super) struct ReplayTimeline {
    events: Vec<Value>,
    named: BTreeSet<ThreadId>,
}

impl ReplayTimeline {
    /// Adds a quantum: what ran, where it was placed then, and where the policy would have it.
    pub(super) fn add(&mut self, turn: &ControlTurn, recorded: &Plan) {
        let observation = &turn.observation;
        let length_ns = observation.interval_ns as f64;
        let start_us = (observation.time_ns as f64 - length_ns).max(0.0) / 1e3;
        for thread in &observation.threads {
            let share = observation.cpu_share(thread);
            if share <= 0.0 {
                continue;
            }
            if self.named.insert(thread.id) {
                self.events.push(name(thread));
            }
            let placed = |plan: &Plan| plan.placements.get(&thread.id).map(ToString::to_string);
            self.events.push(json!({
                "name": observation.class_of(thread).to_string(),
                "cat": "quantum",
                "ph": "X",
                "ts": start_us,
                "dur": length_ns / 1e3,
                "pid": thread.id.pid,
                "tid": thread.id.tid,
                "args": {
                    "share of a PU": share,
                    "last PU": thread.last_pu.map(|pu| pu.0),
                    "was placed": placed(recorded),
                    "would be placed": placed(&turn.plan),
                },
            }));
        }
    }

    /// The whole as one document.
    pub(super) fn into_text(self) -> String {
        json!({ "displayTimeUnit": "ms", "traceEvents": self.events }).to_string()
    }
}

fn name(thread: &ThreadObservation) -> Value {
    json!({
        "name": "thread_name",
        "ph": "M",
        "pid": thread.id.pid,
        "tid": thread.id.tid,
        "args": { "name": *thread.name },
    })
}
