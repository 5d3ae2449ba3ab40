//! `consort what-if`: a recording on another machine and under other policies.

mod guess;

use super::compare;
use crate::commands::compare::SetupArgs;
use crate::failure::bad_input;
use crate::options::{Jobs, ResultOut, count_parser, seed_parser};
use crate::output::file::ResultFiles;
use crate::output::{self, OutputColumn, OutputFormat, count, number, text};
use crate::values;
use anyhow::Result;
use clap::Args;
use consort_core::escape_invisible;
use consort_core::stats::ConfidenceInterval;
use consort_data::recording::Recording;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Figure, List, Plot, ReportColumn, ReportTable, figures_page,
};
use consort_experiment::{
    ComparedRuns, ContenderRow, MeanEstimate, PolicyComparison, RunUntil, compare_runs, long,
};
use guess::{DroppedThreads, StandIn};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// Recording, or the folder FILE.parts that a killed run leaves
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Machine to simulate: a name or a file; see `consort list machines`
    #[arg(short, long, value_name = "MACHINE", add = values::machines())]
    pub(crate) machine: String,
    /// Policies, comma-separated
    #[arg(short, long, value_name = "POLICIES", alias = "policy", required = true, add = values::policy_list())]
    pub(crate) policies: Vec<String>,
    /// A program file for the threads of this name, as `consort profile` writes it, instead of a
    /// guess
    #[arg(long, value_name = "NAME=FILE", alias = "profile")]
    pub(crate) program: Vec<String>,
    /// Runs of each policy, with successive seeds
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = count_parser::<u32>(1..=10_000))]
    pub(crate) runs: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) files: ResultOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// Groups of threads that the sentence about dropped ones names.
const NAMED: usize = 12;

/// Work of each program alone in the simulation.
const ALONE: Duration = Duration::from_secs(10);

/// The JSON document. Keys are a contract: add, never rename.
#[derive(Debug, Serialize)]
struct WhatIf {
    /// The recorded command.
    command: String,
    /// Programs that stand for the recorded threads.
    stands: Vec<StandIn>,
    /// Recorded threads that are not simulated.
    dropped: Vec<DroppedThreads>,
    /// Share of the recorded CPU time whose programs are guesses, 0 to 1.
    guessed_share: f64,
    /// Share of the recorded CPU time that is not simulated, 0 to 1.
    dropped_share: f64,
    /// Reason why the policies have hardly a choice; `None` if they have one.
    nothing_to_decide: Option<String>,
    /// The workload that is simulated.
    workload: String,
    /// The policies side by side.
    comparison: PolicyComparison,
}

