//! `consort what-if`: what was recorded, on another machine and under other policies.

mod guess;
mod page;

use super::compare;
use crate::cli::{OutputFormat, SetupArgs, WhatIfArgs};
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::progress;
use crate::report::ReportFile;
use crate::table_file::LongTableFile;
use anyhow::Result;
use consort_core::escape_invisible;
use consort_data::recording::Recording;
use consort_experiment::{ExperimentContext, Scale, StageProgress};
use consort_experiment::{PolicyComparison, compare_runs};
use guess::{DroppedThreads, StandIn};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

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
    /// The workload that is simulated.
    workload: String,
    /// The policies side by side.
    comparison: PolicyComparison,
}

pub(crate) fn execute(args: &WhatIfArgs) -> Result<ExitCode> {
    let page_file = args.report_html.as_deref().map(ReportFile::create);
    let page_file = page_file.transpose()?;
    let recording = Recording::open(&args.file).map_err(bad_input)?;
    let (stands, dropped) = guess::find_stand_ins(&recording, &profiles(&args.profile)?)?;
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
    let what_if = WhatIf {
        command: recording.info().command.clone(),
        guessed_share: guessed_share(&stands),
        comparison: simulate(args, &workload)?,
        stands,
        dropped,
        workload,
    };
    if let Some(file) = page_file {
        file.write_text(page::html(&what_if)?.as_bytes())?;
    }
    show(args.format, &what_if)
}

/// `NAME=FILE` of each.
fn profiles(texts: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        // Names of threads and of files can contain `=`: the first split with a file counts.
        let splits = text
            .match_indices('=')
            .map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = { splits.clone() }.find(|(_, file)| Path::new(file).is_file());
        let (name, file) = (found.or(splits.clone().next()))
            .ok_or_else(|| bad_input(format!("--profile {text}: write NAME=FILE")))?;
        if found.is_none() {
            return Err(bad_input(format!(
                "--profile {text}: there is no file {file}"
            )));
        }
        // A workload takes a text with a slash for a path.
        let file = std::path::absolute(file)?.display().to_string();
        Ok((name.to_owned(), file))
    };
    texts.iter().map(pair).collect()
}

fn guessed_share(stands: &[StandIn]) -> f64 {
    let sum = |guessed: bool| -> f64 {
        let of = stands.iter().filter(|stand| stand.guessed == guessed);
        of.map(|stand| stand.cpu_s).sum()
    };
    let (guessed, measured) = (sum(true), sum(false));
    guessed / (guessed + measured).max(1e-12)
}

fn simulate(args: &WhatIfArgs, workload: &str) -> Result<PolicyComparison> {
    let setup = SetupArgs {
        machine: args.machine.clone(),
        workload: workload.to_owned(),
        os: "linux".to_owned(),
        interval: None,
        alone: ALONE,
        seed: args.seed,
        format: args.format,
        out: args.numbers.out.clone(),
    };
    let experiment = compare::experiment(&setup)?;
    let contenders = compare::contenders(&args.policies, &setup.os)?;
    let file = LongTableFile::begin(&setup, workload)?;
    let baseline = contenders.iter().position(|c| c.name() == "linux");
    let progress = progress::start_meter("runs");
    let report_progress = |at: StageProgress| progress.set_done(at.done, at.total);
    let context = ExperimentContext::new(
        args.seed,
        Scale::Full,
        args.jobs.workers(),
        &report_progress,
    );
    let compared = compare_runs(
        &experiment,
        &contenders,
        baseline.unwrap_or(0),
        args.runs as usize,
        &context,
    );
    progress.finish();
    let compared = compared.map_err(compare::refusal)?;
    file.write(&compared.runs)?;
    Ok(compared.comparison)
}

const COLUMNS: &[OutputColumn<StandIn>] = &[
    text("threads", |s| s.name.clone()),
    number("at a time", |s| s.threads.to_string()),
    number("CPU (s)", |s| format!("{:.2}", s.cpu_s)),
    number("CPU %", |s| format!("{:.0}", 100.0 * s.cpu_share)),
    text("simulated as", |s| s.program.clone()),
    text("basis", |s| s.basis.clone()),
];

fn show(format: OutputFormat, what_if: &WhatIf) -> Result<ExitCode> {
    let mut out = output::stdout();
    let results = &what_if.comparison.results;
    if format != OutputFormat::Table {
        output::print(&mut out, format, compare::COLUMNS, results, what_if)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print_text(&mut out, &output::table(COLUMNS, &what_if.stands))?;
    output::print_text(&mut out, "\n")?;
    output::print_text(&mut out, &output::table(compare::COLUMNS, results))?;
    output::print_text(&mut out, &format!("\n{}\n", sentences(what_if).join("\n")))?;
    Ok(ExitCode::SUCCESS)
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
        "{} on {machine}: mean of {runs} runs each, ± half a 95 % interval (Student's t); \
         speedup over {baseline}.",
        what_if.workload
    );
    let guessed = format!(
        "{:.0} % of the recorded CPU time is simulated by guessed programs (estimated): \
         `consort profile` measures them, and --profile NAME=FILE takes the result.",
        100.0 * what_if.guessed_share
    );
    let mut sentences = vec![method, guessed];
    sentences.extend(dropped_sentence(&what_if.dropped));
    sentences
}

/// The sentence about groups of threads that are left out; the JSON document has all of them.
fn dropped_sentence(dropped: &[DroppedThreads]) -> Option<String> {
    let count: usize = dropped.iter().map(|group| group.threads).sum();
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
        1 => groups.push("1 group more".to_owned()),
        more => groups.push(format!("{more} groups more")),
    }
    let threads = if count == 1 { "thread" } else { "threads" };
    (count > 0).then(|| {
        format!(
            "Not simulated: {count} {threads} with {cpu_s:.2} s of CPU time in all: {}.",
            groups.join(", ")
        )
    })
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
        assert_eq!(dropped_sentence(&[]), None);
        assert_eq!(
            dropped_sentence(&[group("a\nb", 1, 0.5), group("irq", 3, 0.25)]).unwrap(),
            "Not simulated: 4 threads with 0.75 s of CPU time in all: a\\nb (0.50 s; not managed), \
             3 x irq (0.25 s; not managed)."
        );
        let many: Vec<DroppedThreads> = (0..14).map(|n| group(&n.to_string(), 1, 0.0)).collect();
        assert!(
            dropped_sentence(&many)
                .unwrap()
                .ends_with(", 2 groups more.")
        );
    }
}
