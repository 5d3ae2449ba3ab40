//! The timeline of a simulated run: a row per CPU, with the threads on it.
//!
//! A slice is a thread on a CPU in one phase of its program. Time in which the kernel switches to
//! it or serves its calls is an argument of the slice, because such segments are too short to see.
//! Counters are instructions per cycle of each program and the use of the memory of each node.
//!
//! Pitfall: a slice is written when the next one on its CPU begins or at the end; the file is not
//! sorted by time, which viewers do not need.

use super::TimelineFile;
use anyhow::Result;
use consort_core::{ProgramId, ThreadId};
use consort_data::{TraceTrack, TraceWriter};
use consort_sim::chip::Chip;
use consort_sim::contention::Solution;
use consort_sim::engine::{Observer, PuUse, RunSegment};
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

/// Picoseconds per second.
const PS_PER_S: f64 = 1e12;
/// Time over which counters are means, s.
const COUNTER_S: f64 = 0.1;
/// Relative change below which a counter is not written again.
const UNCHANGED: f64 = 0.01;
/// The process of the whole machine.
const MACHINE: u32 = 0;

/// A timeline that an engine and its caller share.
#[derive(Clone)]
pub(crate) struct SimulationTimeline(Rc<RefCell<FileState>>);

struct FileState {
    /// Both are `None` once the timeline is finished.
    parts: Option<(TimelineFile, SimulationTrace<BufWriter<File>>)>,
    /// The first error; later events are not written.
    error: Option<io::Error>,
}

impl SimulationTimeline {
    pub(crate) fn begin(path: &Path, chip: &Chip) -> Result<Self> {
        let (file, trace) = TimelineFile::begin(path)?;
        let mut state = FileState {
            parts: None,
            error: None,
        };
        match SimulationTrace::new(chip, trace) {
            Ok(trace) => state.parts = Some((file, trace)),
            Err(error) => file.finish(Err(error))?,
        }
        Ok(Self(Rc::new(RefCell::new(state))))
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let mut state = self.0.borrow_mut();
        let Some((file, trace)) = state.parts.take() else {
            return Ok(());
        };
        let error = state.error.take();
        file.finish(error.map_or_else(|| trace.close(), Err))
    }

    fn write(&self, event: impl FnOnce(&mut SimulationTrace<BufWriter<File>>) -> io::Result<()>) {
        let mut state = self.0.borrow_mut();
        if let FileState {
            parts: Some((_, trace)),
            error: error @ None,
        } = &mut *state
        {
            *error = event(trace).err();
        }
    }
}

impl Observer for SimulationTimeline {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        self.write(|trace| trace.add_segment(segment));
    }

    fn note_completion(&mut self, program: ProgramId, at_ps: u64) {
        self.write(|trace| trace.add_completion(program, at_ps));
    }

    fn note_solution(&mut self, at_ps: u64, solution: &Solution) {
        self.write(|trace| trace.add_memory_use(at_ps, &solution.memory_utilisation));
    }
}

/// A thread on a CPU in one phase.
#[derive(Clone, Debug)]
struct OpenSlice {
    thread: ThreadId,
    name: String,
    phase: (usize, usize),
    spins: bool,
    from_ps: u64,
    to_ps: u64,
    /// Time in the kernel, and refilling what others have overwritten, ps.
    kernel_ps: u64,
    refill_ps: u64,
    instructions: f64,
    cycles: f64,
}

/// Sums of a program since its counter was written last.
#[derive(Clone, Debug, Default)]
struct ProgramCounter {
    name: String,
    since_ps: u64,
    instructions: f64,
    cycles: f64,
    /// Value that was written last.
    ipc: f64,
    completions: u32,
    /// The CPU on which one of its threads was last.
    last_pu: usize,
}

/// Events of a simulated run.
struct SimulationTrace<W: Write> {
    trace: TraceWriter<W>,
    /// Process of each CPU.
    processes: Vec<u32>,
    /// Per CPU, the slice that may still grow.
    open: Vec<Option<OpenSlice>>,
    /// The CPU of each thread's last segment.
    last_pus: BTreeMap<ThreadId, usize>,
    programs: BTreeMap<ProgramId, ProgramCounter>,
    /// Use of the memory of each node that was written last.
    memory: Vec<f64>,
}

