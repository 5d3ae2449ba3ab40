//! `consort compare`: a workload under several policies, many times.

use crate::cli::{CompareArgs, LIVE, SetupArgs};
use crate::descriptions;
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::progress;
use crate::table_file::LongTableFile;
use anyhow::Result;
use consort_core::split_unquoted;
use consort_experiment::{
    Contender, ContenderRow, Experiment, ExperimentError, MeanEstimate, PolicyComparison,
    compare_runs, find_baseline,
};
use consort_experiment::{ExperimentContext, Scale, StageProgress};
use std::process::ExitCode;

pub(super) const COLUMNS: &[OutputColumn<ContenderRow>] = &[
    text("policy", |r| r.policy.clone()),
    number("STP", |r| format_estimate(r.stp, 3)),
    number("speedup", |r| format_estimate(r.speedup, 3)),
    number("ANTT", |r| format_estimate(r.antt, 3)),
    number("unfairness", |r| format_estimate(r.unfairness, 3)),
    number("makespan (s)", |r| format_estimate(r.makespan_s, 2)),
    number("energy (J)", |r| format_estimate(r.energy_j, 0)),
    number("ED (J s)", |r| format_estimate(r.ed, 0)),
    number("moves", |r| format_estimate(r.moves, 1)),
];

pub(crate) fn execute(args: &CompareArgs) -> Result<ExitCode> {
    let experiment = experiment(&args.setup)?;
    let contenders = contenders(&args.policies, &args.setup.os)?;
    let baseline = find_baseline(&contenders, args.baseline.as_deref()).map_err(bad_input)?;
    let file = LongTableFile::begin(&args.setup, &experiment.workload.text)?;
    let progress = progress::start_meter("runs");
    let report_progress = |at: StageProgress| progress.set_done(at.done, at.total);
    let context = ExperimentContext::new(
        args.setup.seed,
        Scale::Full,
        args.jobs.workers(),
        &report_progress,
    );
    let runs = args.runs as usize;
    let compared = compare_runs(&experiment, &contenders, baseline, runs, &context);
    progress.finish();
    let compared = compared.map_err(refusal)?;
    file.write(&compared.runs)?;
    let comparison = compared.comparison;
    let mut out = output::stdout();
    output::print(
        &mut out,
        args.setup.format,
        COLUMNS,
        &comparison.results,
        &comparison,
    )?;
    if args.setup.format == crate::cli::OutputFormat::Table {
        let machine = descriptions::label(&args.setup.machine, &comparison.machine);
        output::print_text(&mut out, &footer(&comparison, &machine))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine and the workload that were asked for.
pub(super) fn experiment(args: &SetupArgs) -> Result<Experiment> {
    if args.machine == LIVE {
        return Err(bad_input(
            "this machine cannot be simulated: nothing describes what its cores are made of; \
             name a described one (consort machine --list)",
        ));
    }
    Ok(Experiment {
        chip: descriptions::chip(&args.machine)?,
        workload: descriptions::workload(&args.workload)?,
        alone_s: args.alone.as_secs_f64(),
        quantum: args.interval,
        free_migration: false,
    })
}

/// Marks what the machine or the policy refuses as bad input; the rest is a failed run.
pub(super) fn refusal(error: ExperimentError) -> anyhow::Error {
    match error {
        ExperimentError::Workers(_) | ExperimentError::Sim(_) => error.into(),
        _ => bad_input(error),
    }
}

/// Policies by comma, except that a part with `=` before any `:` is an option of the one before.
fn split(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in split_unquoted(text, ',', &['=']) {
        let sign = part.find([':', '=']);
        match all.last_mut() {
            Some(last) if sign.is_some_and(|at| part[at..].starts_with('=')) => {
                last.push(',');
                last.push_str(part);
            }
            _ => all.push(part.trim().to_owned()),
        }
    }
    all
}

/// The policies that take part, above this model of an operating system.
pub(super) fn contenders(policies: &[String], os: &str) -> Result<Vec<Contender>> {
    let names = policies.iter().flat_map(|text| split(text));
    let contenders = names.map(|name| Contender::new(&name, os));
    contenders.collect::<Result<_, _>>().map_err(refusal)
}

fn format_estimate(measure: MeanEstimate, digits: usize) -> String {
    match measure.ci95 {
        Some(ci) => format!("{:.digits$} ±{ci:.digits$}", measure.mean),
        None => format!("{:.digits$}", measure.mean),
    }
}

fn footer(comparison: &PolicyComparison, machine: &str) -> String {
    format!(
        "\n{} on {}: mean of {} runs each, ± half a 95 % interval (Student's t); \
         speedup is STP over that of {}, run by run (geometric). Simulated; machine and \
         program figures have their sources in `consort machine` and `consort programs`.\n",
        comparison.workload, machine, comparison.runs, comparison.baseline,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stay_with_their_policy() {
        let parts = split("linux,workover:margin=0.1,numa=true,aggregate");
        assert_eq!(
            parts,
            ["linux", "workover:margin=0.1,numa=true", "aggregate"]
        );
        let parts = split(r#"symbiotic:numa=true,model="/a,b:c=d.toml",linux"#);
        let quoted = r#"symbiotic:numa=true,model="/a,b:c=d.toml""#;
        assert_eq!(parts, [quoted, "linux"]);
    }
}
