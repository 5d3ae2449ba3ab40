//! A thread that sets its own affinity on purpose: Consort must leave it alone
//! (unless told to override).
//!
//! The result says whether the mask that the thread set was still there at the
//! end. Somebody else changing it is told, not counted as a wrong result.

use super::kernel;
use super::sizes;
use crate::output::{self, DemoError, DemoFormat, DemoOutcome, DemoVerdict};
use clap::Args;
use consort_kernels::KernelSetup;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Duration of the program.
#[derive(Args)]
pub(crate) struct PinSelfArgs {
    /// Time for which the threads run.
    #[arg(long, default_value = "5", value_parser = sizes::parse_seconds)]
    seconds: Duration,
    /// The PU to pin to [default: the highest that is allowed].
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
        print_report(pu, mask_kept, units, free_ok && pinned_ok, format)
    }

    /// The PU to use; an error if it is not allowed.
    fn pu(&self) -> Result<usize, DemoError> {
        let mask = own_mask().map_err(DemoError::system("cannot read the affinity mask"))?;
        let allowed: Vec<usize> = (0..CpuSet::count())
            .filter(|pu| mask.is_set(*pu).unwrap_or(false))
            .collect();
        let pu = self.pu.or_else(|| allowed.last().copied()).unwrap_or(0);
        match allowed.contains(&pu) {
            true => Ok(pu),
            false => Err(DemoError::Unavailable(format!(
                "--pu {pu}: not among the allowed PUs {allowed:?}"
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

/// A thread's result; its panic, which only a bug can cause, goes on here.
fn join<T>(handle: JoinHandle<Result<T, DemoError>>) -> Result<T, DemoError> {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Pins the calling thread, works, and looks whether the mask is still its own.
fn run_pinned(pu: usize, deadline: Instant) -> Result<(bool, (u64, bool)), DemoError> {
    let mut mask = CpuSet::new();
    mask.set(pu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &mask))
        .map_err(DemoError::system(format!("cannot pin to PU {pu}")))?;
    let worked = work(deadline)?;
    let now = own_mask().map_err(DemoError::system("cannot read the affinity mask"))?;
    Ok((now == mask, worked))
}

/// Works until the deadline: units done, and whether the result is right.
fn work(deadline: Instant) -> Result<(u64, bool), DemoError> {
    let mut kernel = kernel("fp")?.build_one(&KernelSetup::default())?;
    let mut units = 0;
    while units == 0 || Instant::now() < deadline {
        kernel.work(1);
        units += 1;
    }
    Ok((units, kernel.work(0) == kernel.expected()))
}

fn print_report(
    pu: usize,
    mask_kept: bool,
    units: u64,
    ok: bool,
    format: DemoFormat,
) -> DemoOutcome {
    let verdict = DemoVerdict::from_ok(ok);
    let kept = if mask_kept {
        "kept"
    } else {
        "changed by somebody else"
    };
    match format {
        DemoFormat::Table => output::print_line(&format!(
            "pinned-0 on PU {pu}: mask {kept}, {units} units: {}",
            verdict.word()
        ))?,
        DemoFormat::Json => output::print_json(&PinReport {
            program: "pin-self",
            pu,
            mask_kept,
            units,
            ok,
        })?,
    }
    Ok(verdict)
}
