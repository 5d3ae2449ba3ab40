//! `consort bench`: how fast Consort itself is here.

use crate::commands::manage::watch_choices;
use crate::failure::bad_input;
use crate::options::{ListOut, NumbersOut};
use crate::output::file::TableOutput;
use crate::output::{self, OutputColumn, OutputFormat, number, text};
use crate::{progress, values};
use anyhow::Result;
use clap::Args;
use consort_experiment::bench::{BenchError, BenchRow, Effort, run, run_rounds};
use consort_host::bench::{OverheadBench, all_benches};
use consort_linux::live::WatchRate;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Benches to run; all if none is given
    #[arg(value_name = "NAME", add = values::benches())]
    pub(crate) names: Vec<String>,
    /// List the benches instead of running them, as `consort list benches` does
    #[arg(long, hide = true)]
    pub(crate) list: bool,
    /// Make few and short repetitions, which show only that it works
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measured rounds; for `overhead` pairs of runs, 12 if not given
    #[arg(short = 'n', long, value_name = "N", alias = "pairs")]
    pub(crate) rounds: Option<usize>,
    /// Run only this load of `overhead`: pgbench, redis, nginx, serve, churn, forks, ping-pong or loops
    #[arg(long, value_name = "LOAD")]
    pub(crate) only: Option<String>,
    /// Policy of the managed runs of `overhead`; none if not given
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// Rate at which the managed runs of `overhead` are watched
    #[arg(long, value_name = "RATE", value_parser = watch_choices())]
    pub(crate) watch: Option<WatchRate>,
    /// Compare `overhead` with `perf record -a` as well
    #[arg(long)]
    pub(crate) with_perf: bool,
    #[command(flatten)]
    pub(crate) numbers: NumbersOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

const COLUMNS: &[OutputColumn<BenchRow>] = &[
    text("name", |r| r.name.clone()),
    number("value", |r| format_value(r.value)),
    text("unit", |r| r.unit.to_owned()),
    number("n", |r| r.n.to_string()),
    number("spread %", |r| format!("{:.1}", 100.0 * r.spread())),
    number("target", |r| {
        r.target.map_or_else(String::new, format_value)
    }),
];

/// Default number of pairs.
const PAIRS: usize = 12;

#[derive(Serialize)]
struct BenchListing {
    name: String,
    summary: String,
}

const LIST: &[OutputColumn<BenchListing>] = &[
    text("name", |l| l.name.clone()),
    text("summary", |l| l.summary.clone()),
];

pub(crate) fn execute(args: &BenchArgs) -> Result<ExitCode> {
    if args.list {
        let list = ListOut {
            out: args.numbers.out.clone(),
        };
        print_list(&args.names, &list, args.format)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Benches that take minutes and start programs are run by their names only.
    let known = match args.names.is_empty() {
        true => consort_experiment::bench::all_benches(),
        false => all_benches(OverheadBench {
            only: args.only.clone(),
            policy: args.policy.clone(),
            watch: args.watch.map(|watch| watch.to_string()),
            with_perf: args.with_perf,
        }),
    };
    let benches = consort_experiment::bench::select(known, &args.names).map_err(refusal)?;
    let effort = if args.quick {
        Effort::Quick
    } else {
        Effort::Full
    };
    let file = TableOutput::begin(args.numbers.out.as_deref())?;
    let meter = progress::start_meter("rounds");
    let progress = |done, total| meter.set_done(done, total);
    // Pairs vary more than the other figures, so they have a round more by default.
    let is_paired = benches
        .iter()
        .any(|bench| bench.name() == OverheadBench::NAME);
    let rounds = args.rounds.or((is_paired && !args.quick).then_some(PAIRS));
    let rows = match rounds {
        Some(rounds) => run_rounds(&benches, effort, rounds.max(1), &progress),
        None => run(&benches, effort, &progress),
    };
    meter.finish();
    let rows = rows.map_err(refusal)?;
    check_figures(&rows)?;
    file.write(|| consort_experiment::bench::bench_table(&rows))?;
    output::print(args.format, COLUMNS, &rows, &rows, || {
        let mut text = output::table(COLUMNS, &rows);
        text += "\nMedians of n rounds, each case once per round, after one round of warm-up; spread is \
                 half the distance between the quartiles.\nTimes are processor time of one thread on \
                 this host in its state during the measurement; daemon: of the process with its \
                 guardian.\n";
        if effort == Effort::Quick {
            text += "Quick: too few and too short to be published.\n";
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the benches of these names, or all.
pub(crate) fn print_list(names: &[String], list: &ListOut, format: OutputFormat) -> Result<()> {
    let known = all_benches(OverheadBench::default());
    let benches = consort_experiment::bench::select(known, names).map_err(refusal)?;
    let listed = benches.iter().map(|bench| BenchListing {
        name: bench.name(),
        summary: bench.summary(),
    });
    let rows: Vec<BenchListing> = listed.collect();
    output::print_list(list.out.as_deref(), format, LIST, &rows)
}

/// Refuses results without a single figure, which would be a table of headings.
fn check_figures(rows: &[BenchRow]) -> Result<()> {
    if rows.iter().any(|row| row.n > 0 && row.value.is_finite()) {
        return Ok(());
    }
    Err(anyhow::anyhow!(
        "no bench gave a figure: this host counts no processor time of threads \
         (CLOCK_THREAD_CPUTIME_ID); run it on another host"
    ))
}

/// An unknown name is the caller's mistake; every other error is a failed run.
fn refusal(error: BenchError) -> anyhow::Error {
    match error {
        BenchError::Unknown { .. } => bad_input(error),
        _ => error.into(),
    }
}

/// Four digits, with an exponent instead of many zeros.
fn format_value(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e7 => format!("{value:.3e}"),
        size if size >= 1e3 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_figures_are_refused() {
        let row = |value, n| BenchRow {
            name: "solve-16".to_owned(),
            value,
            unit: "ns",
            n,
            low: value,
            high: value,
            target: None,
        };
        assert!(check_figures(&[row(1.0, 3), row(f64::NAN, 3)]).is_ok());
        for rows in [vec![], vec![row(f64::NAN, 0)], vec![row(f64::INFINITY, 3)]] {
            let error = check_figures(&rows).unwrap_err().to_string();
            assert!(error.starts_with("no bench gave a figure: "), "{error}");
        }
    }

    #[test]
    fn values_have_three_or_four_digits() {
        let shown = [0.0, 0.98765, 12.34, 4321.4, 1.2345e13].map(format_value);
        assert_eq!(shown, ["0", "0.988", "12.3", "4321", "1.234e13"]);
    }
}
