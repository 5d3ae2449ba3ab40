//! `consort map`: a workload under thread mappings, and the resource that decides between them.

pub(in crate::commands) mod live;
mod simulated;

use crate::commands::reproduce::grid;
use crate::failure::bad_input;
use crate::options::{
    Jobs, LIVE, NUMBERS, TABLE, count_parser, parse_share, parse_simulated, seed_parser,
};
use crate::output::file::{TableOutput, own_output};
use crate::output::{self, OutputFormat, wrap};
use crate::values;
use anyhow::{Context, Result};
use clap::Args;
use consort_core::mapping::analysis::Thresholds;
use consort_core::mapping::{ExhaustiveMappings, Mapping, MappingScheme};
use consort_core::{Topology, hint};
use consort_data::{Cell, escape_field, number_field, write_csv};
use consort_experiment::mapping::OS;
use consort_lab::mapping::{Analysis, MappingVerdict, Question};
use consort_lab::{StudyReport, study_to_long_table};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// Machine to simulate, NAME or FILE.toml as `consort list machines` has them; or `live`
    #[arg(short, long, value_name = "MACHINE", default_value = LIVE, add = values::machines_and_live())]
    pub(crate) machine: String,
    /// Programs on a simulated machine: streamcluster@4+facesim@4
    #[arg(short, long, value_name = "WORKLOAD", conflicts_with = "command", add = values::workloads())]
    pub(crate) workload: Option<String>,
    /// Program on this machine with its arguments, split as a shell does; once per program
    #[arg(short, long, value_name = "CMD", add = values::command())]
    pub(crate) command: Vec<String>,
    /// Mappings, comma-separated: os, iso, int, spr; or `all` distinct ones, and os
    #[arg(long, value_name = "MAPPINGS", default_value = "os,iso,int,spr", add = values::mappings())]
    pub(crate) mappings: String,
    /// Most mappings that `all` may have
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count_parser::<usize>(1..=1_000_000))]
    pub(crate) bound: usize,
    /// Threads of each command for `all`, comma-separated; one each if not given
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "command", value_parser = count_parser::<usize>(1..=65_536))]
    pub(crate) threads: Vec<usize>,
    /// Repetitions of each mapping; on simulated machines with successive seeds
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = count_parser::<u32>(1..=1_000))]
    pub(crate) runs: u32,
    /// Runs of the longest program in each repetition
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_parser::<u32>(1..=1_000))]
    pub(crate) times: u32,
    /// Time that each program's work takes alone, simulated
    #[arg(long, value_name = "TIME", value_parser = parse_simulated, default_value = "1s")]
    pub(crate) alone: Duration,
    /// Model of the operating system beneath the mappings, simulated
    #[arg(long, value_name = "NAME", default_value = "linux")]
    pub(crate) os: String,
    /// Relative change above which the use of a resource counts as varying
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = parse_share)]
    pub(crate) varies: f64,
    /// Relative change above which time, or cycles by one cause, count as moved
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = parse_share)]
    pub(crate) moves: f64,
    /// Seed of all randomness, simulated
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Send the output of commands to stderr instead of /dev/null
    #[arg(long, requires = "command")]
    pub(crate) show_output: bool,
    #[arg(short, long, value_name = "PATH", help = format!("Write tables, figures and a page to the folder PATH, or every number to {TABLE}, {NUMBERS}; repeat it for both"))]
    pub(crate) out: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format; csv has a line per value
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Findings, and the machine and workload that they are about.
struct MappingFindings {
    machine: String,
    workload: String,
    /// `simulated`, or the richest tier that was used.
    tier: String,
    /// Number of mappings up to symmetry; `None` unless all were requested.
    count: Option<usize>,
    analysis: Analysis,
    /// Times of every program, s: by mapping, repetition and program.
    times_s: Vec<Vec<Vec<f64>>>,
    notes: Vec<String>,
}

