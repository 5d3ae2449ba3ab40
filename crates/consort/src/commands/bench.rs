//! `consort bench`: how fast Consort itself is here.

use crate::cli::{BenchArgs, OutputFormat};
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::progress;
use crate::table_file::{self, TableOutput};
use anyhow::Result;
use consort_experiment::bench::{Bench, BenchError, BenchRow, Effort, run, run_rounds};
use consort_host::bench::{OverheadBench, all_benches};
use serde::Serialize;
use std::process::ExitCode;

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
    // Benches that take minutes and start programs are run by their names only.
    let known = match args.names.is_empty() && !args.list {
        true => consort_experiment::bench::all_benches(),
        false => all_benches(OverheadBench {
            only: args.only.clone(),
            policy: args.policy.clone(),
            watch: args.watch.map(|watch| watch.to_string()),
            with_perf: args.with_perf,
        }),
    };
    let benches = consort_experiment::bench::select(known, &args.names).map_err(refusal)?;
    if args.list {
        list(&benches, args)?;
        return Ok(ExitCode::SUCCESS);
    }
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
    let rounds = args.pairs.or((is_paired && !args.quick).then_some(PAIRS));
    let rows = match rounds {
        Some(rounds) => run_rounds(&benches, effort, rounds.max(1), &progress),
        None => run(&benches, effort, &progress),
    };
    meter.finish();
    let rows = rows.map_err(refusal)?;
    check(&rows)?;
    file.write(|| consort_experiment::bench::bench_table(&rows))?;
    let mut out = output::stdout();
    output::print(&mut out, args.format, COLUMNS, &rows, &rows)?;
    if args.format == OutputFormat::Table {
        output::print_text(&mut out, &footer(effort))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses results without a single figure, which would be a table of headings.
fn check(rows: &[BenchRow]) -> Result<()> {
    if rows.iter().any(|row| row.n > 0 && row.value.is_finite()) {
        return Ok(());
    }
    Err(anyhow::anyhow!(
        "no bench gave a figure: this host counts no processor time of threads \
         (CLOCK_THREAD_CPUTIME_ID); run it on another host"
    ))
}

fn list(benches: &[Box<dyn Bench>], args: &BenchArgs) -> Result<()> {
    let listed = benches.iter().map(|bench| BenchListing {
        name: bench.name(),
        summary: bench.summary(),
    });
    let rows: Vec<BenchListing> = listed.collect();
    table_file::write_list(args.numbers.out.as_deref(), LIST, &rows)?;
    output::print(&mut output::stdout(), args.format, LIST, &rows, &rows)
}

/// An unknown name is the caller's mistake; every other error is a failed run.
fn refusal(error: BenchError) -> anyhow::Error {
    match error {
        BenchError::Unknown { .. } => bad_input(error),
        _ => error.into(),
    }
}

/// Four digits, with an exponent where there would be many zeros.
fn format_value(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e7 => format!("{value:.3e}"),
        size if size >= 1e3 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn footer(effort: Effort) -> String {
    let method = "\nMedians of n rounds, each case once per round, after one round of warm-up; \
                  spread is half the distance between the quartiles.\n\
                  Times are processor time of one thread on this host, as it was while they were \
                  measured; daemon: of the process with its guardian.\n";
    match effort {
        Effort::Full => method.to_owned(),
        Effort::Quick => format!("{method}Quick: too few and too short to be told to others.\n"),
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
        assert!(check(&[row(1.0, 3), row(f64::NAN, 3)]).is_ok());
        for rows in [vec![], vec![row(f64::NAN, 0)], vec![row(f64::INFINITY, 3)]] {
            let error = check(&rows).unwrap_err().to_string();
            assert!(error.starts_with("no bench gave a figure: "), "{error}");
        }
    }

    #[test]
    fn values_have_three_or_four_digits() {
        let shown = [0.0, 0.98765, 12.34, 4321.4, 1.2345e13].map(format_value);
        assert_eq!(shown, ["0", "0.988", "12.3", "4321", "1.234e13"]);
    }
}
