//! The programs, and what their command lines share.

mod churn;
mod counted;
mod forks;
mod kernel;
mod own_threads;

pub(crate) use kernel::KernelArgs;

use crate::output::{DemoError, DemoFormat, DemoOutcome, print_result};
use clap::Subcommand;
use consort_kernels::crew::WorkGoal;
use consort_kernels::{KernelEntry, kernels};
use std::time::{Duration, Instant};

/// Programs in addition to the kernels.
#[derive(Subcommand)]
pub(crate) enum DemoProgram {
    /// Threads of several kinds in one process, sized for this host.
    Mixed(kernel::MixedArgs),
    /// Starts many short threads, each with a checked result.
    Churn(churn::ChurnArgs),
    /// Starts child processes with threads of their own.
    Forks(forks::ForksArgs),
    /// A thread that sets its own affinity on purpose, beside one that does not.
    PinSelf(own_threads::PinSelfArgs),
    /// Threads that keep renaming themselves.
    Renamer(own_threads::RenamerArgs),
    /// Runs a loop with exactly known event counts, or lists them.
    Counted(counted::CountedArgs),
    /// Lists the kernels.
    List,
}

impl DemoProgram {
    pub(crate) fn run(self, format: DemoFormat) -> DemoOutcome {
        match self {
            Self::Mixed(args) => args.run(format),
            Self::Churn(args) => args.run(format),
            Self::Forks(args) => args.run(format),
            Self::PinSelf(args) => args.run(format),
            Self::Renamer(args) => args.run(format),
            Self::Counted(args) => args.run(format),
            Self::List => list_kernels(format),
        }
    }
}

fn find_kernel(name: &str) -> Result<&'static KernelEntry, DemoError> {
    kernels::find(name)
        .ok_or_else(|| DemoError::Unavailable(format!("there is no kernel `{name}`")))
}

fn list_kernels(format: DemoFormat) -> DemoOutcome {
    let text = || {
        let mut text = format!("{:<10} {:<8} summary\n", "kernel", "class");
        for entry in kernels::REGISTRY {
            text += &format!("{:<10} {:<8} {}\n", entry.name, entry.class, entry.summary);
        }
        text
    };
    print_result(true, format, text, &kernels::REGISTRY)
}

/// The longest time on the command line: a week.
const MAX_SECONDS: f64 = 604_800.0;

/// The most threads of one kind on the command line.
const MAX_THREADS: u64 = 100_000;

/// A positive number of seconds.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=MAX_SECONDS).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("not a number of seconds from 0.001 to {MAX_SECONDS}"))
}

/// The goal to work for so long from now.
fn goal_after(time: Duration) -> WorkGoal {
    WorkGoal::Until(Instant::now() + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_week_of_positive_seconds_is_accepted() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "nan", "inf", "1e9", "1s", ""] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
    }
}
