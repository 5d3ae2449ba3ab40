//! `consort simulate`: one run on a simulated machine.

mod reference;

use super::compare::{experiment, refusal, warning_lines};
use crate::commands::compare::{LongTableFile, SetupArgs};
use crate::failure::bad_input;
use crate::options::count_parser;
use crate::output::file::OutPlace;
use crate::output::{self, OutputColumn, number, text};
use crate::{descriptions, values};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use consort_core::ThreadId;
use consort_data::{AtomicFile, PUBLIC};
use consort_experiment::{Contender, ProgramResult, RunResult, RunUntil, idle_warning};
use consort_sim::chip::Chip;
use consort_sim::contention::{CpiStack, ThreadRates};
use consort_sim::engine::{Observer, PuUse, RunSegment};
use consort_sim::timeline::{self, TimelineWriter};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Policy with options as NAME:key=value,key=value, or linux, linux-acmp, linux-grouped, linux-itmt, pinned for none
    #[arg(short, long, value_name = "POLICY", default_value = "linux", add = values::simulated_policy())]
    pub(crate) policy: String,
    /// Write a timeline for Perfetto (ui.perfetto.dev) to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Explain the cycles of a thread by cause, as they are at the end; by number, from 0
    #[arg(long, value_name = "THREAD")]
    pub(crate) explain: Option<usize>,
    /// Engine: fast, or the reference that executes instructions
    #[arg(long, value_enum, default_value_t)]
    pub(crate) fidelity: Fidelity,
    /// Instructions of each program that the reference measures, after as many to warm caches; all of its trace if not given
    #[arg(long, value_name = "N", value_parser = count_parser::<u64>(1..=1_000_000_000))]
    pub(crate) instructions: Option<u64>,
}

/// Engines that simulate a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fidelity {
    /// By rates of described programs; whole runs under policies.
    #[default]
    Fast,
    /// Cycle by cycle: traced programs (traces/index.csv in the sources, or files that consort profile --trace wrote), one per PU from the first.
    Reference,
}

const COLUMNS: &[OutputColumn<ProgramResult>] = &[
    text("program", |p| p.name.clone()),
    number("alone (s)", |p| format!("{:.2}", p.alone_s)),
    number("together (s)", |p| format!("{:.2}", p.together_s)),
    number("slowdown", |p| format!("{:.3}", p.slowdown)),
    number("instructions (1e9)", |p| {
        format!("{:.1}", p.instructions / 1e9)
    }),
    number("IPC", |p| format!("{:.3}", p.ipc)),
    number("energy (J)", |p| format!("{:.1}", p.energy_j)),
];

/// The JSON document: the run, and the explanation of one thread.
#[derive(Serialize)]
struct SimulateDocument<'a> {
    #[serde(flatten)]
    run: &'a RunResult,
    /// The policy decided once or moved nothing.
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a CycleExplanation>,
}

