//! `consort map`: a workload under thread mappings, and which resource decides between them.

mod live;
mod mappings;
mod print;
mod simulated;

use crate::cli::{LIVE, MapArgs};
use crate::failure::bad_input;
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_core::mapping::analysis::Thresholds;
use consort_lab::mapping::{Analysis, Question};
use consort_lab::{StudyReport, study_to_long_table};
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Findings, and the machine and workload that they are about.
struct MappingFindings {
    machine: String,
    workload: String,
    /// `simulated`, or the richest tier that was used.
    tier: String,
    /// Number of mappings up to symmetry; none unless all were asked for.
    count: Option<usize>,
    analysis: Analysis,
    /// Further notes for readers.
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
    questions: Vec<Question>,
    #[serde(flatten)]
    report: &'a StudyReport,
}

pub(crate) fn execute(args: &MapArgs) -> Result<ExitCode> {
    let file = TableOutput::begin_from_out(&args.out)?;
    let start = Instant::now();
    let found = if args.machine == LIVE {
        live::run_mappings(args)?
    } else {
        simulated::simulate_mappings(args)?
    };
    let mut report = report(args, &found)?;
    report.seconds = start.elapsed().as_secs_f64();
    file.write(|| study_to_long_table(&report))?;
    print::print_findings(args, &found, &report)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the notice before the long part begins: how long it is estimated to take.
fn duration_notice(seconds: f64) -> String {
    let time = Duration::from_secs(seconds.ceil().max(1.0) as u64);
    let time = humantime::format_duration(time);
    format!(
        "map: the mappings will take about {time}, or longer where programs slow each other down"
    )
}

fn thresholds(args: &MapArgs) -> Thresholds {
    Thresholds {
        varies: args.varies,
        moves: args.moves,
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
