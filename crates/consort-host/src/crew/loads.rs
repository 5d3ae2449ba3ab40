//! The loads that benches measure, in processes of this program.
//!
//! `__load THREADS SHARE` works with threads until stdin ends, so that the load does not outlive a
//! bench that was killed. `__load NAME SECONDS` works for so long and prints how much was done.

use super::LOAD;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// From the start of a thread's work to the next.
const PERIOD: Duration = Duration::from_millis(20);
/// Number of clients, each with a process that answers it.
const CLIENTS: usize = 4;
/// Steps of work that an answer takes, some 50 us.
const ANSWER_STEPS: u64 = 60_000;

/// Runs the load that the arguments of this process name.
pub(crate) fn run_load() -> Result<()> {
    let mut arguments = std::env::args().skip(2);
    let (first, second) = (arguments.next(), arguments.next());
    match first.filter(|name| name.parse::<u32>().is_err()) {
        Some(name) => run_named_load(&name, &second.unwrap_or_default()),
        None => run_threads(),
    }
}

/// Steps that one thread has done. Aligned, so that no two threads write to one cache line.
#[derive(Default)]
#[repr(align(128))]
struct StepCount(AtomicU64);

/// Runs threads that each work a share of the time.
fn run_threads() -> Result<()> {
    let mut arguments = std::env::args().skip(2);
    let threads: u32 = arguments.next().context("no threads")?.parse()?;
    let share: f64 = arguments.next().context("no share")?.parse()?;
    let counts: Vec<Arc<StepCount>> = (0..threads).map(|_| Arc::default()).collect();
    for (number, count) in counts.iter().enumerate() {
        // Spread over the period, so that threads do not all wake at once.
        let delay = PERIOD.mul_f64(number as f64 / f64::from(threads));
        let count = Arc::clone(count);
        let started = thread::Builder::new().spawn(move || {
            thread::sleep(delay);
            loop {
                let begin = Instant::now();
                while begin.elapsed() < PERIOD.mul_f64(share) {
                    count.0.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
            }
        });
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

/// Runs a load for some seconds and prints the work done and, if it serves requests, their times.
fn run_named_load(name: &str, argument: &str) -> Result<()> {
    if name == "answer" {
        return answer_requests(argument);
    }
    let time = Duration::from_secs_f64(argument.parse().context("no time")?);
    let begin = Instant::now();
    let mut times = Vec::new();
    let work = match name {
        "serve" => {
            times = serve_requests(time)?;
            times.len() as u64
        }
        "churn" => count_until(begin, time, || {
            let short = || execute_steps(ANSWER_STEPS / 4);
            Ok(thread::Builder::new().spawn(short)?.join().is_ok())
        })?,
        "forks" => count_until(begin, time, || {
            Ok(Command::new("/bin/true").status()?.success())
        })?,
        "ping-pong" => {
            let mut answerer = AnswerProcess::start(0)?;
            count_until(begin, time, || Ok(answerer.request_answer().is_ok()))?
        }
        "loops" => run_loops(begin, time),
        other => bail!("no load is called {other}"),
    };
    times.sort_unstable();
    let quantile_us = |share: f64| {
        let at = (times.len() as f64 * share) as usize;
        times.get(at).copied().unwrap_or(0) as f64 / 1e3
    };
    let done = json!({
        "work": work,
        "seconds": begin.elapsed().as_secs_f64(),
        "median_us": quantile_us(0.5),
        "p99_us": quantile_us(0.99),
    });
    println!("{done}");
    Ok(())
}

/// Counts how often something can be done in some time.
fn count_until(
    begin: Instant,
    time: Duration,
    mut work: impl FnMut() -> Result<bool>,
) -> Result<u64> {
    let mut count = 0;
    while begin.elapsed() < time {
        count += u64::from(work()?);
    }
    Ok(count)
}

fn execute_steps(number: u64) {
    let step = |sum: u64, n| black_box(sum.wrapping_mul(31).wrapping_add(n));
    black_box((0..number).fold(1, step));
}

fn run_loops(begin: Instant, time: Duration) -> u64 {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || {
        let mut count = 0;
        while begin.elapsed() < time {
            execute_steps(1_000_000);
            count += 1;
        }
        count
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .sum()
    })
}

/// A process of this program that answers requests over a socket.
struct AnswerProcess {
    child: Child,
    stream: UnixStream,
}

impl AnswerProcess {
    /// Starts it with `steps` steps of work per answer.
    fn start(steps: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        let argument = format!("{steps}:{}", path.display());
        let own = std::env::current_exe()?;
        let child = Command::new(own)
            .args([LOAD, "answer", &argument])
            .stdin(Stdio::null())
            .spawn()?;
        let (stream, _) = listener.accept()?;
        Ok(Self { child, stream })
    }

    fn request_answer(&mut self) -> std::io::Result<()> {
        let mut byte = [1];
        self.stream.write_all(&byte)?;
        self.stream.read_exact(&mut byte)
    }
}

impl Drop for AnswerProcess {
    fn drop(&mut self) {
        // It ends when its requests do.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

fn answer_requests(argument: &str) -> Result<()> {
    let (number, path) = argument.split_once(':').context("no socket")?;
    let number: u64 = number.parse()?;
    let mut stream = UnixStream::connect(path)?;
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        execute_steps(number);
        if stream.write_all(&byte).is_err() {
            break;
        }
    }
    Ok(())
}

/// Sends requests from some clients; returns the time that each request took, ns.
fn serve_requests(time: Duration) -> Result<Vec<u64>> {
    let answerers = (0..CLIENTS).map(|_| AnswerProcess::start(ANSWER_STEPS));
    let mut answerers = answerers.collect::<Result<Vec<_>>>()?;
    let begin = Instant::now();
    let request = |answerer: &mut AnswerProcess| {
        let mut times = Vec::new();
        while begin.elapsed() < time {
            let sent = Instant::now();
            if answerer.request_answer().is_err() {
                break;
            }
            times.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        times
    };
    Ok(thread::scope(|scope| {
        let clients: Vec<_> = answerers
            .iter_mut()
            .map(|answerer| scope.spawn(move || request(answerer)))
            .collect();
        let times = clients.into_iter().filter_map(|client| client.join().ok());
        times.flatten().collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_threads_count_their_work() {
        let time = Duration::from_millis(300);
        assert!(run_loops(Instant::now(), time) > 0);
        let count = count_until(Instant::now(), time, || Ok(true)).unwrap();
        assert!(count > 0);
    }

    #[test]
    fn unknown_load_is_refused() {
        assert!(run_named_load("sleep", "1").is_err());
        assert!(run_named_load("loops", "long").is_err());
    }
}
