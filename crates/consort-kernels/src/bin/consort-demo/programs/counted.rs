//! Loops with exactly known event counts.

use crate::output::{self, DemoError, DemoFormat, DemoOutcome, DemoVerdict};
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
    of: LoopReport,
    ok: bool,
}

impl CountedArgs {
    /// Runs the loop or lists all.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        if let Some(reason) = counted::UNAVAILABLE {
            return Err(DemoError::Unavailable(reason.to_owned()));
        }
        match &self.name {
            Some(name) => self.run_one(find(name)?, format),
            None => self.list(format),
        }
    }

    fn run_one(&self, counted: &CountedLoop, format: DemoFormat) -> DemoOutcome {
        let ok = counted.run(self.iterations) == counted.result(self.iterations);
        let verdict = DemoVerdict::from_ok(ok);
        let of = self.report(counted);
        match format {
            DemoFormat::Table => output::print_line(&format!("{}: {}", text(&of), verdict.word()))?,
            DemoFormat::Json => output::print_json(&CountedRunReport {
                program: "counted",
                of,
                ok,
            })?,
        }
        Ok(verdict)
    }

    fn list(&self, format: DemoFormat) -> DemoOutcome {
        let reports: Vec<LoopReport> = counted::LOOPS.iter().map(|l| self.report(l)).collect();
        match format {
            DemoFormat::Table => {
                let lines: Vec<String> = reports.iter().map(text).collect();
                output::print_line(&lines.join("\n"))?;
            }
            DemoFormat::Json => output::print_json(&reports)?,
        }
        Ok(DemoVerdict::Right)
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

fn find(name: &str) -> Result<&'static CountedLoop, DemoError> {
    counted::find(name).ok_or_else(|| {
        let names: Vec<&str> = counted::LOOPS.iter().map(|l| l.name).collect();
        let names = names.join(", ");
        DemoError::Unavailable(format!(
            "there is no counted loop `{name}`; there are {names}"
        ))
    })
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