impl<W: Write> SimulationTrace<W> {
    /// Begins a timeline with the names of the chip's parts.
    fn new(chip: &Chip, mut trace: TraceWriter<W>) -> io::Result<Self> {
        trace.name_process(MACHINE, &format!("machine {}", chip.spec().name))?;
        let processes: Vec<u32> = chip.places().iter().map(|p| p.llc as u32 + 1).collect();
        let mut domain = None;
        for (pu, &place) in chip.places().iter().enumerate() {
            if domain.replace(place.llc) != Some(place.llc) {
                let name = format!("LLC domain {} (node {})", place.llc, place.node);
                trace.name_process(processes[pu], &name)?;
            }
            let core_type = &chip.topology().core_types()[place.core_type].name;
            let name = format!("CPU {pu} (core {}, {core_type})", place.core);
            trace.name_track(track(&processes, pu), &name)?;
        }
        Ok(Self {
            trace,
            open: vec![None; processes.len()],
            processes,
            last_pus: BTreeMap::new(),
            programs: BTreeMap::new(),
            memory: Vec::new(),
        })
    }

    /// Adds a segment. One that follows the last on its CPU, of the same thread in the same phase,
    /// lengthens its slice; one of a thread that was on another CPU is a migration.
    fn add_segment(&mut self, segment: &RunSegment<'_>) -> io::Result<()> {
        if segment.to_ps <= segment.from_ps || segment.pu >= self.open.len() {
            return Ok(());
        }
        let spins = segment.doing == PuUse::Spin;
        let follows = |open: &OpenSlice| {
            open.thread == segment.thread
                && open.to_ps == segment.from_ps
                && (open.phase, open.spins) == (segment.phase, spins)
        };
        if !self.open[segment.pu].as_ref().is_some_and(follows) {
            let slice = OpenSlice {
                thread: segment.thread,
                name: segment.name.to_owned(),
                phase: segment.phase,
                spins,
                from_ps: segment.from_ps,
                to_ps: segment.from_ps,
                kernel_ps: 0,
                refill_ps: 0,
                instructions: 0.0,
                cycles: 0.0,
            };
            if let Some(ended) = self.open[segment.pu].replace(slice) {
                self.write_slice(segment.pu, &ended)?;
            }
            let before = self.last_pus.insert(segment.thread, segment.pu);
            if let Some(before) = before.filter(|&before| before != segment.pu) {
                let args = json!({
                    "thread": segment.thread.to_string(),
                    "from_pu": before,
                    "to_pu": segment.pu,
                });
                let on = track(&self.processes, segment.pu);
                let at_s = segment.from_ps as f64 / PS_PER_S;
                self.trace.add_instant(on, "migration", at_s, args)?;
            }
        }
        let length_ps = segment.to_ps - segment.from_ps;
        let (mut instructions, mut cycles) = (0.0, 0.0);
        if segment.doing == PuUse::Work {
            instructions = segment.rates.ips * length_ps as f64 / PS_PER_S;
            cycles = segment.rates.cpi * instructions;
        }
        if let Some(slice) = &mut self.open[segment.pu] {
            slice.to_ps = segment.to_ps;
            slice.instructions += instructions;
            slice.cycles += cycles;
            match segment.doing {
                PuUse::Kernel => slice.kernel_ps += length_ps,
                PuUse::Overhead => slice.refill_ps += length_ps,
                PuUse::Work | PuUse::Spin => {}
            }
        }
        self.count(segment, instructions, cycles)
    }

