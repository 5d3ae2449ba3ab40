//! Many short threads: what thread discovery has to keep up with.

use super::kernel;
use super::sizes;
use crate::output::{self, DemoError, DemoFormat, DemoOutcome, DemoVerdict};
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
    #[arg(long, default_value = "10", value_parser = sizes::parse_seconds)]
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

/// Counts what became of the threads.
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
    /// Starts the threads and counts them.
    pub(crate) fn run(&self, format: DemoFormat) -> DemoOutcome {
        let start = Instant::now();
        let mut census = ThreadTally::default();
        for number in 0_u64.. {
            let due = Duration::from_secs_f64(number as f64 / f64::from(self.rate));
            if due >= self.seconds || start.elapsed() >= self.seconds {
                break;
            }
            thread::sleep(due.saturating_sub(start.elapsed()));
            census.add(spawn(number)?);
        }
        census.end_all();
        print_report(&census, start.elapsed(), format)
    }
}

/// A thread that does a few units of one kernel and says whether the result is
/// right.
fn spawn(number: u64) -> Result<JoinHandle<bool>, DemoError> {
    let entry = kernel(if number.is_multiple_of(2) {
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

fn print_report(census: &ThreadTally, time: Duration, format: DemoFormat) -> DemoOutcome {
    let report = ChurnReport {
        program: "churn",
        threads: census.ended,
        wrong: census.wrong,
        seconds: time.as_secs_f64(),
        rate: census.ended as f64 / time.as_secs_f64(),
        ok: census.wrong == 0,
    };
    match format {
        DemoFormat::Table => output::print_line(&text(&report))?,
        DemoFormat::Json => output::print_json(&report)?,
    }
    Ok(DemoVerdict::from_ok(report.ok))
}

fn text(report: &ChurnReport) -> String {
    let ran = format!(
        "{} threads in {:.1} s ({:.0}/s)",
        report.threads, report.seconds, report.rate
    );
    match report.wrong {
        0 => format!("{ran}: ok"),
        wrong => format!("{ran}: {wrong} WRONG"),
    }
}
