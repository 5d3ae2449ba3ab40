//! The programs, one file each.

mod churn;
mod counted;
mod forks;
mod kernel;
mod list;
mod mixed;
mod pin_self;
mod renamer;
mod sizes;

pub(crate) use kernel::KernelArgs;

use crate::output::{DemoError, DemoFormat, DemoOutcome};
use clap::Subcommand;
use consort_kernels::{KernelEntry, kernels};

/// Programs beside the kernels.
#[derive(Subcommand)]
pub(crate) enum DemoProgram {
    /// Threads of several kinds in one process, sized for this host.
    Mixed(mixed::MixedArgs),
    /// Starts many short threads, each with a checked result.
    Churn(churn::ChurnArgs),
    /// Starts child processes with threads of their own.
    Forks(forks::ForksArgs),
    /// A thread that sets its own affinity on purpose, beside one that does not.
    PinSelf(pin_self::PinSelfArgs),
    /// Threads that keep renaming themselves.
    Renamer(renamer::RenamerArgs),
    /// Runs a loop with exactly known event counts, or lists them.
    Counted(counted::CountedArgs),
    /// Lists the kernels.
    List,
}

impl DemoProgram {
    /// Runs it and prints what came out.
    pub(crate) fn run(self, format: DemoFormat) -> DemoOutcome {
        match self {
            Self::Mixed(args) => args.run(format),
            Self::Churn(args) => args.run(format),
            Self::Forks(args) => args.run(format),
            Self::PinSelf(args) => args.run(format),
            Self::Renamer(args) => args.run(format),
            Self::Counted(args) => args.run(format),
            Self::List => list::run(format),
        }
    }
}

/// A kernel by name.
fn kernel(name: &str) -> Result<&'static KernelEntry, DemoError> {
    kernels::find(name)
        .ok_or_else(|| DemoError::Unavailable(format!("there is no kernel `{name}`")))
}
