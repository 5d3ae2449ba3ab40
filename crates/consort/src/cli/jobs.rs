//! Number of workers that share the runs.

use super::count::count_parser;
use clap::Args;
use std::num::NonZeroUsize;

/// Number of workers that share the runs; results do not depend on it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Jobs {
    /// Worker threads of simulated runs; all PUs if not given
    #[arg(long, value_name = "N", value_parser = worker_parser())]
    jobs: Option<NonZeroUsize>,
}

fn worker_parser() -> impl Fn(&str) -> Result<NonZeroUsize, String> + Clone + Send + Sync + 'static
{
    let parse = count_parser::<usize>(1..=65_536);
    move |text| Ok(NonZeroUsize::new(parse(text)?).unwrap_or(NonZeroUsize::MIN))
}

impl Jobs {
    /// Workers that were asked for.
    pub(crate) fn requested_workers(self) -> Option<NonZeroUsize> {
        self.jobs
    }

    /// Workers to start: as many as there are PUs where nothing was asked for.
    pub(crate) fn workers(self) -> NonZeroUsize {
        let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(all)
    }
}