pub(crate) fn execute(args: &SimulateArgs) -> Result<ExitCode> {
    if args.fidelity == Fidelity::Reference {
        return reference::execute(args);
    }
    if args.instructions.is_some() {
        return Err(bad_input(
            "--instructions is for --fidelity reference; --alone sets the length of programs here",
        ));
    }
    let experiment = experiment(&args.setup)?;
    let contender = Contender::new(&args.policy, &args.setup.os).map_err(refusal)?;
    let threads: u32 = experiment.workload.entries.iter().map(|e| e.threads).sum();
    if let Some(thread) = args.explain.filter(|&thread| thread >= threads as usize) {
        return Err(bad_input(format!(
            "--explain {thread}: the workload has threads 0 to {}",
            threads.saturating_sub(1)
        )));
    }
    let file = LongTableFile::begin(&args.setup, &experiment.workload.text)?;
    let work = experiment.measure_work(args.setup.seed).map_err(refusal)?;
    let timeline = args.timeline.as_deref();
    let timeline = timeline.map(|path| SimulationTimeline::begin(path, &experiment.chip));
    let timeline = timeline.transpose()?;
    let last = args.explain.map(|_| LastSegments::default());
    let observer = (timeline.is_some() || last.is_some()).then(|| {
        let (timeline, last) = (timeline.clone(), last.clone());
        Box::new(ObserverPair { timeline, last }) as Box<dyn Observer>
    });
    let run = experiment.run(&contender, &work, args.setup.seed, observer);
    let run = run.map_err(refusal)?;
    file.write(std::slice::from_ref(&run))?;
    if let Some(timeline) = timeline {
        timeline.finish()?;
    }
    let explain = last.zip(args.explain);
    let explain = explain.and_then(|(last, thread)| last.explain(thread, &experiment.chip));
    let warnings = idle_warning(&experiment, &contender, std::slice::from_ref(&run));
    let warnings: Vec<String> = warnings.map_err(refusal)?.into_iter().collect();
    let document = SimulateDocument {
        run: &run,
        warnings: &warnings,
        explain: explain.as_ref(),
    };
    output::print(args.setup.format, COLUMNS, &run.programs, &document, || {
        let machine = descriptions::label(&args.setup.machine, &run.machine);
        let explained = explain.as_ref().map(CycleExplanation::table);
        output::table(COLUMNS, &run.programs)
            + &summary(&run, &machine)
            + &warning_lines(&warnings)
            + &explained.unwrap_or_default()
    })?;
    Ok(ExitCode::SUCCESS)
}

fn summary(run: &RunResult, machine: &str) -> String {
    format!(
        "\n{} under {} on {} (seed {}, one run, simulated)\n{}\
         STP {:.3}, ANTT {:.3}, unfairness {:.3}, makespan {:.2} s, energy {:.0} J, ED {:.0} J s\n\
         {} masks changed, {} migrations; decisions {:.1} us mean, {:.1} us at most ({} made)\n\
         {:.1} s simulated in {:.3} s of host time, {:.2e} instructions per host second\n",
        run.workload,
        run.policy,
        machine,
        run.seed,
        match run.until {
            RunUntil::EqualWork => String::new(),
            RunUntil::AllFinished => format!(
                "each program once and whole: all have finished after {:.2} s\n",
                run.makespan_s
            ),
        },
        run.stp,
        run.antt,
        run.unfairness,
        run.makespan_s,
        run.energy_j,
        run.ed,
        run.moves,
        run.migrations,
        run.decision_us.mean,
        run.decision_us.max,
        run.decision_us.n,
        run.simulated_s,
        run.host_s,
        run.simulated_minstr_per_host_s * 1e6,
    )
}

/// An observer that passes everything on to both.
struct ObserverPair {
    timeline: Option<SimulationTimeline>,
    last: Option<LastSegments>,
}

impl Observer for ObserverPair {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        if let Some(timeline) = &self.timeline {
            timeline.write_segment(segment);
        }
        if let Some(last) = &self.last {
            last.keep_segment(segment);
        }
    }
}

/// Last segment of each thread: its PU and rates.
#[derive(Clone, Default)]
struct LastSegments(Rc<RefCell<BTreeMap<ThreadId, ThreadSegment>>>);

#[derive(Clone)]
struct ThreadSegment {
    name: String,
    pu: usize,
    at_s: f64,
    rates: ThreadRates,
}

/// A thread's cycles per instruction by cause, and the figures behind them.
#[derive(Debug, Serialize)]
struct CycleExplanation {
    thread: String,
    pu: usize,
    core_type: usize,
    at_s: f64,
    ips: f64,
    cpi: f64,
    stack: Vec<ExplanationTerm>,
    facts: Vec<ExplanationTerm>,
}

#[derive(Debug, Serialize)]
struct ExplanationTerm {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

const TERM_COLUMNS: &[OutputColumn<ExplanationTerm>] = &[
    text("term", |t| t.name.to_owned()),
    number("value", |t| format!("{:.4}", t.value)),
    text("unit", |t| t.unit.to_owned()),
];

impl LastSegments {
    fn keep_segment(&self, segment: &RunSegment<'_>) {
        let seen = ThreadSegment {
            name: segment.name.to_owned(),
            pu: segment.pu,
            at_s: segment.to_ps as f64 / 1e12,
            rates: *segment.rates,
        };
        self.0.borrow_mut().insert(segment.thread, seen);
    }

