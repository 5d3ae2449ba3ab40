//! `consort simulate`: one run on a simulated machine.

mod explain;
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
use consort_data::{AtomicFile, PUBLIC};
use consort_experiment::{Contender, ProgramResult, RunResult, RunUntil, idle_warning};
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, PuUse, RunSegment};
use consort_sim::timeline::{self, TimelineWriter};
use explain::{CycleExplanation, explain_program, find_program};
use serde::Serialize;
use std::cell::RefCell;
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
    /// Explain a program's cycles per instruction by cause, alone and together, averaged over its work; by name, as hmmer or hmmer#2, or by number from 0
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) explain: Option<String>,
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

/// The JSON document: the run, and the explanation of one program.
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
    let explained = args.explain.as_deref();
    let explained = explained.map(|wanted| find_program(&experiment, wanted));
    let explained = explained.transpose()?;
    let file = LongTableFile::begin(&args.setup, &experiment.workload.text)?;
    let work = experiment.measure_work(args.setup.seed).map_err(refusal)?;
    let timeline = args.timeline.as_deref();
    let timeline = timeline.map(|path| SimulationTimeline::begin(path, &experiment.chip));
    let timeline = timeline.transpose()?;
    let observer = { timeline.clone() }.map(|timeline| Box::new(timeline) as Box<dyn Observer>);
    let run = experiment.run(&contender, &work, args.setup.seed, observer);
    let run = run.map_err(refusal)?;
    file.write(std::slice::from_ref(&run))?;
    if let Some(timeline) = timeline {
        timeline.finish()?;
    }
    let explain = explained.map(|n| explain_program(&experiment, &contender, &work, &run, n));
    let explain = explain.transpose()?;
    let warnings = idle_warning(&experiment, &contender, std::slice::from_ref(&run));
    let warnings: Vec<String> = warnings.map_err(refusal)?.into_iter().collect();
    let document = SimulateDocument {
        run: &run,
        warnings: &warnings,
        explain: explain.as_ref(),
    };
    output::print(args.setup.format, COLUMNS, &run.programs, &document, || {
        let machine = descriptions::label(&args.setup.machine, &run.machine);
        let explained = explain.as_ref().map(CycleExplanation::text);
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

impl Observer for SimulationTimeline {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
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
}
