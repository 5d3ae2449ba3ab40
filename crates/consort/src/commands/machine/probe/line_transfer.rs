//! Travel time of a cache line: two threads pass one to and fro.

use crate::own_thread;
use anyhow::Result;
use consort_core::PuId;
use consort_core::stats::ConfidenceInterval;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Runs of a pair; each gives its fastest batch, which no interrupt has hit.
const RUNS: usize = 8;
const BATCHES: usize = 8;
/// Round trips in a batch.
const TRIPS: u64 = 100;
/// Time after which an unfinished measurement is given up: others have the PUs.
const LIMIT: Duration = Duration::from_millis(200);
/// Looks at the line between two looks at the clock.
const LOOKS: u32 = 4096;

/// The line, alone in two: some processors fetch lines in pairs.
#[repr(align(128))]
struct ExchangedLine(AtomicU64);

/// State that both threads share.
struct LineExchange {
    line: ExchangedLine,
    /// On another line, by the alignment and size of the first.
    over: AtomicBool,
}

/// Measures round trips between two PUs, ns; none where the PUs were not to be had.
pub(super) fn measure_round_trip_ns(a: PuId, b: PuId) -> Result<Option<ConfidenceInterval>> {
    let court = LineExchange {
        line: ExchangedLine(AtomicU64::new(0)),
        over: AtomicBool::new(false),
    };
    let runs = thread::scope(|scope| {
        let answering = own_thread::start(scope, || return_line(b, &court))?;
        let runs = own_thread::start(scope, || send_line(a, &court)).and_then(join_thread);
        court.over.store(true, Ordering::Relaxed);
        join_thread(answering).and(runs)
    })?;
    Ok(ConfidenceInterval::from_values(&runs).filter(|interval| interval.n > 1))
}

fn join_thread<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Gives back every line with the next even number.
fn return_line(pu: PuId, court: &LineExchange) -> Result<()> {
    own_thread::pin(pu)?;
    let mut expected = 1;
    while wait_for(expected, court, None) {
        court.line.0.store(expected + 1, Ordering::Release);
        expected += 2;
    }
    Ok(())
}

/// The fastest batch of every run, ns for one round trip.
fn send_line(pu: PuId, court: &LineExchange) -> Result<Vec<f64>> {
    own_thread::pin(pu)?;
    let end = Instant::now() + LIMIT;
    let mut number = 0;
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let mut fastest = f64::INFINITY;
        for _ in 0..BATCHES {
            let begin = Instant::now();
            for _ in 0..TRIPS {
                court.line.0.store(number + 1, Ordering::Release);
                number += 2;
                if !wait_for(number, court, Some(end)) {
                    return Ok(runs);
                }
            }
            fastest = fastest.min(begin.elapsed().as_nanos() as f64 / TRIPS as f64);
        }
        runs.push(fastest);
    }
    Ok(runs)
}

/// Waits until the line holds a number; false when it is over, or too late.
fn wait_for(number: u64, court: &LineExchange, end: Option<Instant>) -> bool {
    loop {
        for _ in 0..LOOKS {
            if court.line.0.load(Ordering::Acquire) == number {
                return true;
            }
            std::hint::spin_loop();
        }
        if court.over.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() > end) {
            return false;
        }
    }
}
