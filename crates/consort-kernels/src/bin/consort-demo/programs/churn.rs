//! Many short threads, with which thread discovery has to keep up.

use super::find_kernel;
use crate::output::{DemoError, DemoFormat, DemoOutcome, print_result};
use clap::Args;
use consort_kernels::KernelSetup;
use serde::Serialize;
use std::collections::VecDeque;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Coming and going of threads.
#[derive(Args)]
pub(crate) struct ChurnArgs {
    /// Number of threads started each second.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Time for which threads are started.
    #[arg(long, default_value = "10", value_parser = super::parse_seconds)]
    seconds: Duration,
}

/// The most threads that are alive at once; beyond it the oldest is waited for.
const MAX_ALIVE: usize = 256;

#[derive(Serialize)]
struct ChurnReport {
    program: &'static str,
    threads: u64,
    wrong: u64,
    seconds: f64,
    rate: f64,
    ok: bool,
}

/// The threads that are alive, and counts of the ones that have ended.
#[derive(Default)]
struct ThreadTally {
    alive: VecDeque<JoinHandle<bool>>,
    ended: u64,
    wrong: u64,
}

impl ThreadTally {
    fn add(&mut self, handle: JoinHandle<bool>) {
        self.alive.push_back(handle);
        while self.alive.len() > MAX_ALIVE
            || self.alive.front().is_some_and(JoinHandle::is_finished)
        {
            self.end_one();
        }
    }

    /// Waits for the oldest; a panic counts as a wrong result.
    fn end_one(&mut self) {
        if let Some(handle) = self.alive.pop_front() {
            self.ended += 1;
            self.wrong += u64::from(!handle.join().unwrap_or(false));
        }
    }

    fn end_all(&mut self) {
        while !self.alive.is_empty() {
            self.end_one();
        }
    }
}

impl ChurnArgs {
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let start = Instant::now();
        let mut tally = ThreadTally::default();
        for number in 0_u64.. {
            let due = Duration::from_secs_f64(number as f64 / f64::from(self.rate));
            if due >= self.seconds || start.elapsed() >= self.seconds {
                break;
            }
            thread::sleep(due.saturating_sub(start.elapsed()));
            tally.add(spawn(number)?);
        }
        tally.end_all();
        let time = start.elapsed();
        let report = ChurnReport {
            program: "churn",
            threads: tally.ended,
            wrong: tally.wrong,
            seconds: time.as_secs_f64(),
            rate: tally.ended as f64 / time.as_secs_f64(),
            ok: tally.wrong == 0,
        };
        let text = || {
            let ran = format!(
                "{} threads in {:.1} s ({:.0}/s)",
                report.threads, report.seconds, report.rate
            );
            match report.wrong {
                0 => format!("{ran}: ok"),
                wrong => format!("{ran}: {wrong} WRONG"),
            }
        };
        print_result(report.ok, format, text, &report)
    }
}

/// Starts a thread that does a few units of one kernel; it returns true if the result is right.
fn spawn(number: u64) -> Result<JoinHandle<bool>, DemoError> {
    let entry = find_kernel(if number.is_multiple_of(2) {
        "int"
    } else {
        "fp"
    })?;
    let units = number % 4 + 1;
    let work = move || {
        entry
            .build_one(&KernelSetup::default())
            .is_ok_and(|mut kernel| {
                let checksum = kernel.work(units);
                checksum == kernel.expected()
            })
    };
    thread::Builder::new()
        .name(format!("churn-{number}"))
        .spawn(work)
        .map_err(DemoError::system(format!("cannot start thread {number}")))
}