/// The JSON document.
#[derive(Serialize)]
struct MappingDocument<'a> {
    machine: &'a str,
    workload: &'a str,
    tier: &'a str,
    mappings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    mappings_up_to_symmetry: Option<usize>,
    /// The answer; `None` with fewer than two mappings that ran.
    verdict: Option<&'a MappingVerdict>,
    questions: Vec<Question>,
    #[serde(flatten)]
    report: &'a StudyReport,
}

pub(crate) fn execute(args: &MapArgs) -> Result<ExitCode> {
    let file = TableOutput::begin_from_out(&args.out, 0)?;
    let start = Instant::now();
    let found = if args.machine == LIVE {
        live::run_mappings(args)?
    } else {
        simulated::simulate_mappings(args)?
    };
    let verdict = found.analysis.verdict(&found.times_s, &args.thresholds());
    let mut report = report(args, &found)?;
    report.answer = verdict.as_ref().map(|verdict| verdict.text.clone());
    report.seconds = start.elapsed().as_secs_f64();
    file.write(|| study_to_long_table(&report))?;
    if let Some(folder) = own_output(&args.out) {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        consort_lab::pages::write(folder, &report, None, false)?;
    }
    match args.format {
        OutputFormat::Table => {
            let answer = verdict.map_or_else(String::new, |verdict| wrap("", &verdict.text) + "\n");
            output::print_text(&(answer + &findings_text(args, &found, &report)))?;
        }
        OutputFormat::Csv => write_values(&mut output::stdout(), &report)?,
        OutputFormat::Json => output::print_json(&MappingDocument {
            machine: &found.machine,
            workload: &found.workload,
            tier: &found.tier,
            mappings: &found.analysis.mappings,
            mappings_up_to_symmetry: found.count,
            verdict: verdict.as_ref(),
            questions: found.analysis.questions(),
            report: &report,
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The notice before the long part, with its estimated time.
fn duration_notice(seconds: f64) -> String {
    let time = Duration::from_secs(seconds.ceil().max(1.0) as u64);
    let time = humantime::format_duration(time);
    format!("map: the mappings will take about {time}, longer if programs slow down")
}

impl MapArgs {
    fn thresholds(&self) -> Thresholds {
        Thresholds {
            varies: self.varies,
            moves: self.moves,
        }
    }
}

fn report(args: &MapArgs, found: &MappingFindings) -> Result<StudyReport> {
    let mut output = found.analysis.output(args.runs as usize)?;
    output.notes.extend(found.notes.iter().cloned());
    Ok(StudyReport {
        study: "map".to_owned(),
        title: format!("Thread mappings of {} on {}", found.workload, found.machine),
        source: "Wang, Dey, Mars, Tang, Davidson, Soffa, Performance Analysis of Thread Mappings \
                 with a Holistic View of the Hardware Resources, ISPASS 2012"
            .to_owned(),
        section: "method".to_owned(),
        original: "Pairs of PARSEC programs of four threads on a Core 2 Quad Q9550 under four \
                   mappings, each until the longest had run three times."
            .to_owned(),
        differs: differs(args, found),
        seed: args.seed,
        scale: consort_experiment::Scale::Full,
        seconds: 0.0,
        answer: None,
        mechanism: Vec::new(),
        output,
    })
}

fn differs(args: &MapArgs, found: &MappingFindings) -> String {
    let times = args.times;
    if args.machine == LIVE {
        return format!(
            "Live, tier {}; until the longest program has run {times} times.",
            found.tier
        );
    }
    format!(
        "Simulated; a program's work is what it does alone in {}, and the run ends when the last \
         has done it {times} times.",
        humantime::format_duration(args.alone)
    )
}

/// One of `--workload` and `--command` belongs to each kind of machine.
fn misplaced_option(given: &str, wanted: &str) -> anyhow::Error {
    bad_input(format!("{given}; give {wanted}"))
}

/// Word that stands for every mapping.
const ALL: &str = "all";

#[derive(Clone, Debug, PartialEq, Eq)]
enum MappingChoice {
    /// The operating system's.
    Os,
    /// A named one.
    Scheme(MappingScheme),
    /// These CPUs.
    Fixed(Mapping),
}

/// Returns the mappings, and their number up to symmetry if all were requested.
fn parse_mappings(
    text: &str,
    bound: usize,
    topology: &Topology,
    threads: &[usize],
) -> Result<(Vec<MappingChoice>, Option<usize>)> {
    if text == ALL {
        let all = ExhaustiveMappings::new(topology, threads, bound)
            .map_err(|error| bad_input(format!("--mappings all: {error} (--bound)")))?;
        let fixed = all.mappings().map(MappingChoice::Fixed);
        let mappings = std::iter::once(MappingChoice::Os).chain(fixed).collect();
        return Ok((mappings, Some(all.count())));
    }
    let mut mappings: Vec<MappingChoice> = Vec::new();
    for name in text.split(',') {
        let mapping = match name.trim() {
            OS => MappingChoice::Os,
            scheme => scheme.parse().map(MappingChoice::Scheme).map_err(|_| {
                let known = MappingScheme::ALL.iter().map(|scheme| scheme.name());
                let hint = hint(scheme, [OS].into_iter().chain(known).chain([ALL]));
                bad_input(format!("--mappings: unknown mapping '{scheme}'; {hint}"))
            })?,
        };
        if mappings.contains(&mapping) {
            return Err(bad_input(format!("--mappings: '{name}' is named twice")));
        }
        mappings.push(mapping);
    }
    Ok((mappings, None))
}

impl MappingChoice {
    /// Its name in reports and for the policy `mapping`.
    fn name(&self) -> String {
        match self {
            Self::Os => OS.to_owned(),
            Self::Scheme(scheme) => scheme.to_string(),
            Self::Fixed(mapping) => mapping.to_string(),
        }
    }
}

fn findings_text(args: &MapArgs, found: &MappingFindings, report: &StudyReport) -> String {
    let mut text = wrap("", &report.title);
    if let Some(count) = found.count {
        text += &format!("{} up to symmetry\n", output::count(count, "mapping"));
    }
    for table in &report.output.tables {
        if !table.rows().is_empty() {
            text += &format!("\n{}\n{}", table.title(), grid(table));
        }
    }
    text.push('\n');
    for note in &report.output.notes {
        text += &wrap("- ", note);
    }
    let runs = match args.runs {
        1 => "One run".to_owned(),
        runs => format!("Mean of {runs} runs"),
    };
    text += &wrap("", &format!("{} {runs} of each mapping.", report.differs));
    if let Some(folder) = own_output(&args.out) {
        text += &format!(
            "Tables, figures and a page: {}\n",
            folder.join("map.html").display()
        );
    }
    text
}

/// One line per value of any table.
fn write_values(out: &mut dyn Write, report: &StudyReport) -> Result<()> {
    let header = ["table", "row", "column", "value", "unit", "missing"].map(str::to_owned);
    let mut records = vec![header];
    for table in &report.output.tables {
        for (row, column, cell) in table.cells() {
            let (value, missing) = match cell {
                Cell::Missing { missing } => (String::new(), missing.clone()),
                Cell::Text(text) => (text.clone(), String::new()),
                _ => (number_field(cell.value()), String::new()),
            };
            let record = [
                table.key().to_owned(),
                row.key.clone(),
                column.key.clone(),
                value,
                column.unit.clone().unwrap_or_default(),
                missing,
            ];
            records.push(record.map(escape_field));
        }
    }
    Ok(write_csv(out, records)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>> {
        let topology = Topology::uniform(2, 1)?;
        let (requested, _) = parse_mappings(text, 10, &topology, &[1, 1])?;
        Ok(requested.iter().map(MappingChoice::name).collect())
    }

    #[test]
    fn mappings_are_read_in_order() {
        assert_eq!(read("os,spr").unwrap(), ["os", "spr"]);
        assert_eq!(read("all").unwrap(), ["os", "1/0"]);
    }

    #[test]
    fn unknown_mapping_is_refused_with_a_hint() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("os,isso"),
            "--mappings: unknown mapping 'isso'; did you mean 'iso'?"
        );
        assert_eq!(error("os,os"), "--mappings: 'os' is named twice");
    }
}