    /// Adds work to the counter of a program, and writes its mean now and then.
    fn count(
        &mut self,
        segment: &RunSegment<'_>,
        instructions: f64,
        cycles: f64,
    ) -> io::Result<()> {
        let id = segment.thread.program();
        let program = self.programs.entry(id).or_insert_with(|| ProgramCounter {
            name: format!("IPC of {} ({id})", segment.name),
            since_ps: segment.from_ps,
            ..ProgramCounter::default()
        });
        program.last_pu = segment.pu;
        program.instructions += instructions;
        program.cycles += cycles;
        let since_s = program.since_ps as f64 / PS_PER_S;
        if program.cycles <= 0.0 || segment.to_ps as f64 / PS_PER_S < since_s + COUNTER_S {
            return Ok(());
        }
        let ipc = program.instructions / program.cycles;
        let is_new = differs(ipc, program.ipc);
        (program.since_ps, program.instructions, program.cycles) = (segment.to_ps, 0.0, 0.0);
        if is_new {
            program.ipc = ipc;
            self.trace
                .add_counter(MACHINE, &program.name, since_s, ipc)?;
        }
        Ok(())
    }

    /// Ends the slices of a program and marks the CPU on which it was last.
    fn add_completion(&mut self, id: ProgramId, at_ps: u64) -> io::Result<()> {
        for pu in 0..self.open.len() {
            let is_its = |open: &mut OpenSlice| open.thread.program() == id;
            if let Some(ended) = self.open[pu].take_if(is_its) {
                self.write_slice(pu, &ended)?;
            }
        }
        let Some(program) = self.programs.get_mut(&id) else {
            return Ok(());
        };
        program.completions += 1;
        let name = program.name.trim_start_matches("IPC of ");
        let name = format!("{name} has done its work");
        let args = json!({ "program": id.0, "times": program.completions });
        let on = track(&self.processes, program.last_pu);
        self.trace
            .add_instant(on, &name, at_ps as f64 / PS_PER_S, args)
    }

    fn add_memory_use(&mut self, at_ps: u64, nodes: &[f64]) -> io::Result<()> {
        self.memory.resize(nodes.len(), 0.0);
        for (node, (&now, last)) in nodes.iter().zip(&mut self.memory).enumerate() {
            if differs(now, *last) {
                *last = now;
                let name = format!("memory of node {node}, share in use");
                self.trace
                    .add_counter(MACHINE, &name, at_ps as f64 / PS_PER_S, now)?;
            }
        }
        Ok(())
    }

    fn close(mut self) -> io::Result<TraceWriter<W>> {
        let open: Vec<Option<OpenSlice>> = self.open.iter_mut().map(Option::take).collect();
        for (pu, slice) in open.iter().enumerate() {
            if let Some(slice) = slice {
                self.write_slice(pu, slice)?;
            }
        }
        Ok(self.trace)
    }

    fn write_slice(&mut self, pu: usize, slice: &OpenSlice) -> io::Result<()> {
        let seconds = |ps: u64| ps as f64 / PS_PER_S;
        let length_s = seconds(slice.to_ps - slice.from_ps);
        let mut args = json!({
            "program": slice.thread.pid,
            "thread": slice.thread.tid,
            "ips": slice.instructions / length_s,
            "switching_and_calls_s": seconds(slice.kernel_ps),
            "refilling_caches_s": seconds(slice.refill_ps),
        });
        if slice.instructions > 0.0 {
            args["cpi"] = json!(slice.cycles / slice.instructions);
        }
        let (phase, phases) = slice.phase;
        let mut name = slice.name.clone();
        if phases > 1 {
            name = format!("{name}, phase {} of {phases}", phase + 1);
        }
        if slice.spins {
            name.push_str(" (spins for others)");
        }
        let span_s = [seconds(slice.from_ps), seconds(slice.to_ps)];
        let on = track(&self.processes, pu);
        self.trace.add_slice(on, &name, span_s, args)
    }
}

fn track(processes: &[u32], pu: usize) -> TraceTrack {
    TraceTrack {
        process: processes[pu],
        track: pu as u32,
    }
}

