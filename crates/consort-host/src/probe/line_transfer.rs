//! Travel time of a cache line: two threads pass one to and fro.

use crate::crew::kernels::{join_thread, pin_thread, start_thread};
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
/// Reads of the line between two reads of the clock.
const SPINS: u32 = 4096;

/// The line, alone in two: some processors fetch lines in pairs.
#[repr(align(128))]
struct ExchangedLine(AtomicU64);

struct LineExchange {
    line: ExchangedLine,
    /// On another line, by the alignment and size of the first.
    over: AtomicBool,
}

/// Measures round trips between two PUs, ns; `None` if other threads kept the PUs busy.
pub(super) fn measure_round_trip_ns(a: PuId, b: PuId) -> Result<Option<ConfidenceInterval>> {
    let exchange = LineExchange {
        line: ExchangedLine(AtomicU64::new(0)),
        over: AtomicBool::new(false),
    };
    let runs = thread::scope(|scope| {
        let returning = start_thread(scope, || return_line(b, &exchange))?;
        let runs = start_thread(scope, || send_line(a, &exchange)).and_then(join_thread);
        // Also after a failure, or the other thread would wait for a line forever.
        exchange.over.store(true, Ordering::Relaxed);
        join_thread(returning).and(runs)
    })?;
    Ok(ConfidenceInterval::from_values(&runs).filter(|interval| interval.n > 1))
}

/// Returns every line with the next even number.
fn return_line(pu: PuId, exchange: &LineExchange) -> Result<()> {
    pin_thread(pu)?;
    let mut expected = 1;
    while wait_for(expected, exchange, None) {
        exchange.line.0.store(expected + 1, Ordering::Release);
        expected += 2;
    }
    Ok(())
}

/// Sends odd numbers; returns the fastest batch of every run, ns for one round trip.
fn send_line(pu: PuId, exchange: &LineExchange) -> Result<Vec<f64>> {
    pin_thread(pu)?;
    let end = Instant::now() + LIMIT;
    let mut number = 0;
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let mut fastest = f64::INFINITY;
        for _ in 0..BATCHES {
            let begin = Instant::now();
            for _ in 0..TRIPS {
                exchange.line.0.store(number + 1, Ordering::Release);
                number += 2;
                if !wait_for(number, exchange, Some(end)) {
                    return Ok(runs);
                }
            }
            fastest = fastest.min(begin.elapsed().as_nanos() as f64 / TRIPS as f64);
        }
        runs.push(fastest);
    }
    Ok(runs)
}

/// Waits until the line holds a number; false if the exchange is over, or the time is.
fn wait_for(number: u64, exchange: &LineExchange, end: Option<Instant>) -> bool {
    loop {
        for _ in 0..SPINS {
            if exchange.line.0.load(Ordering::Acquire) == number {
                return true;
            }
            std::hint::spin_loop();
        }
        let is_late = end.is_some_and(|end| Instant::now() > end);
        if exchange.over.load(Ordering::Relaxed) || is_late {
            return false;
        }
    }
}
