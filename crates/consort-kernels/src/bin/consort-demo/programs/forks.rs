//! Child processes with threads of their own, which process discovery must find.
//!
//! Each child is this same program, running one kernel or, with `--depth` above
//! 1, a family of its own.

use crate::output::{DemoError, DemoFormat, DemoOutcome, DemoVerdict, print_result};
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
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=super::MAX_THREADS))]
    threads: u64,
    /// Generations below this process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4))]
    depth: u32,
    /// Time for which the threads run.
    #[arg(long, default_value = "5", value_parser = super::parse_seconds)]
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
        let mut started: Vec<(&'static str, Child)> = Vec::new();
        for number in 0..self.children {
            match self.start(number) {
                Ok(child) => started.push(child),
                Err(error) => {
                    for (_, child) in &mut started {
                        // A child that has ended by itself needs no signal.
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                    return Err(error);
                }
            }
        }
        let mut children = Vec::new();
        for (runs, mut child) in started {
            let pid = child.id();
            let status = child.wait();
            let status =
                status.map_err(DemoError::system(format!("cannot wait for child {pid}")))?;
            children.push(ChildReport {
                pid,
                runs,
                ok: status.success(),
            });
        }
        let ok = children.iter().all(|child| child.ok);
        let report = ForksReport {
            program: "forks",
            children,
            ok,
        };
        let text = || {
            let mut text = format!("{:<10} {:<8} result\n", "child", "runs");
            for child in &report.children {
                let word = DemoVerdict::from_ok(child.ok).word();
                text += &format!("{:<10} {:<8} {word}\n", child.pid, child.runs);
            }
            text
        };
        print_result(ok, format, text, &report)
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
