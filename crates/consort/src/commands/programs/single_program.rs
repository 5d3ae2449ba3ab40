//! One program's description.

use crate::cli::{OutputFormat, ProgramsArgs};
use crate::descriptions::Programs;
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number};
use crate::table_file;
use anyhow::Result;
use consort_sim::phase::Phase;
use consort_sim::program::{ProgramSpec, ThreadsSpec};
use consort_sim::workload::{DescriptionFile, ProgramSource};
use std::sync::Arc;

/// Bytes per KiB.
const KIB: f64 = 1024.0;

/// A phase and its number from 1.
type NumberedPhase = (usize, Phase);

const COLUMNS: &[OutputColumn<NumberedPhase>] = &[
    number("phase", |(n, _)| n.to_string()),
    number("length (Ginstr)", |(_, p)| p.spec.length_ginstr.to_string()),
    number("fp %", |(_, p)| percent(p.spec.mix.fp)),
    number("load %", |(_, p)| percent(p.spec.mix.load)),
    number("mpki at 32 KiB", |(_, p)| misses(p, 32.0)),
    number("mpki at 256 KiB", |(_, p)| misses(p, 256.0)),
    number("mpki at 4 MiB", |(_, p)| misses(p, 4096.0)),
    number("mlp", |(_, p)| p.spec.mlp.value.to_string()),
    number("branch mpki", |(_, p)| p.spec.branch.mpki.to_string()),
];

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Data misses per kilo-instruction of a cache of that size.
fn misses(phase: &Phase, size_kib: f64) -> String {
    format!("{:.2}", phase.data.mpki(size_kib * KIB))
}

pub(super) fn print(name: &str, args: &ProgramsArgs) -> Result<()> {
    let spec = find(name)?;
    let phases = spec.phases.iter().map(Phase::new);
    let rows: Vec<NumberedPhase> = (1..).zip(phases).collect();
    table_file::write_list(args.list.out.as_deref(), COLUMNS, &rows)?;
    let mut out = output::stdout();
    match args.format {
        OutputFormat::Table => output::print_text(&mut out, &describe(&spec, &rows))?,
        OutputFormat::Csv => output::write_csv(&mut out, COLUMNS, &rows)?,
        OutputFormat::Json => output::write_json(&mut out, &*spec)?,
    }
    Ok(())
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
        return Err(unknown_program(name));
    }
    match Programs.load(name).map_err(bad_input)? {
        DescriptionFile::Program(spec) => Ok(spec),
        DescriptionFile::Workload(_) => {
            Err(bad_input(format!("{name}: a workload; expected a program")))
        }
    }
}

fn unknown_program(name: &str) -> anyhow::Error {
    let known = Programs.programs();
    let hint = consort_core::hint(name, known.iter().map(String::as_str));
    bad_input(format!("unknown program '{name}'; {hint}"))
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
    format!("{head}\n{}\n{sources}", output::table(COLUMNS, rows))
}

fn threads(threads: &ThreadsSpec) -> String {
    let ThreadsSpec { default, max, .. } = threads;
    let mut parts = vec![format!("threads: {default}, at most {max}")];
    parts.extend(threads.barrier.map(|barrier| {
        let spacing_minstr = barrier.spacing_minstr;
        format!("a barrier every {spacing_minstr} Minstr")
    }));
    parts.extend(threads.lock.map(|lock| {
        let (count, per_minstr) = (lock.count, lock.per_minstr);
        format!("{count} locks, taken {per_minstr} times per Minstr")
    }));
    if !threads.stages.is_empty() {
        let names: Vec<&str> = threads.stages.iter().map(|s| s.name.as_str()).collect();
        parts.push(format!("stages {}", names.join(" > ")));
    }
    parts.join(", ")
}
