//! Threads that keep renaming themselves: names are no identity.

use super::kernel;
use super::sizes;
use crate::output::{self, DemoError, DemoFormat, DemoOutcome};
use clap::Args;
use consort_kernels::KernelSetup;
use consort_kernels::crew::ThreadReport;
use nix::sys::prctl;
use std::ffi::CString;
use std::thread;
use std::time::{Duration, Instant};

/// Changes of names.
#[derive(Args)]
pub(crate) struct RenamerArgs {
    /// Number of threads.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=sizes::MAX_THREADS))]
    threads: u64,
    /// Time for which they run.
    #[arg(long, default_value = "5", value_parser = sizes::parse_seconds)]
    seconds: Duration,
    /// Time for which a name lasts, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    every_ms: u64,
}

impl RenamerArgs {
    /// Runs the threads; the reports carry their last names.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let deadline = Instant::now() + self.seconds;
        let every = Duration::from_millis(self.every_ms);
        let handles: Result<Vec<_>, _> = (0..self.threads)
            .map(|index| {
                thread::Builder::new()
                    .name(format!("renamer-{index}"))
                    .spawn(move || run_renaming(index, every, deadline))
                    .map_err(DemoError::system(format!("cannot start thread {index}")))
            })
            .collect();
        let reports: Result<Vec<ThreadReport>, DemoError> = handles?
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        output::print_threads("renamer", &reports?, format)
    }
}

/// Works, and takes a new name every `every`.
fn run_renaming(index: u64, every: Duration, deadline: Instant) -> Result<ThreadReport, DemoError> {
    let start = Instant::now();
    let entry = kernel("int")?;
    let mut kernel = entry.build_one(&KernelSetup::default())?;
    let (mut units, mut names) = (0, 0);
    let mut name = format!("renamer-{index}");
    while units == 0 || Instant::now() < deadline {
        if start.elapsed() >= every * names {
            name = rename(index, names)?;
            names += 1;
        }
        kernel.work(1);
        units += 1;
    }
    let checksum = kernel.work(0);
    Ok(ThreadReport {
        name,
        kernel: entry.name,
        units,
        checksum: format!("{checksum:016x}"),
        ok: checksum == kernel.expected(),
    })
}

/// Takes a name such as `r1-00042`, which fits the kernel's 15 bytes for 100,000
/// threads.
fn rename(index: u64, count: u32) -> Result<String, DemoError> {
    let name = format!("r{index}-{:05}", count % 100_000);
    let text = CString::new(name.clone()).map_err(|e| DemoError::Unavailable(e.to_string()))?;
    prctl::set_name(&text).map_err(DemoError::system(format!("cannot take the name `{name}`")))?;
    Ok(name)
}
