//! PARSEC programs alone on the Xeon E5320 machine: contention for the bus, and how many threads
//! pay off.

use super::NAME;
use crate::alone::{instance, length_instr, run_once_settings};
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_core::Machine;
use consort_core::stats::spearman;
use consort_experiment::{NullSampleSource, build_machine};
use consort_sim::chip::Chip;
use consort_sim::program::{ProgramSpec, presets};
use serde::Deserialize;
use std::sync::Arc;

const MACHINE: &str = "xeon-e5320";
const SOURCE: &str = "Bhadauria and McKee, An Approach to Resource-Aware Co-Scheduling for CMPs \
                      (ICS 2010), Tables 1 to 3";

/// Programs that the memory path holds back; their serial share is no published figure, so that
/// their scaling is the simulation's own (docs/profiles.md).
pub(crate) const BY_MEMORY: [&str; 3] = ["canneal", "facesim", "streamcluster"];

/// One thread more or less has nearly the same energy-delay product near its minimum.
const BEST: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: SOURCE,
    unit: "threads",
    tolerance: Tolerance::absolute(1.0),
};
/// Near-linear is published as within 10 percent of eightfold.
const SPEEDUP: CheckTemplate<'static> = CheckTemplate {
    unit: "speedup",
    tolerance: Tolerance::absolute(0.0),
    ..BEST
};
const RANKS: CheckTemplate<'static> = CheckTemplate {
    unit: "Spearman's rho",
    tolerance: Tolerance::absolute(0.0),
    ..BEST
};
const STRONG: f64 = 0.7;
const NEAR_LINEAR: f64 = 7.2;
/// Threads at most: the machine's cores.
const MOST: u32 = 8;

#[derive(Clone, Deserialize)]
struct ParsecRow {
    program: String,
    bus_rank: f64,
    best_threads: f64,
    near_linear: String,
}

/// A run with some number of threads.
#[derive(Clone, Copy)]
struct ParsecRun {
    seconds: f64,
    joules: f64,
    bytes: f64,
}

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    let mut checks = vec![check_bus_ranks(inputs)?];
    checks.extend(scaling_checks(inputs, NAME, |name| {
        BY_MEMORY.contains(&name)
    })?);
    Ok(checks)
}

fn check_bus_ranks(inputs: &GroupInputs<'_>) -> Result<ValidationCheck, ValidateError> {
    let lines: Vec<ParsecRow> = inputs.data.parse_rows("parsec-e5320.csv")?;
    let runs = inputs
        .context
        .map(&lines, |line| run_program(inputs, &line.program, MOST))?;
    let runs: Vec<ParsecRun> = runs.into_iter().collect::<Result<_, _>>()?;
    let used = runs.iter().map(|run| run.bytes / run.seconds);
    let pairs: Vec<(f64, f64)> = lines.iter().map(|line| line.bus_rank).zip(used).collect();
    let rho = spearman(&pairs).unwrap_or(f64::NAN);
    let what = format!(
        "order of {} PARSEC programs by use of the bus, {MOST} threads",
        pairs.len()
    );
    Ok(RANKS.check(
        "parsec-bus-ranks",
        what,
        PublishedFigure::AtLeast(STRONG),
        rho,
    ))
}

/// Best numbers of threads and speedups of some of the programs.
pub(crate) fn scaling_checks(
    inputs: &GroupInputs<'_>,
    group: &'static str,
    which: impl Fn(&str) -> bool,
) -> Result<Vec<ValidationCheck>, ValidateError> {
    let mut lines: Vec<ParsecRow> = inputs.data.parse_rows("parsec-e5320.csv")?;
    lines.retain(|line| which(&line.program));
    let counts = lines
        .iter()
        .flat_map(|line| (1..=MOST).map(move |n| (line, n)));
    let jobs: Vec<(&ParsecRow, u32)> = counts.collect();
    let runs = inputs.context.map(&jobs, |(line, threads)| {
        run_program(inputs, &line.program, *threads)
    })?;
    let runs: Vec<ParsecRun> = runs.into_iter().collect::<Result<_, _>>()?;
    let programs = lines.iter().zip(runs.chunks(MOST as usize));
    Ok(programs
        .flat_map(|(line, runs)| check_program(group, line, runs))
        .collect())
}

fn check_program(
    group: &'static str,
    line: &ParsecRow,
    runs: &[ParsecRun],
) -> [ValidationCheck; 2] {
    let name = &line.program;
    let product = |run: &ParsecRun| run.joules * run.seconds;
    let best = (0..runs.len()).min_by(|&a, &b| product(&runs[a]).total_cmp(&product(&runs[b])));
    let best = best.map_or(f64::NAN, |at| at as f64 + 1.0);
    let speedup = runs[0].seconds / runs[runs.len() - 1].seconds;
    let published = match line.near_linear.as_str() {
        "yes" => PublishedFigure::AtLeast(NEAR_LINEAR),
        _ => PublishedFigure::AtMost(NEAR_LINEAR),
    };
    let (best_topic, speedup_topic) = (
        CheckTemplate { group, ..BEST },
        CheckTemplate { group, ..SPEEDUP },
    );
    [
        best_topic.check(
            format!("parsec-best/{name}"),
            format!("threads of {name} with the lowest energy-delay product on {MACHINE}"),
            PublishedFigure::Value(line.best_threads),
            best,
        ),
        speedup_topic.check(
            format!("parsec-speedup/{name}"),
            format!("speedup of {name} with {MOST} threads on {MACHINE}"),
            published,
            speedup,
        ),
    ]
}

fn run_program(
    inputs: &GroupInputs<'_>,
    name: &str,
    threads: u32,
) -> Result<ParsecRun, ValidateError> {
    let spec = consort_sim::machine::presets::find(MACHINE)?;
    let chip = Arc::new(Chip::new(&spec, None)?);
    let program = Arc::new(presets::find(name)?);
    let work = [instance(&program, threads, work_instr(inputs, &program))];
    let settings = run_once_settings(inputs.context.seed(), "linux");
    let mut machine = build_machine(
        &chip,
        &work,
        &settings,
        u64::MAX / 2000,
        Box::<NullSampleSource>::default(),
    )?;
    while machine.observe()?.is_some() {}
    let oracle = machine.oracle();
    let counts = oracle.threads().filter_map(|id| oracle.counts(id));
    let lines: f64 = counts.map(|c| c.flow.memory_lines).sum();
    let results = machine.results();
    let ends = results.iter().flat_map(|r| &r.completions);
    Ok(ParsecRun {
        seconds: ends.map(|c| c.end_s).fold(0.0, f64::max),
        joules: machine.energy_j(),
        bytes: lines * f64::from(chip.spec().memory.line_bytes),
    })
}

/// Barriers of a run at most.
const MOST_BARRIERS: f64 = 5000.0;

/// Of the program so much that what threads wait for each other at its beginning and end hardly
/// matters, but no more than some thousand barriers.
fn work_instr(inputs: &GroupInputs<'_>, program: &ProgramSpec) -> f64 {
    let most = inputs.context.by_scale(1e10, 2e11);
    let barrier = program.threads.as_ref().and_then(|threads| threads.barrier);
    let until = barrier.map_or(f64::INFINITY, |barrier| {
        MOST_BARRIERS * f64::from(MOST) * barrier.spacing_minstr * 1e6
    });
    length_instr(program).min(most).min(until)
}
