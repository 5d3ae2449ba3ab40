//! The timeline of a live run: a row per thread, with the CPU on which it ran.
//!
//! The CPU on which a thread was seen at the end of a quantum stands for all of the quantum.

use super::TimelineFile;
use anyhow::Result;
use consort_core::trial::Arm;
use consort_core::{
    ControlTurn, Observation, Placement, ProgramId, Sample, Signal, ThreadId, ThreadObservation,
};
use consort_data::{TraceTrack, TraceWriter};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Nanoseconds per second.
const NS_PER_S: f64 = 1e9;

/// A timeline that is written turn by turn.
pub(crate) struct LiveTimeline {
    file: TimelineFile,
    trace: LiveTrace<BufWriter<File>>,
}

impl LiveTimeline {
    /// Begins the file, if one was requested, before anything is started.
    pub(crate) fn begin(path: Option<&Path>) -> Result<Option<Self>> {
        let Some(path) = path else {
            return Ok(None);
        };
        let (file, trace) = TimelineFile::begin(path)?;
        let trace = LiveTrace::new(trace, std::process::id());
        Ok(Some(Self { file, trace }))
    }

    pub(crate) fn add(&mut self, turn: &ControlTurn) -> io::Result<()> {
        self.trace.add(turn)
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        self.file.finish(self.trace.close())
    }
}

/// A thread that stays on a CPU, or is paused.
#[derive(Clone, Debug)]
struct OpenStay {
    /// `None` if it is paused.
    cpu: Option<u32>,
    from_ns: u64,
    to_ns: u64,
    ran_ns: f64,
    placed: String,
}

/// Events of a live run.
struct LiveTrace<W: Write> {
    trace: TraceWriter<W>,
    /// Consort's own process, whose row has the stretches of a trial.
    own: u32,
    processes: BTreeSet<u32>,
    open: BTreeMap<ThreadId, OpenStay>,
    /// Placements in the present quantum.
    placed: BTreeMap<ThreadId, String>,
    /// Programs that are paused in it.
    paused: BTreeSet<ProgramId>,
    /// Begin of the present unmanaged stretch, ns.
    unmanaged_since_ns: Option<u64>,
    now_ns: u64,
    /// Number of threads that were nudged after the last quantum.
    nudges: usize,
}

impl<W: Write> LiveTrace<W> {
    fn new(trace: TraceWriter<W>, own: u32) -> Self {
        Self {
            trace,
            own,
            processes: BTreeSet::new(),
            open: BTreeMap::new(),
            placed: BTreeMap::new(),
            paused: BTreeSet::new(),
            unmanaged_since_ns: None,
            now_ns: 0,
            nudges: 0,
        }
    }

    /// Adds the quantum that has ended, and what follows from the plan for the next.
    fn add(&mut self, turn: &ControlTurn) -> io::Result<()> {
        let seen = &turn.observation;
        self.now_ns = seen.time_ns;
        let present: BTreeSet<ThreadId> = seen.threads.iter().map(|thread| thread.id).collect();
        for thread in seen.threads.iter().chain(&seen.exited) {
            self.add_thread(seen, thread)?;
        }
        let gone: Vec<ThreadId> = { self.open.keys() }
            .filter(|id| !present.contains(id))
            .copied()
            .collect();
        for id in gone {
            if let Some(stay) = self.open.remove(&id) {
                self.write_stay(id, &stay)?;
            }
            let at_s = self.now_ns as f64 / NS_PER_S;
            self.trace.add_instant(track(id), "exit", at_s, json!({}))?;
        }
        self.add_counters(seen)?;
        for id in &turn.enacted.moved {
            let placement = turn.plan.placements.get(id).map(Placement::to_string);
            let reasons = &turn.plan.report.threads;
            let reason = reasons.get(id).map(|reason| &reason.chosen);
            let args = json!({ "to": placement, "why": reason });
            let at_s = self.now_ns as f64 / NS_PER_S;
            self.trace.add_instant(track(*id), "move", at_s, args)?;
        }
        if turn.was_enacted() {
            self.paused.clone_from(&turn.plan.paused);
            let placements = turn.plan.placements.iter();
            self.placed = placements
                .map(|(id, placement)| (*id, placement.to_string()))
                .collect();
        }
        let nudges = turn.enacted.nudged.len();
        if std::mem::replace(&mut self.nudges, nudges) != nudges {
            self.name_own_process()?;
            let at_s = self.now_ns as f64 / NS_PER_S;
            self.trace
                .add_counter(self.own, "nudged threads", at_s, nudges as f64)?;
        }
        match (turn.arm, self.unmanaged_since_ns) {
            (Arm::Unmanaged, None) => self.unmanaged_since_ns = Some(self.now_ns),
            (Arm::Managed, Some(_)) => self.end_unmanaged()?,
            _ => {}
        }
        Ok(())
    }

