//! `consort simulate`: one run on a simulated machine.

mod explain;
mod reference;

use super::compare::{experiment, refusal, warning_lines};
use crate::commands::compare::{LongTableFile, SetupArgs};
use crate::failure::bad_input;
use crate::options::count_parser;
use crate::output::{self, OutputColumn, count, number, text};
use crate::progress::{self, ProgressMeter};
use crate::timelines::SimulationTimeline;
use crate::{descriptions, values};
use anyhow::Result;
use clap::{Args, ValueEnum};
use consort_core::ProgramId;
use consort_experiment::{Contender, ProgramResult, RunResult, RunUntil, idle_warning};
use consort_sim::contention::Solution;
use consort_sim::engine::{Observer, RunSegment};
use explain::{CycleExplanation, explain_program, find_program};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

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
    /// Cycle by cycle: traced programs (traces/index.csv in the sources, or files that consort profile --trace wrote), one per CPU from the first.
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
    let meter = Rc::new(progress::start_meter("programs done"));
    let work = experiment.measure_work(args.setup.seed).map_err(refusal)?;
    let timeline = args.timeline.as_deref();
    let timeline = timeline.map(|path| SimulationTimeline::begin(path, &experiment.chip));
    let timeline = timeline.transpose()?;
    let observer = SimulationWatch {
        timeline: timeline.clone(),
        meter: Rc::clone(&meter),
        programs: experiment.workload.entries.len(),
        done: BTreeSet::new(),
    };
    // A run without observers is faster.
    let is_watched = timeline.is_some() || meter.is_shown();
    let observer = is_watched.then(|| Box::new(observer) as Box<dyn Observer>);
    let run = experiment.run(&contender, &work, args.setup.seed, observer);
    meter.finish();
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

/// Timeline and line of progress of a run.
struct SimulationWatch {
    timeline: Option<SimulationTimeline>,
    meter: Rc<ProgressMeter>,
    programs: usize,
    /// Programs that have done their work.
    done: BTreeSet<ProgramId>,
}

impl Observer for SimulationWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        if let Some(timeline) = &mut self.timeline {
            timeline.note_segment(segment);
        }
    }

    fn note_completion(&mut self, program: ProgramId, at_ps: u64) {
        self.done.insert(program);
        self.meter.set_done(self.done.len(), self.programs);
        if let Some(timeline) = &mut self.timeline {
            timeline.note_completion(program, at_ps);
        }
    }

    fn note_solution(&mut self, at_ps: u64, solution: &Solution) {
        if let Some(timeline) = &mut self.timeline {
            timeline.note_solution(at_ps, solution);
        }
    }
}

fn summary(run: &RunResult, machine: &str) -> String {
    format!(
        "\n{} under {} on {} (seed {}, one run, simulated)\n{}\
         STP {:.3}, ANTT {:.3}, unfairness {:.3}, makespan {:.2} s\n\
         energy {:.0} J, ED {:.0} J s\n\
         {} and {}; decisions took {:.1} us on average, {:.1} us at most ({} made)\n\
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
        count(run.moves as usize, "changed mask"),
        count(run.migrations as usize, "migration"),
        run.decision_us.mean,
        run.decision_us.max,
        run.decision_us.n,
        run.simulated_s,
        run.host_s,
        run.simulated_minstr_per_host_s * 1e6,
    )
}
