//! The guest's side: starts spinning threads, records where they are, stops them, again and again.

use crate::error::VmError;
use crate::spread::snapshot::{SpinnerArrival, SpreadSnapshot};
use crate::spread::spinners::{Spinners, read_migrations, read_pu};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Long enough for the load averages of a repetition to fade before the next: three times the
/// half-life of 32 ms (kernel, `kernel/sched/pelt.c`).
const REST: Duration = Duration::from_millis(100);

/// Repeats every arrival of every count in turn and writes a line per [`SpreadSnapshot`] to `out`.
/// `after_ms` are the moments, rising, ms after the last thread was started.
///
/// # Errors
/// Threads cannot be started or read, or `out` cannot be written.
pub fn measure_inside(
    repetitions: usize,
    counts: &[usize],
    after_ms: &[u64],
    out: &mut impl Write,
) -> Result<(), VmError> {
    for _ in 0..repetitions {
        for &count in counts {
            for arrival in SpinnerArrival::ALL {
                let snapshots = run_repetition(arrival, count, after_ms)?;
                write_snapshots(&snapshots, out).map_err(VmError::io("write to", "the console"))?;
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

/// Takes a snapshot at each moment after `start`.
fn take_snapshots(
    spinners: &Spinners,
    arrival: SpinnerArrival,
    after_ms: &[u64],
    start: Instant,
) -> Result<Vec<SpreadSnapshot>, VmError> {
    let tasks = spinners.tasks(Path::new("/proc"))?;
    let mut snapshots = Vec::new();
    for &after_ms in after_ms {
        let due = Duration::from_millis(after_ms);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        snapshots.push(take_snapshot(&tasks, arrival, after_ms, start)?);
    }
    Ok(snapshots)
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
        .map(|task| read_pu(task))
        .collect::<Result<_, _>>()?;
    let migrations = tasks
        .iter()
        .map(|task| read_migrations(task))
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

fn write_snapshots(snapshots: &[SpreadSnapshot], out: &mut impl Write) -> std::io::Result<()> {
    snapshots
        .iter()
        .try_for_each(|snapshot| writeln!(out, "{snapshot}"))
}

/// Long enough for a full machine to have a process on every CPU (`after_ms = 300` of the
/// placements).
const SETTLE: Duration = Duration::from_millis(300);

/// Repeats so often and writes a line per [`SpreadSnapshot`] at the survivors to `out`. `after_ms` are the
/// moments, rising, ms after the last signal to a process that ends; `seed` draws these.
///
/// # Errors
/// Processes cannot be started, ended or read, or `out` cannot be written.
pub fn measure_ends_inside(
    repetitions: usize,
    processes: usize,
    after_ms: &[u64],
    seed: u64,
    out: &mut impl Write,
) -> Result<(), VmError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for _ in 0..repetitions {
        let snapshots = end_repetition(processes, after_ms, &mut random)?;
        write_snapshots(&snapshots, out).map_err(VmError::io("write to", "the console"))?;
        std::thread::sleep(REST);
    }
    Ok(())
}

fn end_repetition(
    processes: usize,
    after_ms: &[u64],
    random: &mut impl Rng,
) -> Result<Vec<SpreadSnapshot>, VmError> {
    let mut spinners = Spinners::start(SpinnerArrival::Processes, processes)?;
    std::thread::sleep(SETTLE);
    spinners.end_half(random)?;
    let start = Instant::now();
    take_snapshots(&spinners, SpinnerArrival::Processes, after_ms, start)
}
