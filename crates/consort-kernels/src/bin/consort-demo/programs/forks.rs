//! Child processes with threads of their own: what process discovery must find.
//!
//! Each child is this same program, running one kernel or, with `--depth` above
//! 1, a family of its own.

use super::sizes;
use crate::output::{self, DemoError, DemoFormat, DemoOutcome, DemoVerdict};
use clap::Args;
use serde::Serialize;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The shape of the family.
#[derive(Args)]
pub(crate) struct ForksArgs {
    /// Children of each process.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    children: u32,
    /// Threads of each process at the end of the line.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=sizes::MAX_THREADS))]
    threads: u64,
    /// Generations below this process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4))]
    depth: u32,
    /// Time for which the threads run.
    #[arg(long, default_value = "5", value_parser = sizes::parse_seconds)]
    seconds: Duration,
}

/// Kernels that the children run, by turns.
const KERNELS: [&str; 3] = ["fp", "int", "l2"];

#[derive(Serialize)]
struct ChildReport {
    pid: u32,
    runs: &'static str,
    ok: bool,
}

#[derive(Serialize)]
struct ForksReport {
    program: &'static str,
    children: Vec<ChildReport>,
    ok: bool,
}

impl ForksArgs {
    /// Starts the children and waits for them.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let mut children = Vec::new();
        for number in 0..self.children {
            match self.start(number) {
                Ok(child) => children.push(child),
                Err(error) => {
                    end(&mut children);
                    return Err(error);
                }
            }
        }
        let reports: Result<Vec<_>, _> = children.into_iter().map(wait_for_child).collect();
        print_report(reports?, format)
    }

    fn start(&self, number: u32) -> Result<(&'static str, Child), DemoError> {
        let program = match self.depth {
            1 => KERNELS[number as usize % KERNELS.len()],
            _ => "forks",
        };
        let mut command = Command::new("/proc/self/exe");
        command.arg(program).stdout(Stdio::null());
        command.args(["--seconds", &self.seconds.as_secs_f64().to_string()]);
        command.args(["--threads", &self.threads.to_string()]);
        if self.depth > 1 {
            command.args(["--children", &self.children.to_string()]);
            command.args(["--depth", &(self.depth - 1).to_string()]);
        }
        let child = command.spawn();
        let child = child.map_err(DemoError::system(format!("cannot start child {number}")))?;
        Ok((program, child))
    }
}

/// Ends children whose siblings could not be started.
fn end(children: &mut [(&'static str, Child)]) {
    for (_, child) in children {
        // One that has ended by itself needs no end.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn wait_for_child((runs, mut child): (&'static str, Child)) -> Result<ChildReport, DemoError> {
    let pid = child.id();
    let status = child.wait();
    let status = status.map_err(DemoError::system(format!("cannot wait for child {pid}")))?;
    Ok(ChildReport {
        pid,
        runs,
        ok: status.success(),
    })
}

fn print_report(children: Vec<ChildReport>, format: DemoFormat) -> DemoOutcome {
    let ok = children.iter().all(|child| child.ok);
    match format {
        DemoFormat::Table => output::print_line(&table(&children))?,
        DemoFormat::Json => output::print_json(&ForksReport {
            program: "forks",
            children,
            ok,
        })?,
    }
    Ok(DemoVerdict::from_ok(ok))
}

fn table(children: &[ChildReport]) -> String {
    let mut text = format!("{:<10} {:<8} result\n", "child", "runs");
    for child in children {
        let word = DemoVerdict::from_ok(child.ok).word();
        text += &format!("{:<10} {:<8} {word}\n", child.pid, child.runs);
    }
    text
}
