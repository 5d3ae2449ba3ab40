//! The guest's side: starts spinning threads, looks where they are, stops them, again and again.

use crate::error::VmError;
use crate::spread::arrival::SpinnerArrival;
use crate::spread::look::SpreadSnapshot;
use crate::spread::spinners::Spinners;
use crate::spread::task;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Long enough for the load averages of a repetition to fade before the next: three times the
/// half-life of 32 ms (kernel, `kernel/sched/pelt.c`).
pub(super) const REST: Duration = Duration::from_millis(100);

/// Repeats every arrival of every count in turn and writes a line per [`SpreadSnapshot`] to `out`.
/// `after_ms` are the moments to look at, rising, ms after the last thread was started.
///
/// # Errors
/// Where threads cannot be started or looked at, or `out` cannot be written.
pub fn measure_inside(
    repetitions: usize,
    counts: &[usize],
    after_ms: &[u64],
    out: &mut impl Write,
) -> Result<(), VmError> {
    for _ in 0..repetitions {
        for &count in counts {
            for arrival in SpinnerArrival::ALL {
                let looks = run_repetition(arrival, count, after_ms)?;
                write_snapshots(&looks, out).map_err(VmError::io("write to", "the console"))?;
                std::thread::sleep(REST);
            }
        }
    }
    Ok(())
}

fn run_repetition(
    arrival: SpinnerArrival,
    count: usize,
    after_ms: &[u64],
) -> Result<Vec<SpreadSnapshot>, VmError> {
    let spinners = Spinners::start(arrival, count)?;
    let start = Instant::now();
    take_snapshots(&spinners, arrival, after_ms, start)
}

/// Looks at the spinners at each moment after `start`.
pub(super) fn take_snapshots(
    spinners: &Spinners,
    arrival: SpinnerArrival,
    after_ms: &[u64],
    start: Instant,
) -> Result<Vec<SpreadSnapshot>, VmError> {
    let tasks = spinners.tasks(Path::new("/proc"))?;
    let look_at = |&after_ms: &u64| {
        let due = Duration::from_millis(after_ms);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        take_snapshot(&tasks, arrival, after_ms, start)
    };
    after_ms.iter().map(look_at).collect()
}

/// Reads all places before any count of migrations, so that they are of nearly one moment.
fn take_snapshot(
    tasks: &[PathBuf],
    arrival: SpinnerArrival,
    after_ms: u64,
    start: Instant,
) -> Result<SpreadSnapshot, VmError> {
    let pus = tasks
        .iter()
        .map(|task| task::pu(task))
        .collect::<Result<_, _>>()?;
    let migrations = tasks
        .iter()
        .map(|task| task::migrations(task))
        .sum::<Result<_, _>>()?;
    let elapsed_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    Ok(SpreadSnapshot {
        arrival,
        after_ms,
        elapsed_us,
        migrations,
        pus,
    })
}

pub(super) fn write_snapshots(
    looks: &[SpreadSnapshot],
    out: &mut impl Write,
) -> std::io::Result<()> {
    looks.iter().try_for_each(|look| writeln!(out, "{look}"))
}