    fn add_thread(&mut self, seen: &Observation, thread: &ThreadObservation) -> io::Result<()> {
        if !self.open.contains_key(&thread.id) {
            if self.processes.insert(thread.id.pid) {
                self.trace.name_process(thread.id.pid, &thread.name)?;
            }
            self.trace.name_track(track(thread.id), &thread.name)?;
        }
        let is_paused = self.paused.contains(&seen.program_of(thread.id));
        let ran_ns = thread.sample.cpu_time_ns();
        let cpu = thread.last_pu.map(|pu| pu.0).filter(|_| !is_paused);
        let next = OpenStay {
            cpu,
            from_ns: seen.time_ns.saturating_sub(seen.interval_ns),
            to_ns: seen.time_ns,
            ran_ns,
            placed: self.placed.get(&thread.id).cloned().unwrap_or_default(),
        };
        let is_same = |stay: &OpenStay| {
            (stay.cpu, &stay.placed) == (cpu, &next.placed) && stay.to_ns == next.from_ns
        };
        match self.open.get_mut(&thread.id) {
            Some(stay) if is_same(stay) => {
                stay.to_ns = seen.time_ns;
                stay.ran_ns += ran_ns;
            }
            _ => {
                if let Some(ended) = self.open.insert(thread.id, next) {
                    self.write_stay(thread.id, &ended)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a stay; one in which a thread only slept is left out.
    fn write_stay(&mut self, id: ThreadId, stay: &OpenStay) -> io::Result<()> {
        let name = match stay.cpu {
            Some(cpu) if stay.ran_ns > 0.0 => format!("CPU {cpu}"),
            Some(_) => return Ok(()),
            None => "paused".to_owned(),
        };
        let args = json!({
            "share_of_cpu": stay.ran_ns / (stay.to_ns - stay.from_ns).max(1) as f64,
            "placed": stay.placed,
        });
        let span_s = [stay.from_ns, stay.to_ns].map(|ns| ns as f64 / NS_PER_S);
        self.trace.add_slice(track(id), &name, span_s, args)
    }

    /// Writes the counters of each process that the tier gives.
    fn add_counters(&mut self, seen: &Observation) -> io::Result<()> {
        let mut samples: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
        for thread in seen.threads.iter().chain(&seen.exited) {
            samples
                .entry(thread.id.pid)
                .or_default()
                .push(&thread.sample);
        }
        let from_s = seen.time_ns.saturating_sub(seen.interval_ns) as f64 / NS_PER_S;
        let length_ns = seen.interval_ns.max(1) as f64;
        for (pid, samples) in samples {
            let sum = |signal| -> Option<f64> {
                let values = samples.iter().filter_map(|sample| sample.get(signal));
                values.reduce(|sum, value| sum + value)
            };
            let cpu_ns: f64 = samples.iter().map(|sample| sample.cpu_time_ns()).sum();
            let stalled = samples
                .iter()
                .filter_map(|sample| Some(sample.get(Signal::MemoryStall)? * sample.cpu_time_ns()));
            let stalled_ns = stalled.reduce(|sum, ns| sum + ns);
            let (instructions, cycles) = (sum(Signal::Instructions), sum(Signal::Cycles));
            let counters = [
                ("CPUs in use", Some(cpu_ns / length_ns)),
                (
                    "waiting for CPUs",
                    sum(Signal::WaitTime).map(|ns| ns / length_ns),
                ),
                (
                    "IPC",
                    instructions.zip(cycles).map(|(n, cycles)| n / cycles),
                ),
                (
                    "10⁹ instructions per s",
                    instructions.map(|n| n / length_ns),
                ),
                (
                    "share stalled behind loads",
                    stalled_ns.map(|ns| ns / cpu_ns),
                ),
            ];
            for (name, value) in counters {
                if let Some(value) = value {
                    self.trace.add_counter(pid, name, from_s, value)?;
                }
            }
        }
        Ok(())
    }

    fn name_own_process(&mut self) -> io::Result<()> {
        match self.processes.insert(self.own) {
            true => self.trace.name_process(self.own, "consort"),
            false => Ok(()),
        }
    }

    fn end_unmanaged(&mut self) -> io::Result<()> {
        let Some(since_ns) = self.unmanaged_since_ns.take() else {
            return Ok(());
        };
        self.name_own_process()?;
        let on = TraceTrack {
            process: self.own,
            track: self.own,
        };
        let span_s = [since_ns, self.now_ns].map(|ns| ns as f64 / NS_PER_S);
        self.trace
            .add_slice(on, "unmanaged stretch", span_s, json!({}))
    }

    fn close(mut self) -> io::Result<TraceWriter<W>> {
        self.end_unmanaged()?;
        for (id, stay) in std::mem::take(&mut self.open) {
            self.write_stay(id, &stay)?;
        }
        Ok(self.trace)
    }
}

fn track(id: ThreadId) -> TraceTrack {
    TraceTrack {
        process: id.pid,
        track: id.tid,
    }
}