pub(crate) fn execute(args: &WhatIfArgs) -> Result<ExitCode> {
    let files = ResultFiles::begin(&args.files)?;
    let recording = Recording::open(&args.file).map_err(bad_input)?;
    let (stands, dropped) = guess::find_stand_ins(&recording, &program_files(&args.program)?)?;
    if stands.is_empty() {
        return Err(bad_input(format!(
            "recording {}: no managed thread had more than a twentieth of a CPU; record for longer, \
             or while the threads work",
            args.file.display()
        )));
    }
    let parts = stands
        .iter()
        .map(|s| format!("{}*{}", s.threads, s.program));
    let workload = parts.collect::<Vec<_>>().join("+");
    let cpu_s = |guessed: bool| -> f64 {
        let stands = stands.iter().filter(|stand| stand.guessed == guessed);
        stands.map(|stand| stand.cpu_s).sum()
    };
    let dropped_s: f64 = dropped.iter().map(|group| group.cpu_s).sum();
    let recorded_s = (cpu_s(true) + cpu_s(false) + dropped_s).max(1e-12);
    let (compared, nothing_to_decide) = simulate(args, &workload)?;
    let what_if = WhatIf {
        command: recording.info().command.clone(),
        guessed_share: cpu_s(true) / recorded_s,
        dropped_share: dropped_s / recorded_s,
        nothing_to_decide,
        comparison: compared.comparison,
        stands,
        dropped,
        workload,
    };
    if let Some(file) = files.page {
        file.write(&html(&what_if)?)?;
    }
    if let Some(file) = files.document {
        file.write_json(&what_if)?;
    }
    let case = long::case_name(&what_if.workload, &args.machine);
    files
        .table
        .write(|| long::long_table(&case, &compared.runs))?;
    let results = &what_if.comparison.results;
    output::print(args.format, compare::COLUMNS, results, &what_if, || {
        format!(
            "{}\n\n{}\n{}\n{}\n{}\n{}",
            answer(&what_if),
            output::table(COLUMNS, &what_if.stands),
            output::table(compare::COLUMNS, results),
            sentences(&what_if).join("\n"),
            compare::attainable_sentence(&what_if.comparison),
            compare::warning_lines(&what_if.comparison.warnings)
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// `NAME=FILE` of each.
fn program_files(texts: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        // Names of threads and of files can contain `=`: the first split with a file counts.
        let splits = text
            .match_indices('=')
            .map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = { splits.clone() }.find(|(_, file)| Path::new(file).is_file());
        let (name, file) = (found.or(splits.clone().next()))
            .ok_or_else(|| bad_input(format!("--program {text}: write NAME=FILE")))?;
        if found.is_none() {
            return Err(bad_input(format!(
                "--program {text}: there is no file {file}"
            )));
        }
        // A workload takes a text with a slash for a path.
        let file = std::path::absolute(file)?.display().to_string();
        Ok((name.to_owned(), file))
    };
    texts.iter().map(pair).collect()
}

/// The comparison, and the reason why the policies have hardly a choice.
fn simulate(args: &WhatIfArgs, workload: &str) -> Result<(ComparedRuns, Option<String>)> {
    let setup = SetupArgs {
        machine: args.machine.clone(),
        workload: workload.to_owned(),
        os: "linux".to_owned(),
        interval: None,
        alone: Some(ALONE),
        until: RunUntil::EqualWork,
        seed: args.seed,
        format: args.format,
        out: None,
    };
    let experiment = compare::experiment(&setup)?;
    let entries = &experiment.workload.entries;
    let threads: usize = entries.iter().map(|entry| entry.threads as usize).sum();
    let (cores, places) = (
        experiment.chip.topology().cores().len(),
        experiment.chip.places(),
    );
    let are_alike = places
        .iter()
        .all(|place| place.core_type == places[0].core_type);
    let nothing_to_decide = (are_alike && threads <= cores).then(|| {
        format!(
            "Nothing to decide: {} on {cores} alike cores can have a core each, so that policies \
             have hardly a choice; name a smaller machine, or record a busier host.",
            count(threads, "thread")
        )
    });
    let contenders = compare::contenders(&args.policies, &setup.os)?;
    let baseline = contenders.iter().position(|c| c.name() == "linux");
    let baseline = baseline.unwrap_or(0);
    let compared = args
        .jobs
        .run_experiment("runs", args.seed, false, |context| {
            compare_runs(
                &experiment,
                &contenders,
                baseline,
                args.runs as usize,
                context,
            )
        });
    Ok((compared.map_err(compare::refusal)?, nothing_to_decide))
}

const COLUMNS: &[OutputColumn<StandIn>] = &[
    text("threads", |s| s.name.clone()),
    number("at a time", |s| s.threads.to_string()),
    number("CPU (s)", |s| format!("{:.2}", s.cpu_s)),
    number("CPU %", |s| format!("{:.0}", 100.0 * s.cpu_share)),
    text("simulated as", |s| s.program.clone()),
    text("basis", |s| s.basis.clone()),
];

/// The answer: how much the best policy gains, unless there is nothing to decide.
fn answer(what_if: &WhatIf) -> String {
    let answer = what_if.nothing_to_decide.as_ref();
    let answer = answer.or(what_if.comparison.answer.as_ref());
    answer.cloned().unwrap_or_default()
}

/// Returns sentences on how the numbers were obtained, and how much of them is guessed.
fn sentences(what_if: &WhatIf) -> Vec<String> {
    let PolicyComparison {
        machine,
        runs,
        baseline,
        ..
    } = &what_if.comparison;
    let method = format!(
        "{} on {machine}: mean of {} each, ± half a 95 % interval (Student's t); \
         speedup over {baseline}.",
        what_if.workload,
        count(*runs, "run")
    );
    let guessed = format!(
        "{:.0} % of the recorded CPU time is simulated by guessed programs (estimated; each is the \
         described program with the nearest mix): `consort profile` measures them, and --program \
         NAME=FILE takes the result.",
        100.0 * what_if.guessed_share
    );
    let dropped = dropped_sentence(&what_if.dropped, what_if.dropped_share);
    dropped.into_iter().chain([guessed, method]).collect()
}

/// The sentence about groups of threads that are left out, with their share of the recorded CPU
/// time; the JSON document has all of them.
fn dropped_sentence(dropped: &[DroppedThreads], share: f64) -> Option<String> {
    let threads: usize = dropped.iter().map(|group| group.threads).sum();
    let cpu_s: f64 = dropped.iter().map(|group| group.cpu_s).sum();
    let mut groups: Vec<String> = { dropped.iter().take(NAMED) }
        .map(|group| {
            let (name, n, why) = (escape_invisible(&group.name), group.threads, group.why);
            let times = if n == 1 {
                String::new()
            } else {
                format!("{n} x ")
            };
            format!("{times}{name} ({:.2} s; {why})", group.cpu_s)
        })
        .collect();
    match dropped.len().saturating_sub(NAMED) {
        0 => {}
        more => groups.push(count(more, "more group")),
    }
    (threads > 0).then(|| {
        format!(
            "Not simulated: {} with {cpu_s:.2} s, {:.0} % of the recorded CPU time: {}.",
            count(threads, "thread"),
            100.0 * share,
            groups.join(", ")
        )
    })
}

/// A measure of a policy: its key, heading, unit, and getter.
type PolicyMeasureColumn = (
    &'static str,
    &'static str,
    Option<&'static str>,
    fn(&ContenderRow) -> MeanEstimate,
);

const MEASURES: [PolicyMeasureColumn; 6] = [
    ("stp", "STP", None, |r| r.stp),
    ("speedup", "Speedup", None, |r| r.speedup),
    ("antt", "ANTT", None, |r| r.antt),
    ("unfairness", "Unfairness", None, |r| r.unfairness),
    ("makespan", "Makespan", Some("s"), |r| r.makespan_s),
    ("energy", "Energy", Some("J"), |r| r.energy_j),
];

fn html(what_if: &WhatIf) -> Result<String> {
    let title = format!("{} on {}", what_if.command, what_if.comparison.machine);
    let stands = List::new(COLUMNS, &what_if.stands);
    let stands = stands.to_report_table("stands", "Programs in place of the recorded threads")?;
    let tables = [results(what_if)?, stands];
    let figures = [throughput(what_if)?];
    let facts = [vec![answer(what_if)], sentences(what_if)].concat();
    Ok(figures_page(&title, &facts, &tables, &figures)?)
}

fn results(what_if: &WhatIf) -> Result<ReportTable> {
    let columns = MEASURES.map(|(key, title, unit, _)| match unit {
        Some(unit) => ReportColumn::with_unit(key, title, unit),
        None => ReportColumn::plain(key, title),
    });
    let mut table = ReportTable::new("policies", "Policies", columns.into())?;
    let n = what_if.comparison.runs;
    for row in &what_if.comparison.results {
        let cells = MEASURES.map(|(_, _, _, measure)| {
            let MeanEstimate { mean, ci95 } = measure(row);
            ConfidenceInterval { mean, ci95, n }.into()
        });
        table.push(&row.policy, cells.into())?;
    }
    Ok(table)
}

fn throughput(what_if: &WhatIf) -> Result<Figure> {
    let rows = &what_if.comparison.results;
    let bar = |row: &ContenderRow| {
        Some(Bar {
            value: row.stp.mean,
            ci95: row.stp.ci95,
        })
    };
    let plot = Plot::Bars(BarChart {
        category: "policy".to_owned(),
        value: Axis::linear("STP", None),
        baseline: 0.0,
        groups: rows.iter().map(|row| row.policy.clone()).collect(),
        series: vec![BarSeries {
            name: "STP".to_owned(),
            bars: rows.iter().map(bar).collect(),
        }],
    });
    let runs = what_if.comparison.runs;
    Ok(Figure::new(
        "stp",
        "System throughput by policy",
        "",
        runs,
        plot,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_threads_are_named_with_count_and_reason() {
        let group = |name: &str, threads, cpu_s| DroppedThreads {
            name: name.to_owned(),
            threads,
            cpu_s,
            why: "not managed",
        };
        assert_eq!(dropped_sentence(&[], 0.0), None);
        assert_eq!(
            dropped_sentence(&[group("a\nb", 1, 0.5), group("irq", 3, 0.25)], 0.25).unwrap(),
            "Not simulated: 4 threads with 0.75 s, 25 % of the recorded CPU time: a\\nb (0.50 s; not managed), \
             3 x irq (0.25 s; not managed)."
        );
        let many: Vec<DroppedThreads> = (0..14).map(|n| group(&n.to_string(), 1, 0.0)).collect();
        assert!(
            dropped_sentence(&many, 0.0)
                .unwrap()
                .ends_with(", 2 more groups.")
        );
    }
}
