//! `consort simulate`: one run on a simulated machine.

mod explain;
mod reference;
mod timeline;

use super::compare::{experiment, refusal};
use crate::cli::{Fidelity, OutputFormat, SimulateArgs};
use crate::descriptions;
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::table_file::LongTableFile;
use anyhow::Result;
use consort_experiment::{Contender, Experiment, ProgramResult, RunResult};
use consort_sim::engine::{Observer, RunSegment};
use explain::{CycleExplanation, LastSegments};
use serde::Serialize;
use std::process::ExitCode;
use timeline::SimulationTimeline;

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

/// The JSON document: the run, and what was to be explained.
#[derive(Serialize)]
struct SimulateDocument<'a> {
    #[serde(flatten)]
    run: &'a RunResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a CycleExplanation>,
}

pub(crate) fn execute(args: &SimulateArgs) -> Result<ExitCode> {
    match args.fidelity {
        Fidelity::Fast => run_fast(args),
        Fidelity::Reference => reference::execute(args),
    }
}

fn run_fast(args: &SimulateArgs) -> Result<ExitCode> {
    if args.instructions.is_some() {
        let why =
            "--instructions is for --fidelity reference; --alone says how long programs are here";
        return Err(bad_input(why));
    }
    let experiment = experiment(&args.setup)?;
    let contender = Contender::new(&args.policy, &args.setup.os).map_err(refusal)?;
    check_thread(args, &experiment)?;
    let file = LongTableFile::begin(&args.setup, &experiment.workload.text)?;
    let work = experiment.measure_work(args.setup.seed).map_err(refusal)?;
    let watch = SimulateObservers::new(args, &experiment)?;
    let observer = watch.observer();
    let run = experiment.run(&contender, &work, args.setup.seed, observer);
    let run = run.map_err(refusal)?;
    file.write(std::slice::from_ref(&run))?;
    let explained = watch.finish(args, &experiment)?;
    print(args, &run, explained.as_ref())?;
    Ok(ExitCode::SUCCESS)
}

fn check_thread(args: &SimulateArgs, experiment: &Experiment) -> Result<()> {
    let threads: u32 = experiment.workload.entries.iter().map(|e| e.threads).sum();
    match args.explain {
        Some(thread) if thread >= threads as usize => Err(bad_input(format!(
            "--explain {thread}: the workload has threads 0 to {}",
            threads.saturating_sub(1)
        ))),
        _ => Ok(()),
    }
}

fn print(args: &SimulateArgs, run: &RunResult, explain: Option<&CycleExplanation>) -> Result<()> {
    let mut out = output::stdout();
    let format = args.setup.format;
    output::print(
        &mut out,
        format,
        COLUMNS,
        &run.programs,
        &SimulateDocument { run, explain },
    )?;
    if format == OutputFormat::Table {
        let machine = descriptions::label(&args.setup.machine, &run.machine);
        output::print_text(&mut out, &summary(run, &machine))?;
        if let Some(explained) = explain {
            output::print_text(&mut out, &explained.table())?;
        }
    }
    Ok(())
}

fn summary(run: &RunResult, machine: &str) -> String {
    format!(
        "\n{} under {} on {} (seed {}, one run, simulated)\n\
         STP {:.3}, ANTT {:.3}, unfairness {:.3}, makespan {:.2} s, energy {:.0} J, ED {:.0} J s\n\
         {} masks changed, {} migrations; decisions {:.1} us mean, {:.1} us at most ({} made)\n\
         {:.1} s simulated in {:.3} s of host time, {:.2e} instructions per host second\n",
        run.workload,
        run.policy,
        machine,
        run.seed,
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

/// Observers of a run, for what is kept of it besides its results.
struct SimulateObservers {
    timeline: Option<SimulationTimeline>,
    last: Option<LastSegments>,
}

impl SimulateObservers {
    fn new(args: &SimulateArgs, experiment: &Experiment) -> Result<Self> {
        let timeline = args.timeline.as_deref();
        let begin = |path| SimulationTimeline::begin(path, &experiment.chip);
        Ok(Self {
            timeline: timeline.map(begin).transpose()?,
            last: args.explain.map(|_| LastSegments::default()),
        })
    }

    fn observer(&self) -> Option<Box<dyn Observer>> {
        let timeline = self.timeline.clone();
        let last = self.last.clone();
        let wanted = timeline.is_some() || last.is_some();
        wanted.then(|| Box::new(ObserverPair { timeline, last }) as Box<dyn Observer>)
    }

    fn finish(
        self,
        args: &SimulateArgs,
        experiment: &Experiment,
    ) -> Result<Option<CycleExplanation>> {
        if let Some(timeline) = self.timeline {
            timeline.finish()?;
        }
        let explained = self.last.zip(args.explain);
        Ok(explained.and_then(|(last, thread)| last.explain(thread, &experiment.chip)))
    }
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
