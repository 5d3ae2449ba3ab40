//! One kernel on one or more threads.

use super::sizes;
use crate::output::{self, DemoFormat, DemoOutcome};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, FromArgMatches};
use consort_kernels::caches::CacheSizes;
use consort_kernels::crew::{Crew, DutyCycle, WorkGoal};
use consort_kernels::{KernelEntry, KernelSetup};
use std::path::Path;
use std::time::Duration;

/// Options of running a kernel.
#[derive(Args)]
pub(crate) struct KernelArgs {
    /// Number of threads that run it together.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=sizes::MAX_THREADS))]
    threads: u64,
    /// Time for which it runs.
    #[arg(long, default_value = "5", value_parser = sizes::parse_seconds, conflicts_with = "work")]
    seconds: Duration,
    /// Number of units that each thread does, instead of a time.
    #[arg(long, value_name = "UNITS")]
    work: Option<u64>,
    /// Length of each phase, in milliseconds (`phases` only).
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    phase_ms: Option<u64>,
    /// Work and sleep by turns of so many milliseconds each; a unit that has begun is finished.
    #[arg(long, num_args = 2, value_names = ["WORK", "REST"], value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    duty_ms: Option<Vec<u64>>,
}

impl KernelArgs {
    /// Reads the arguments and refuses those that mean nothing to this kernel.
    pub(crate) fn for_kernel(
        entry: &KernelEntry,
        matches: &ArgMatches,
    ) -> Result<Self, clap::Error> {
        let args = Self::from_arg_matches(matches)?;
        if args.phase_ms.is_some() && entry.name != "phases" {
            let message = format!(
                "--phase-ms has no meaning for `{}`, only for `phases`",
                entry.name
            );
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
        }
        Ok(args)
    }

    /// Runs the kernel.
    pub(crate) fn run(&self, entry: &'static KernelEntry, format: DemoFormat) -> DemoOutcome {
        let mut crew = Crew::default();
        crew.enlist_part_time(entry, &self.setup(), self.goal(), self.duty());
        output::print_threads(entry.name, &crew.run()?, format)
    }

    fn setup(&self) -> KernelSetup {
        let default = KernelSetup::default();
        KernelSetup {
            threads: usize::try_from(self.threads).unwrap_or(1),
            caches: CacheSizes::read(Path::new("/")),
            phase: self.phase_ms.map_or(default.phase, Duration::from_millis),
        }
    }

    fn duty(&self) -> Option<DutyCycle> {
        let &[work, rest] = self.duty_ms.as_deref()? else {
            return None;
        };
        Some(DutyCycle {
            work: Duration::from_millis(work),
            rest: Duration::from_millis(rest),
        })
    }

    fn goal(&self) -> WorkGoal {
        self.work
            .map_or_else(|| sizes::goal(self.seconds), WorkGoal::Units)
    }
}