fn differs(now: f64, last: f64) -> bool {
    (now - last).abs() > UNCHANGED * last.abs().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_sim::contention::ThreadRates;
    use serde_json::Value;

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 3,
            tid,
            start_ticks: 0,
        }
    }

    /// Runs on a CPU in ms, as (tid, CPU, begin and end, use, phase).
    type Run = (u32, usize, [u64; 2], PuUse, usize);

    fn written(runs: &[Run], complete_at_ms: Option<u64>) -> Vec<Value> {
        let chip = crate::descriptions::chip("power7").unwrap();
        let trace = TraceWriter::new(Vec::new()).unwrap();
        let mut trace = SimulationTrace::new(&chip, trace).unwrap();
        let rates = ThreadRates {
            ips: 1e9,
            cpi: 2.0,
            ..ThreadRates::default()
        };
        for &(tid, pu, [from, to], doing, phase) in runs {
            let segment = RunSegment {
                thread: thread(tid),
                name: "x",
                pu,
                from_ps: from * 1_000_000_000,
                to_ps: to * 1_000_000_000,
                doing,
                phase: (phase, 2),
                kernel_share: 0.0,
                rates: &rates,
            };
            trace.add_segment(&segment).unwrap();
            if complete_at_ms == Some(to) {
                trace
                    .add_completion(ProgramId(3), to * 1_000_000_000)
                    .unwrap();
            }
        }
        let bytes = trace.close().unwrap().finish().unwrap();
        let file: Value = serde_json::from_slice(&bytes).unwrap();
        file["traceEvents"].as_array().unwrap().clone()
    }

    fn of_kind<'a>(events: &'a [Value], ph: &str) -> Vec<&'a Value> {
        events.iter().filter(|event| event["ph"] == ph).collect()
    }

    #[test]
    fn switching_does_not_break_or_name_slices_but_phases_do() {
        let events = written(
            &[
                (1, 0, [0, 10], PuUse::Kernel, 0),
                (1, 0, [10, 100], PuUse::Work, 0),
                (1, 0, [100, 300], PuUse::Work, 1),
                (1, 0, [300, 310], PuUse::Spin, 1),
            ],
            None,
        );
        let slices = of_kind(&events, "X");
        let names: Vec<&str> = slices.iter().map(|s| s["name"].as_str().unwrap()).collect();
        let expected = [
            "x, phase 1 of 2",
            "x, phase 2 of 2",
            "x, phase 2 of 2 (spins for others)",
        ];
        assert_eq!(names, expected);
        let args = &slices[0]["args"];
        assert_eq!(args["switching_and_calls_s"], 0.01);
        // 90 of 100 ms at 10⁹ instructions per s.
        assert!((args["ips"].as_f64().unwrap() - 0.9e9).abs() < 1.0);
        assert_eq!(args["cpi"], 2.0);
    }

    #[test]
    fn completed_program_ends_its_slice() {
        let runs = [
            (1, 0, [0, 100], PuUse::Work, 0),
            (1, 0, [100, 200], PuUse::Work, 0),
        ];
        let events = written(&runs, Some(100));
        assert_eq!(of_kind(&events, "X").len(), 2);
        let instants = of_kind(&events, "i");
        assert_eq!(instants[0]["name"], "x (3) has done its work");
        assert_eq!(instants[0]["ts"], 1e5);
        assert_eq!(of_kind(&written(&runs, None), "X").len(), 1);
    }

    #[test]
    fn thread_that_moves_or_pauses_begins_a_slice() {
        let events = written(
            &[
                (1, 0, [0, 50], PuUse::Work, 0),
                (1, 0, [60, 100], PuUse::Work, 0),
                (1, 5, [100, 150], PuUse::Work, 0),
                (1, 5, [150, 150], PuUse::Work, 0),
                (1, 999, [150, 160], PuUse::Work, 0),
            ],
            None,
        );
        assert_eq!(of_kind(&events, "X").len(), 3);
        let moves = of_kind(&events, "i");
        assert_eq!(moves.len(), 1);
        assert_eq!(
            (&moves[0]["args"]["from_pu"], &moves[0]["tid"]),
            (&json!(0), &json!(5))
        );
    }

    #[test]
    fn counter_is_written_when_it_changes() {
        let run = |from: u64, doing| (1, 0, [from, from + 50], doing, 0);
        let runs: Vec<Run> = (0..20).map(|n| run(50 * n, PuUse::Work)).collect();
        let events = written(&runs, None);
        let counters = of_kind(&events, "C");
        assert_eq!(counters.len(), 1, "{counters:?}");
        assert_eq!(counters[0]["args"]["value"], 0.5);
    }
}
