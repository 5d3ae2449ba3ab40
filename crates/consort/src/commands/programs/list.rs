//! All programs, or those of a suite.

use crate::cli::ProgramsArgs;
use crate::descriptions::Programs;
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::table_file;
use anyhow::Result;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::ProgramSource;
use serde::Serialize;

/// One program.
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

const COLUMNS: &[OutputColumn<ProgramListRow>] = &[
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

pub(super) fn print(args: &ProgramsArgs) -> Result<()> {
    let rows = rows(args.suite.as_deref())?;
    table_file::write_list(args.list.out.as_deref(), COLUMNS, &rows)?;
    let mut out = output::stdout();
    output::print(&mut out, args.format, COLUMNS, &rows, &rows)
}

fn rows(suite: Option<&str>) -> Result<Vec<ProgramListRow>> {
    let mut specs = Vec::new();
    for name in Programs.programs() {
        let spec = Programs.find(&name).map_err(bad_input)?;
        specs.extend(spec.map(|spec| (name, spec)));
    }
    if let Some(requested) = suite {
        specs.retain(|(_, spec)| spec.suite == requested);
        if specs.is_empty() {
            return Err(unknown_suite(requested));
        }
    }
    Ok(specs.iter().map(|(name, spec)| row(name, spec)).collect())
}

fn unknown_suite(requested: &str) -> anyhow::Error {
    let suites = Programs.suites();
    let hint = consort_core::hint(requested, suites.iter().map(String::as_str));
    bad_input(format!("unknown suite '{requested}'; {hint}"))
}

fn row(name: &str, spec: &ProgramSpec) -> ProgramListRow {
    let threads = spec.threads.as_ref();
    ProgramListRow {
        name: name.to_owned(),
        suite: spec.suite.clone(),
        threads: ThreadLimitsRow {
            default: threads.map_or(1, |t| t.default),
            max: threads.map_or(1, |t| t.max),
        },
        phases: spec.phases.len(),
        length_ginstr: spec.phases.iter().map(|phase| phase.length_ginstr).sum(),
        title: spec.title.clone(),
        origin: Programs::origin(name),
    }
}
