//! One kernel on one or more threads, and threads of several kinds in one process.

use super::{find_kernel, goal_after};
use crate::output::{DemoFormat, DemoOutcome, print_threads};
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
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=super::MAX_THREADS))]
    threads: u64,
    /// Time for which it runs.
    #[arg(long, default_value = "5", value_parser = super::parse_seconds, conflicts_with = "work")]
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

    pub(crate) fn run(&self, entry: &'static KernelEntry, format: DemoFormat) -> DemoOutcome {
        let mut crew = Crew::default();
        let goal = self
            .work
            .map_or_else(|| goal_after(self.seconds), WorkGoal::Units);
        crew.enlist_part_time(entry, &self.setup(), goal, self.duty());
        print_threads(entry.name, &crew.run()?, format)
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
}

/// Mix of the threads.
#[derive(Args)]
pub(crate) struct MixedArgs {
    /// Time for which they run.
    #[arg(long, default_value = "8", value_parser = super::parse_seconds)]
    seconds: Duration,
    /// Number of `fp` threads and as many `int` threads [default: half the CPUs].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=super::MAX_THREADS))]
    threads_per_kind: Option<u64>,
}

/// Times at which the memory chase works.
const CHASE_DUTY: DutyCycle = DutyCycle {
    work: Duration::from_millis(750),
    rest: Duration::from_millis(750),
};

impl MixedArgs {
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let goal = goal_after(self.seconds);
        // By default half of the CPUs get an `fp` thread each and as many an `int` thread each, so
        // that on an SMT chip every core could hold one of both. A memory chase joins in half of
        // the time, and a sleeper hardly ever.
        let pus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match self.threads_per_kind.map(usize::try_from) {
            Some(Ok(threads)) => threads,
            _ => (pus / 2).max(1),
        };
        let mut crew = Crew::default();
        for (name, threads, duty) in [
            ("fp", threads, None),
            ("int", threads, None),
            ("dram", 1, Some(CHASE_DUTY)),
            ("sleeper", 1, None),
        ] {
            let setup = KernelSetup {
                threads,
                caches: CacheSizes::read(Path::new("/")),
                ..KernelSetup::default()
            };
            crew.enlist_part_time(find_kernel(name)?, &setup, goal, duty);
        }
        print_threads("mixed", &crew.run()?, format)
    }
}
