//! Loops with exactly known event counts.

use crate::output::{DemoError, DemoFormat, DemoOutcome, DemoVerdict, print_result};
use clap::Args;
use consort_kernels::counted::{self, CountedLoop, KnownCounts};
use serde::Serialize;

/// Loop, and its number of rounds.
#[derive(Args)]
pub(crate) struct CountedArgs {
    /// The loop to run; without it all are listed.
    name: Option<String>,
    /// Number of rounds of the loop.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000))]
    iterations: u64,
}

#[derive(Serialize)]
struct LoopReport {
    name: &'static str,
    summary: &'static str,
    iterations: u64,
    counts: KnownCounts,
}

#[derive(Serialize)]
struct CountedRunReport {
    program: &'static str,
    #[serde(flatten)]
    counted: LoopReport,
    ok: bool,
}

impl CountedArgs {
    /// Runs the loop or lists all.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        if let Some(reason) = counted::UNAVAILABLE {
            return Err(DemoError::Unavailable(reason.to_owned()));
        }
        let Some(name) = &self.name else {
            let reports: Vec<LoopReport> = counted::LOOPS.iter().map(|l| self.report(l)).collect();
            let text = || reports.iter().map(text).collect::<Vec<_>>().join("\n");
            return print_result(true, format, text, &reports);
        };
        let counted = counted::find(name).ok_or_else(|| {
            let names: Vec<&str> = counted::LOOPS.iter().map(|l| l.name).collect();
            let names = names.join(", ");
            DemoError::Unavailable(format!(
                "there is no counted loop `{name}`; there are {names}"
            ))
        })?;
        let ok = counted.run(self.iterations) == counted.result(self.iterations);
        let report = CountedRunReport {
            program: "counted",
            counted: self.report(counted),
            ok,
        };
        let word = DemoVerdict::from_ok(ok).word();
        let text = || format!("{}: {word}", text(&report.counted));
        print_result(ok, format, text, &report)
    }

    fn report(&self, counted: &CountedLoop) -> LoopReport {
        LoopReport {
            name: counted.name,
            summary: counted.summary,
            iterations: self.iterations,
            counts: counted.counts(self.iterations),
        }
    }
}

fn text(report: &LoopReport) -> String {
    let c = report.counts;
    format!(
        "{:<14} {} iterations: {} instructions, {} fp, {} loads, {} stores, {} branches ({} taken)",
        report.name,
        report.iterations,
        c.instructions,
        c.fp_ops,
        c.loads,
        c.stores,
        c.branches,
        c.taken_branches
    )
}
