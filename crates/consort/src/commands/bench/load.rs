//! The process that is managed while the daemon is measured: `consort __load THREADS SHARE`,
//! threads that each work that share of the time, until stdin ends.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Hidden first argument of the process.
pub(crate) const LOAD: &str = "__load";

/// From the start of a thread's work to the next.
const PERIOD: Duration = Duration::from_millis(20);

/// Runs the threads that the arguments ask for.
pub(super) fn work() -> Result<()> {
    let mut arguments = std::env::args().skip(2);
    let threads: u32 = arguments.next().context("no threads")?.parse()?;
    let share: f64 = arguments.next().context("no share")?.parse()?;
    for number in 0..threads {
        let late = PERIOD.mul_f64(f64::from(number) / f64::from(threads));
        let started = thread::Builder::new().spawn(move || repeat(late, share));
        started.context("cannot start a thread")?;
    }
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Works and sleeps by turns; begins late, so that threads do not all wake at once.
fn repeat(late: Duration, share: f64) {
    thread::sleep(late);
    loop {
        let begin = Instant::now();
        while begin.elapsed() < PERIOD.mul_f64(share) {
            std::hint::spin_loop();
        }
        thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
    }
}
