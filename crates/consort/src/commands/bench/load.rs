//! The process that is managed while the daemon is measured: `consort __load THREADS SHARE`,
//! threads that each work that share of the time, until stdin ends. Each line on stdin is answered
//! with the number of steps that all threads together have done.

use anyhow::{Context, Result};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Hidden first argument of the process.
pub(crate) const LOAD: &str = "__load";

/// From the start of a thread's work to the next.
const PERIOD: Duration = Duration::from_millis(20);

/// Steps that one thread has done. Aligned, so that no two threads write to one cache line.
#[derive(Default)]
#[repr(align(128))]
struct StepCount(AtomicU64);

/// Runs the threads that the arguments ask for.
pub(super) fn run_load() -> Result<()> {
    let mut arguments = std::env::args().skip(2);
    let threads: u32 = arguments.next().context("no threads")?.parse()?;
    let share: f64 = arguments.next().context("no share")?.parse()?;
    let counts: Vec<Arc<StepCount>> = (0..threads).map(|_| Arc::default()).collect();
    for (number, count) in counts.iter().enumerate() {
        let late = PERIOD.mul_f64(number as f64 / f64::from(threads));
        let count = Arc::clone(count);
        let started = thread::Builder::new().spawn(move || repeat(late, share, &count));
        started.context("cannot start a thread")?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    for line in std::io::stdin().lines() {
        line?;
        let done: u64 = counts
            .iter()
            .map(|count| count.0.load(Ordering::Relaxed))
            .sum();
        writeln!(out, "{done}")?;
        out.flush()?;
    }
    Ok(())
}

/// Works and sleeps by turns; begins late, so that threads do not all wake at once.
fn repeat(late: Duration, share: f64, count: &StepCount) {
    thread::sleep(late);
    loop {
        let begin = Instant::now();
        while begin.elapsed() < PERIOD.mul_f64(share) {
            count.0.fetch_add(1, Ordering::Relaxed);
        }
        thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
    }
}
