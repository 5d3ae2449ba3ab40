//! `consort what-if`: what was recorded, on another machine and under other policies.

mod guess;
mod page;

use super::compare;
use crate::cli::{Format, SetupArgs, WhatIfArgs};
use crate::failure::bad_input;
use crate::long_file::LongFile;
use crate::output::{self, Column, number, text};
use crate::progress;
use crate::report::ReportFile;
use anyhow::Result;
use consort_experiment::{Comparison, compare_runs};
use consort_experiment::{Context, Progress, Scale};
use consort_trace::Recording;
use guess::Stand;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Work of each program alone in the simulation.
const ALONE: Duration = Duration::from_secs(10);

/// The JSON document. Keys are a contract: add, never rename.
#[derive(Debug, Serialize)]
struct WhatIf {
    /// The recorded command.
    command: String,
    /// Programs that stand for the recorded threads.
    stands: Vec<Stand>,
    /// Share of the recorded CPU time whose programs are guesses, 0 to 1.
    guessed_share: f64,
    /// The workload that is simulated.
    workload: String,
    /// The policies side by side.
    comparison: Comparison,
}

pub(crate) fn execute(args: &WhatIfArgs) -> Result<ExitCode> {
    let page_file = args.report_html.as_deref().map(ReportFile::create);
    let page_file = page_file.transpose()?;
    let recording = Recording::open(&args.file).map_err(bad_input)?;
    let stands = guess::stands(&recording, &profiles(&args.profile)?)?;
    if stands.is_empty() {
        return Err(bad_input(format!(
            "recording {}: no managed thread had more than a twentieth of a PU",
            args.file.display()
        )));
    }
    let parts = stands
        .iter()
        .map(|s| format!("{}*{}", s.threads, s.program));
    let workload = parts.collect::<Vec<_>>().join("+");
    let what_if = WhatIf {
        command: recording.about().command.clone(),
        guessed_share: guessed_share(&stands),
        comparison: simulate(args, &workload)?,
        stands,
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
        let (name, file) = text
            .split_once('=')
            .ok_or_else(|| bad_input(format!("--profile {text}: write NAME=FILE.toml")))?;
        if !Path::new(file).is_file() {
            return Err(bad_input(format!(
                "--profile {text}: there is no file {file}"
            )));
        }
        // A workload takes a path for a file if it has a slash.
        let file = std::path::absolute(file)?.display().to_string();
        Ok((name.to_owned(), file))
    };
    texts.iter().map(pair).collect()
}

fn guessed_share(stands: &[Stand]) -> f64 {
    let sum = |guessed: bool| -> f64 {
        let of = stands.iter().filter(|stand| stand.guessed == guessed);
        of.map(|stand| stand.cpu_s).sum()
    };
    let (guessed, measured) = (sum(true), sum(false));
    guessed / (guessed + measured).max(1e-12)
}

fn simulate(args: &WhatIfArgs, workload: &str) -> Result<Comparison> {
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
    let file = LongFile::begin(&setup, workload)?;
    let baseline = contenders.iter().position(|c| c.name() == "linux");
    let progress = progress::counted("runs");
    let tell = |at: Progress| progress.at(at.done, at.total);
    let context = Context::new(args.seed, Scale::Full, args.jobs.workers(), &tell);
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

const COLUMNS: &[Column<Stand>] = &[
    text("threads", |s| s.name.clone()),
    number("at a time", |s| s.threads.to_string()),
    number("CPU (s)", |s| format!("{:.2}", s.cpu_s)),
    number("CPU %", |s| format!("{:.0}", 100.0 * s.cpu_share)),
    text("simulated as", |s| s.program.clone()),
    text("basis", |s| s.basis.clone()),
];

fn show(format: Format, what_if: &WhatIf) -> Result<ExitCode> {
    let mut out = output::stdout();
    let results = &what_if.comparison.results;
    if format != Format::Table {
        output::print(&mut out, format, compare::COLUMNS, results, what_if)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::people(&mut out, &output::table(COLUMNS, &what_if.stands))?;
    output::people(&mut out, "\n")?;
    output::people(&mut out, &output::table(compare::COLUMNS, results))?;
    output::people(&mut out, &format!("\n{}\n", sentences(what_if).join("\n")))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns sentences on how the numbers were obtained, and how much of them is guessed.
fn sentences(what_if: &WhatIf) -> [String; 2] {
    let Comparison {
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
    [method, guessed]
}
