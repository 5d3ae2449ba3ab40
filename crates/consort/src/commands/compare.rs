//! `consort compare`: a workload under several policies, many times.

use crate::failure::bad_input;
use crate::options::{Jobs, LIVE, NUMBERS, TABLE, count_parser, parse_simulated, seed_parser};
use crate::output::file::TableOutput;
use crate::output::{self, OutputColumn, OutputFormat, count, number, or_dash, percent, text};
use crate::{descriptions, values};
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use consort_core::policy::published_name;
use consort_core::split_unquoted;
use consort_experiment::{
    Contender, ContenderRow, Experiment, ExperimentError, MeanEstimate, PolicyComparison,
    RunResult, RunUntil, compare_runs, find_baseline, long,
};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Time that each program's work takes alone by default.
const ALONE: Duration = Duration::from_secs(30);

/// Machine and workload to simulate.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Machine: a name or a file, with :smt=N for fewer CPUs per core, :memory=NODE+NODE for memory on those nodes only, :prefetch=off without prefetchers; see `consort list machines`
    #[arg(short, long, value_name = "MACHINE", add = values::machines())]
    pub(crate) machine: String,
    /// Programs: 4*hmmer+4*povray, streamcluster@4 (threads), mix:spec2006/10?seed=7, or a file; quotes let a path contain + * @, as in '"./c++.toml"@2+hmmer'
    #[arg(short, long, value_name = "WORKLOAD", add = values::workloads())]
    pub(crate) workload: String,
    /// Model of the operating system beneath the policies
    #[arg(long, value_name = "NAME", default_value = "linux")]
    pub(crate) os: String,
    /// Quantum between decisions; each policy's own if not given
    #[arg(short, long, value_name = "TIME", value_parser = parse_simulated)]
    pub(crate) interval: Option<Duration>,
    /// Time that each program's work takes alone; 30s if not given
    #[arg(long, value_name = "TIME", value_parser = parse_simulated)]
    pub(crate) alone: Option<Duration>,
    /// equal-work: each program does what takes it --alone by itself, and starts again until the last has done so; all-finished: each runs once, whole, and time counts until each and all have finished
    #[arg(long, value_name = "END", default_value = "equal-work", value_parser = until_parser())]
    pub(crate) until: RunUntil,
    /// Seed of all randomness; the same seed gives the same result on every host
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    #[arg(short, long, value_name = "PATH", help = format!("Write every number to {TABLE}, {NUMBERS}"))]
    pub(crate) out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Policies, comma-separated; a policy with several options needs a --policies of its own
    #[arg(short, long, value_name = "POLICIES", alias = "policy", required = true, add = values::policy_list())]
    pub(crate) policies: Vec<String>,
    /// Policy that speedups refer to; linux if it takes part, else the first
    #[arg(long, value_name = "POLICY", add = values::simulated_policy())]
    pub(crate) baseline: Option<String>,
    /// Runs of each policy, with successive seeds
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = count_parser::<u32>(1..=10_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

pub(super) const COLUMNS: &[OutputColumn<ContenderRow>] = &[
    text("policy", |r| r.policy.clone()),
    number("STP", |r| format_estimate(r.stp, 3)),
    number("speedup", |r| format_estimate(r.speedup, 3)),
    number("% of attainable", format_attainable),
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
    let runs = args.runs as usize;
    let compared = args
        .jobs
        .run_experiment("runs", args.setup.seed, false, |context| {
            compare_runs(&experiment, &contenders, baseline, runs, context)
        });
    let compared = compared.map_err(refusal)?;
    file.write(&compared.runs)?;
    let comparison = compared.comparison;
    let results = &comparison.results;
    let base = &comparison.baseline;
    let (columns, method) = match comparison.until {
        RunUntil::EqualWork => (COLUMNS, format!("speedup is STP over that of {base}")),
        RunUntil::AllFinished => (
            ONCE_COLUMNS,
            format!(
                "each program runs once and whole; speedup is the time until all have finished under \
                 {base} over that under the policy"
            ),
        ),
    };
    output::print(args.setup.format, columns, results, &comparison, || {
        let machine = descriptions::label(&args.setup.machine, &comparison.machine);
        format!(
            "{}{}\n{} on {machine}: mean of {} each, ± half a 95 % interval (Student's t); {method}, run by \
             run (geometric). {}Simulated; machine and program figures have their sources in \
             `consort list machines` and `consort list programs`.\n{}",
            answer_line(&comparison),
            output::table(columns, results),
            comparison.workload,
            count(comparison.runs, "run"),
            attainable_sentence(&comparison),
            warning_lines(&comparison.warnings),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The requested machine and workload.
pub(super) fn experiment(args: &SetupArgs) -> Result<Experiment> {
    if args.machine == LIVE {
        return Err(bad_input(
            "this machine cannot be simulated: no file describes its cores; name a described one \
             (consort list machines)",
        ));
    }
    if args.until == RunUntil::AllFinished && args.alone.is_some() {
        return Err(bad_input(
            "--alone sets equal work, but with --until all-finished each program is as long as its \
             description says; leave one of them out",
        ));
    }
    let chip = descriptions::chip(&args.machine)?;
    let workload = descriptions::workload(&args.workload)?;
    let alone = args.alone.unwrap_or(ALONE);
    Ok(Experiment {
        until: args.until,
        quantum: args.interval,
        ..Experiment::new(&chip, workload, alone.as_secs_f64())
    })
}

fn until_parser() -> impl TypedValueParser<Value = RunUntil> {
    PossibleValuesParser::new(["equal-work", "all-finished"]).map(|name| match name.as_str() {
        "all-finished" => RunUntil::AllFinished,
        _ => RunUntil::EqualWork,
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
pub(super) fn split_policies(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in split_unquoted(text, ',', &['=']) {
        let sign = part.find([':', '=']);
        match all.last_mut() {
            Some(last) if sign.is_some_and(|at| part[at..].starts_with('=')) => {
                last.push(',');
                last.push_str(part);
            }
            _ => all.push(published_name(part.trim()).into_owned()),
        }
    }
    all
}

/// The policies that take part, above this model of an operating system.
pub(super) fn contenders(policies: &[String], os: &str) -> Result<Vec<Contender>> {
    let names = policies.iter().flat_map(|text| split_policies(text));
    let contenders = names.map(|name| Contender::new(&name, os));
    contenders.collect::<Result<_, _>>().map_err(refusal)
}

/// Columns of whole programs that run once: the times first.
const ONCE_COLUMNS: &[OutputColumn<ContenderRow>] = &[
    text("policy", |r| r.policy.clone()),
    number("all finished (s)", |r| format_estimate(r.makespan_s, 2)),
    number("speedup", |r| format_estimate(r.speedup, 3)),
    number("% of attainable", format_attainable),
    number("each, mean (s)", |r| format_estimate(r.turnaround_s, 2)),
    number("ANTT", |r| format_estimate(r.antt, 3)),
    number("unfairness", |r| format_estimate(r.unfairness, 3)),
    number("energy (J)", |r| format_estimate(r.energy_j, 0)),
    number("ED (J s)", |r| format_estimate(r.ed, 0)),
    number("moves", |r| format_estimate(r.moves, 1)),
];

/// The answer, with an empty line below it.
pub(super) fn answer_line(comparison: &PolicyComparison) -> String {
    let answer = comparison.answer.as_ref();
    answer.map_or_else(String::new, |answer| format!("{answer}\n\n"))
}

/// Meaning of "% of attainable", or the reason why there are no figures.
pub(super) fn attainable_sentence(comparison: &PolicyComparison) -> String {
    let base = &comparison.baseline;
    match (&comparison.attainable_reason, comparison.attainable) {
        (Some(reason), _) => format!("% of attainable is unknown: {reason}. "),
        (None, best) => format!(
            "% of attainable: gain over {base} in percent of that of the best pairing at each \
             moment, which an exact search finds by the simulation's own rates (speedup {}). ",
            or_dash(best, |best| format_estimate(best, 3))
        ),
    }
}

fn format_attainable(row: &ContenderRow) -> String {
    or_dash(row.attainable_share, |share| percent(share, 0))
}

/// Warnings as lines for people.
pub(super) fn warning_lines(warnings: &[String]) -> String {
    let lines = { warnings.iter() }.map(|warning| format!("warning: {warning}\n"));
    lines.collect()
}

fn format_estimate(measure: MeanEstimate, digits: usize) -> String {
    match measure.ci95 {
        Some(ci) => format!("{:.digits$} ±{ci:.digits$}", measure.mean),
        None => format!("{:.digits$}", measure.mean),
    }
}

/// The requested table file of one workload on one machine.
pub(crate) struct LongTableFile {
    file: TableOutput,
    case: String,
}

impl LongTableFile {
    pub(crate) fn begin(setup: &SetupArgs, workload: &str) -> Result<Self> {
        Ok(Self {
            file: TableOutput::begin(setup.out.as_deref())?,
            case: long::case_name(workload, &setup.machine),
        })
    }

    pub(crate) fn write(self, runs: &[RunResult]) -> Result<()> {
        self.file.write(|| long::long_table(&self.case, runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stay_with_their_policy() {
        let parts = split_policies("linux,workover:margin=0.1,numa=true,aggregate");
        assert_eq!(
            parts,
            ["linux", "workover:margin=0.1,numa=true", "aggregate"]
        );
        let parts = split_policies(r#"symbiotic:numa=true,model="/a,b:c=d.toml",linux"#);
        let quoted = r#"symbiotic:numa=true,model="/a,b:c=d.toml""#;
        assert_eq!(parts, [quoted, "linux"]);
    }
}
