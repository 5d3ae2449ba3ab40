//! The guest's side: starts as many processes as there is room for, ends a random half of them and
//! looks where the others are, again and again.

use crate::error::VmError;
use crate::spread::arrival::SpinnerArrival;
use crate::spread::inside::{REST, take_snapshots, write_snapshots};
use crate::spread::look::SpreadSnapshot;
use crate::spread::spinners::Spinners;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::Write;
use std::time::{Duration, Instant};

/// Long enough for a full machine to have a process on every PU (`after_ms = 300` of the
/// placements).
const SETTLE: Duration = Duration::from_millis(300);

/// Repeats so often and writes a line per [`SpreadSnapshot`] at the survivors to `out`. `after_ms` are the
/// moments to look at, rising, ms after the last signal to those that end; `seed` draws them.
///
/// # Errors
/// Where processes cannot be started, ended or looked at, or `out` cannot be written.
pub fn measure_ends_inside(
    repetitions: usize,
    processes: usize,
    after_ms: &[u64],
    seed: u64,
    out: &mut impl Write,
) -> Result<(), VmError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for _ in 0..repetitions {
        let looks = run_repetition(processes, after_ms, &mut random)?;
        write_snapshots(&looks, out).map_err(VmError::io("write to", "the console"))?;
        std::thread::sleep(REST);
    }
    Ok(())
}

fn run_repetition(
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