    /// Explains the n-th thread, by id; `None` if it never ran.
    fn explain(&self, thread: usize, chip: &Chip) -> Option<CycleExplanation> {
        let threads = self.0.borrow();
        let (id, seen) = threads.iter().nth(thread)?;
        let place = chip.places().get(seen.pu)?;
        Some(CycleExplanation {
            thread: format!("{} ({id})", seen.name),
            pu: seen.pu,
            core_type: place.core_type,
            at_s: seen.at_s,
            ips: seen.rates.ips,
            cpi: seen.rates.cpi,
            stack: { CpiStack::NAMES.into_iter().zip(seen.rates.stack.to_array()) }
                .map(|(name, value)| ExplanationTerm {
                    name,
                    value,
                    unit: "cycles/instruction",
                })
                .collect(),
            facts: facts(&seen.rates),
        })
    }
}

impl CycleExplanation {
    fn table(&self) -> String {
        format!(
            "\nthread {} on PU {} at {:.3} s: {:.4} cycles per instruction, {:.3e} instructions \
             per second\n{}\n{}",
            self.thread,
            self.pu,
            self.at_s,
            self.cpi,
            self.ips,
            output::table(TERM_COLUMNS, &self.stack),
            output::table(TERM_COLUMNS, &self.facts),
        )
    }
}

fn facts(rates: &ThreadRates) -> Vec<ExplanationTerm> {
    let fact = |name, value, unit| ExplanationTerm { name, value, unit };
    let per_kilo = |name, value: f64| fact(name, value * 1000.0, "per 1000 instructions");
    let flow = &rates.flow;
    vec![
        fact("window", rates.window, "instructions"),
        fact("overlapping misses", rates.mlp, ""),
        fact("L1D held", rates.l1d_bytes / 1024.0, "KiB"),
        fact("L2 held", rates.l2_bytes / 1024.0, "KiB"),
        fact("LLC held", rates.llc_bytes / 1024.0, "KiB"),
        per_kilo("L1D misses", flow.l1d_misses),
        per_kilo("L1I misses", flow.l1i_misses),
        per_kilo("L2 misses", flow.l2_misses),
        per_kilo("LLC misses waited for", flow.llc_misses),
        per_kilo("lines prefetched", flow.prefetched_lines),
        per_kilo("lines to and from memory", flow.memory_lines),
        per_kilo("branches mispredicted", flow.branch_misses),
        per_kilo("TLB misses", flow.tlb_misses),
    ]
}

/// A timeline for Perfetto, which becomes the file only when it is whole.
#[derive(Clone)]
struct SimulationTimeline(Rc<RefCell<TimelineState>>);

struct TimelineState {
    writer: Option<TimelineWriter<BufWriter<File>>>,
    /// The first error; later segments are not written.
    error: Option<io::Error>,
    partial: Option<AtomicFile>,
    path: PathBuf,
}

impl SimulationTimeline {
    /// Begins a file next to `path`, which must be an ordinary file or absent: a device must not be
    /// replaced at the end.
    fn begin(path: &Path, chip: &Chip) -> Result<Self> {
        let open = || -> io::Result<TimelineState> {
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
            Ok(TimelineState {
                writer: Some(TimelineWriter::new(chip, out)?),
                error: None,
                partial: Some(partial),
                path: path.to_owned(),
            })
        };
        let state = open().map_err(|error| {
            bad_input(format!("cannot write timeline {}: {error}", path.display()))
        })?;
        Ok(Self(Rc::new(RefCell::new(state))))
    }

    fn write_segment(&self, segment: &RunSegment<'_>) {
        let mut state = self.0.borrow_mut();
        if state.error.is_some() {
            return;
        }
        let works = segment.doing == PuUse::Work;
        let piece = timeline::TimelineSegment {
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
        };
        let writer = state.writer.as_mut();
        state.error = writer.and_then(|writer| writer.add_segment(&piece).err());
    }

    /// Puts the file in its place.
    fn finish(self) -> Result<()> {
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
