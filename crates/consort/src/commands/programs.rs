//! `consort list programs`: the programs that can be simulated.

use crate::descriptions::Programs;
use crate::failure::bad_input;
use crate::options::ListOut;
use crate::output::file::write_list;
use crate::output::{self, OutputColumn, OutputFormat, count, number, percent, text};
use crate::values;
use anyhow::Result;
use clap::Args;
use consort_sim::phase::Phase;
use consort_sim::program::{ProgramSpec, ThreadsSpec};
use consort_sim::workload::{DescriptionFile, ProgramSource};
use serde::Serialize;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct ProgramsArgs {
    /// Describe this program: NAME or FILE.toml
    #[arg(add = values::programs())]
    pub(crate) name: Option<String>,
    /// Only the programs of this suite
    #[arg(long, value_name = "NAME", conflicts_with = "name", add = values::suites())]
    pub(crate) suite: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format; json and csv of one program are its description and its phases
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

pub(crate) fn execute(args: &ProgramsArgs) -> Result<()> {
    let out = args.list.out.as_deref();
    match &args.name {
        None => {
            let rows = rows(args.suite.as_deref())?;
            output::print_list(out, args.format, LIST_COLUMNS, &rows)
        }
        Some(name) => {
            let spec = find(name)?;
            let phases = spec.phases.iter().map(Phase::new);
            let rows: Vec<NumberedPhase> = (1..).zip(phases).collect();
            write_list(out, PHASE_COLUMNS, &rows)?;
            output::print(args.format, PHASE_COLUMNS, &rows, &*spec, || {
                describe(&spec, &rows)
            })
        }
    }
}

#[derive(Serialize)]
struct ProgramListRow {
    name: String,
    suite: String,
    threads: ThreadLimitsRow,
    phases: usize,
    length_ginstr: f64,
    title: String,
    origin: String,
}

/// Numbers of threads that a program has by default, and at most.
#[derive(Clone, Copy, Serialize)]
struct ThreadLimitsRow {
    default: u32,
    max: u32,
}

const LIST_COLUMNS: &[OutputColumn<ProgramListRow>] = &[
    text("name", |r| r.name.clone()),
    text("suite", |r| r.suite.clone()),
    number("threads", |r| match r.threads {
        ThreadLimitsRow { default, max: 1 } => default.to_string(),
        ThreadLimitsRow { default, max } => format!("{default}/{max}"),
    }),
    number("phases", |r| r.phases.to_string()),
    number("length (Ginstr)", |r| format!("{:.1}", r.length_ginstr)),
    text("title", |r| r.title.clone()),
    text("origin", |r| r.origin.clone()),
];

fn rows(suite: Option<&str>) -> Result<Vec<ProgramListRow>> {
    let mut rows = Vec::new();
    for name in Programs.programs() {
        let Some(spec) = Programs.find(&name).map_err(bad_input)? else {
            continue;
        };
        if suite.is_some_and(|suite| spec.suite != suite) {
            continue;
        }
        let threads = spec.threads.as_ref();
        rows.push(ProgramListRow {
            suite: spec.suite.clone(),
            threads: ThreadLimitsRow {
                default: threads.map_or(1, |t| t.default),
                max: threads.map_or(1, |t| t.max),
            },
            phases: spec.phases.len(),
            length_ginstr: spec.phases.iter().map(|phase| phase.length_ginstr).sum(),
            title: spec.title.clone(),
            origin: Programs::origin(&name),
            name,
        });
    }
    match suite {
        Some(suite) if rows.is_empty() => {
            let suites = Programs.suites();
            let hint = consort_core::hint(suite, suites.iter().map(String::as_str));
            Err(bad_input(format!("unknown suite '{suite}'; {hint}")))
        }
        _ => Ok(rows),
    }
}

/// Bytes per KiB.
const KIB: f64 = 1024.0;

/// A phase and its number from 1.
type NumberedPhase = (usize, Phase);

const PHASE_COLUMNS: &[OutputColumn<NumberedPhase>] = &[
    number("phase", |(n, _)| n.to_string()),
    number("length (Ginstr)", |(_, p)| p.spec.length_ginstr.to_string()),
    number("fp %", |(_, p)| percent(p.spec.mix.fp, 1)),
    number("load %", |(_, p)| percent(p.spec.mix.load, 1)),
    number("mpki at 32 KiB", |(_, p)| misses(p, 32.0)),
    number("mpki at 256 KiB", |(_, p)| misses(p, 256.0)),
    number("mpki at 4 MiB", |(_, p)| misses(p, 4096.0)),
    number("mlp", |(_, p)| p.spec.mlp.value.to_string()),
    number("branch mpki", |(_, p)| p.spec.branch.mpki.to_string()),
];

/// Data misses per kilo-instruction of a cache of that size.
fn misses(phase: &Phase, size_kib: f64) -> String {
    format!("{:.2}", phase.data.mpki(size_kib * KIB))
}

fn find(name: &str) -> Result<Arc<ProgramSpec>> {
    let is_path = consort_describe::input::is_path(name);
    let named = match is_path {
        true => None,
        false => Programs.find(name).map_err(bad_input)?,
    };
    if let Some(spec) = named {
        return Ok(spec);
    }
    if !is_path && !Programs.is_file(name) {
        let known = Programs.programs();
        let hint = consort_core::hint(name, known.iter().map(String::as_str));
        return Err(bad_input(format!("unknown program '{name}'; {hint}")));
    }
    match Programs.load(name).map_err(bad_input)? {
        DescriptionFile::Program(spec) => Ok(spec),
        DescriptionFile::Workload(_) => {
            Err(bad_input(format!("{name}: a workload; expected a program")))
        }
    }
}

fn describe(spec: &ProgramSpec, rows: &[NumberedPhase]) -> String {
    let mut lines = vec![
        format!("{}: {}", spec.name, spec.title),
        format!("suite: {}", spec.suite),
    ];
    lines.extend(spec.threads.as_ref().map(threads));
    lines.extend(spec.io.map(|io| {
        let (per_ginstr, blocked_us) = (io.per_ginstr, io.blocked_us);
        format!("input and output: {per_ginstr} per Ginstr, blocked for {blocked_us} us each")
    }));
    let head: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let sources = output::sources(&spec.sources);
    format!("{head}\n{}\n{sources}", output::table(PHASE_COLUMNS, rows))
}

fn threads(threads: &ThreadsSpec) -> String {
    let ThreadsSpec { default, max, .. } = threads;
    let mut parts = vec![format!("threads: {default}, at most {max}")];
    parts.extend(threads.barrier.map(|barrier| {
        let spacing_minstr = barrier.spacing_minstr;
        format!("a barrier every {spacing_minstr} Minstr")
    }));
    parts.extend(threads.lock.map(|lock| {
        let (locks, per_minstr) = (count(lock.count as usize, "lock"), lock.per_minstr);
        format!("{locks}, taken {per_minstr} times per Minstr")
    }));
    if !threads.stages.is_empty() {
        let names: Vec<&str> = threads.stages.iter().map(|s| s.name.as_str()).collect();
        parts.push(format!("stages {}", names.join(" > ")));
    }
    parts.join(", ")
}
