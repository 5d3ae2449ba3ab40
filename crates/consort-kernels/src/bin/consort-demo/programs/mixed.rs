//! Threads of several kinds in one process: what `consort run` is shown with.
//!
//! By default half of the PUs get an `fp` thread each and as many an `int`
//! thread each, so that on an SMT chip every core could hold one of both. A
//! memory chase joins in half of the time, and a sleeper hardly ever.

use super::{kernel, sizes};
use crate::output::{self, DemoError, DemoFormat, DemoOutcome};
use clap::Args;
use consort_kernels::KernelSetup;
use consort_kernels::caches::CacheSizes;
use consort_kernels::crew::{Crew, DutyCycle, WorkGoal};
use std::path::Path;
use std::time::Duration;

/// Mix of the threads.
#[derive(Args)]
pub(crate) struct MixedArgs {
    /// Time for which they run.
    #[arg(long, default_value = "8", value_parser = sizes::parse_seconds)]
    seconds: Duration,
    /// Number of `fp` threads and as many `int` threads [default: half the PUs].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=sizes::MAX_THREADS))]
    threads_per_kind: Option<u64>,
}

/// Times at which the memory chase works.
const CHASE_DUTY: DutyCycle = DutyCycle {
    work: Duration::from_millis(750),
    rest: Duration::from_millis(750),
};

impl MixedArgs {
    /// Runs the mixture.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let goal = sizes::goal(self.seconds);
        let threads = self.threads_per_kind();
        let mut crew = Crew::default();
        for (name, threads, duty) in [
            ("fp", threads, None),
            ("int", threads, None),
            ("dram", 1, Some(CHASE_DUTY)),
            ("sleeper", 1, None),
        ] {
            enlist(&mut crew, name, threads, goal, duty)?;
        }
        output::print_threads("mixed", &crew.run()?, format)
    }

    fn threads_per_kind(&self) -> usize {
        let asked = self.threads_per_kind.map(usize::try_from);
        match asked {
            Some(Ok(threads)) => threads,
            _ => (sizes::pus() / 2).max(1),
        }
    }
}

fn enlist(
    crew: &mut Crew,
    name: &str,
    threads: usize,
    goal: WorkGoal,
    duty: Option<DutyCycle>,
) -> Result<(), DemoError> {
    let setup = KernelSetup {
        threads,
        caches: CacheSizes::read(Path::new("/")),
        ..KernelSetup::default()
    };
    crew.enlist_part_time(kernel(name)?, &setup, goal, duty);
    Ok(())
}
