//! Threads that change themselves: one sets its own affinity mask, which Consort must leave alone
//! (unless `--override-affinity` is given), others change their names, which are therefore no
//! identity.

use super::find_kernel;
use crate::output::{DemoError, DemoFormat, DemoOutcome, DemoVerdict, print_result, print_threads};
use clap::Args;
use consort_kernels::KernelSetup;
use consort_kernels::crew::ThreadReport;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;
use serde::Serialize;
use std::ffi::CString;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Duration of the program.
#[derive(Args)]
pub(crate) struct PinSelfArgs {
    /// Time for which the threads run.
    #[arg(long, default_value = "5", value_parser = super::parse_seconds)]
    seconds: Duration,
    /// The CPU to pin to [default: the highest that is allowed].
    #[arg(long)]
    pu: Option<usize>,
}

#[derive(Serialize)]
struct PinReport {
    program: &'static str,
    pu: usize,
    mask_kept: bool,
    units: u64,
    ok: bool,
}

impl PinSelfArgs {
    /// Runs `pinned-0` and `free-0` side by side.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let pu = self.pu()?;
        let deadline = Instant::now() + self.seconds;
        let free = start("free-0", move || work(deadline))?;
        let pinned = start("pinned-0", move || run_pinned(pu, deadline))?;
        let (_, free_ok) = join(free)?;
        let (mask_kept, (units, pinned_ok)) = join(pinned)?;
        let report = PinReport {
            program: "pin-self",
            pu,
            mask_kept,
            units,
            ok: free_ok && pinned_ok,
        };
        let text = || {
            // A mask that another program changed is reported, not counted as a wrong result.
            let kept = if mask_kept {
                "kept"
            } else {
                "changed by another program"
            };
            let word = DemoVerdict::from_ok(report.ok).word();
            format!("pinned-0 on CPU {pu}: mask {kept}, {units} units: {word}")
        };
        print_result(report.ok, format, text, &report)
    }

    /// The CPU to use; an error if it is not allowed.
    fn pu(&self) -> Result<usize, DemoError> {
        let mask = own_mask().map_err(DemoError::system("cannot read the affinity mask"))?;
        let allowed: Vec<usize> = (0..CpuSet::count())
            .filter(|pu| mask.is_set(*pu).unwrap_or(false))
            .collect();
        let pu = self.pu.or_else(|| allowed.last().copied()).unwrap_or(0);
        match allowed.contains(&pu) {
            true => Ok(pu),
            false => Err(DemoError::Unavailable(format!(
                "--pu {pu}: not among the allowed CPUs {allowed:?}"
            ))),
        }
    }
}

fn own_mask() -> Result<CpuSet, Errno> {
    sched_getaffinity(Pid::from_raw(0))
}

fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, DemoError> + Send + 'static,
) -> Result<JoinHandle<Result<T, DemoError>>, DemoError> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder
        .spawn(work)
        .map_err(DemoError::system(format!("cannot start thread `{name}`")))
}

/// Waits for a thread; a panic in it, which only a bug can cause, is passed on.
fn join<T>(handle: JoinHandle<Result<T, DemoError>>) -> Result<T, DemoError> {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Pins the calling thread and works; returns whether the mask is still its own, and the work.
fn run_pinned(pu: usize, deadline: Instant) -> Result<(bool, (u64, bool)), DemoError> {
    let mut mask = CpuSet::new();
    mask.set(pu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &mask))
        .map_err(DemoError::system(format!("cannot pin to CPU {pu}")))?;
    let worked = work(deadline)?;
    let now = own_mask().map_err(DemoError::system("cannot read the affinity mask"))?;
    Ok((now == mask, worked))
}

/// Works until the deadline; returns the units done, and whether the result is right.
fn work(deadline: Instant) -> Result<(u64, bool), DemoError> {
    let mut kernel = find_kernel("fp")?.build_one(&KernelSetup::default())?;
    let mut units = 0;
    while units == 0 || Instant::now() < deadline {
        kernel.work(1);
        units += 1;
    }
    Ok((units, kernel.work(0) == kernel.expected()))
}

/// Changes of names.
#[derive(Args)]
pub(crate) struct RenamerArgs {
    /// Number of threads.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=super::MAX_THREADS))]
    threads: u64,
    /// Time for which they run.
    #[arg(long, default_value = "5", value_parser = super::parse_seconds)]
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
        let mut handles = Vec::new();
        for index in 0..self.threads {
            let builder = thread::Builder::new().name(format!("renamer-{index}"));
            let handle = builder.spawn(move || run_renaming(index, every, deadline));
            handles
                .push(handle.map_err(DemoError::system(format!("cannot start thread {index}")))?);
        }
        let reports: Result<Vec<ThreadReport>, DemoError> = handles.into_iter().map(join).collect();
        print_threads("renamer", &reports?, format)
    }
}

/// Works, and takes a new name after each `every`.
fn run_renaming(index: u64, every: Duration, deadline: Instant) -> Result<ThreadReport, DemoError> {
    let start = Instant::now();
    let entry = find_kernel("int")?;
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

/// Takes a name such as `r1-00042`, which fits the kernel's 15 bytes for 100,000 threads.
fn rename(index: u64, count: u32) -> Result<String, DemoError> {
    let name = format!("r{index}-{:05}", count % 100_000);
    let text = CString::new(name.clone()).map_err(|e| DemoError::Unavailable(e.to_string()))?;
    prctl::set_name(&text).map_err(DemoError::system(format!("cannot take the name `{name}`")))?;
    Ok(name)
}
