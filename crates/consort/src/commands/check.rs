//! `consort machine --check`: every event against kernels with known counts.

use crate::cli::MachineArgs;
use crate::output::{self, OutputColumn, number, text};
use crate::table_file;
use anyhow::Result;
use consort_kernels::counted::{CountedLoop, LOOPS};
use consort_linux::counters::{CheckKernel, CheckRow, EventVerdict, ExpectedCounts, check};
use consort_linux::live::Host;
use serde::Serialize;
use std::process::ExitCode;

/// One row of the self-test.
#[derive(Serialize)]
struct EventCheckRow {
    event: String,
    kernel: String,
    expected: Option<f64>,
    measured: Option<f64>,
    relative_error: Option<f64>,
    /// `ok`, `wrong` or `skipped`.
    verdict: &'static str,
    /// Reason why it is wrong or was skipped; none if `ok`.
    reason: Option<String>,
}

const COLUMNS: &[OutputColumn<EventCheckRow>] = &[
    text("event", |r| r.event.clone()),
    text("kernel", |r| r.kernel.clone()),
    number("expected", |r| count(r.expected)),
    number("measured", |r| count(r.measured)),
    number("error %", |r| {
        let percent = r.relative_error.map(|e| format!("{:.2}", 100.0 * e));
        percent.unwrap_or_else(|| "-".to_owned())
    }),
    text("verdict", |r| r.verdict.to_owned()),
    text("why", |r| r.reason.clone().unwrap_or_default()),
];

fn count(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.0}"))
}

/// Runs the self-test; exit code 1 when an event is wrong: its tier must not be trusted.
pub(crate) fn execute(args: &MachineArgs, host: &Host) -> Result<ExitCode> {
    let rows = check_events(host);
    table_file::write_list(args.list_out.out.as_deref(), COLUMNS, &rows)?;
    let mut out = output::stdout();
    output::print(&mut out, args.format, COLUMNS, &rows, &rows)?;
    let wrong = rows.iter().any(|row| row.verdict == "wrong");
    Ok(ExitCode::from(u8::from(wrong)))
}

fn check_events(host: &Host) -> Vec<EventCheckRow> {
    let runs: Vec<_> = LOOPS.iter().map(|l| move |n: u64| _ = l.run(n)).collect();
    let counts: Vec<_> = LOOPS
        .iter()
        .map(|l| move |n: u64| expected_counts(l, n))
        .collect();
    let kernels: Vec<CheckKernel<'_>> = LOOPS
        .iter()
        .zip(runs.iter().zip(&counts))
        .map(|(counted, (run, counts))| CheckKernel {
            name: counted.name,
            run,
            counts,
        })
        .collect();
    let file = host.event_file();
    let checked = check(&host.root, file.as_ref(), &kernels);
    checked.into_iter().map(row).collect()
}

fn expected_counts(counted: &CountedLoop, iterations: u64) -> ExpectedCounts {
    let known = counted.counts(iterations);
    ExpectedCounts {
        instructions: known.instructions,
        fp_ops: known.fp_ops,
        fp_scalar_instructions: known.fp_scalar_instructions,
        fp_packed_instructions: known.fp_packed_instructions,
        branches: known.branches,
    }
}

fn row(row: CheckRow) -> EventCheckRow {
    let (verdict, reason) = match row.verdict {
        EventVerdict::Ok => ("ok", None),
        EventVerdict::Wrong(why) => ("wrong", Some(why)),
        EventVerdict::Skipped(why) => ("skipped", Some(why)),
    };
    EventCheckRow {
        relative_error: row.relative_error,
        event: row.event,
        kernel: row.kernel,
        expected: row.expected,
        measured: row.measured,
        verdict,
        reason,
    }
}
