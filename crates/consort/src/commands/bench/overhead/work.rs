//! The loads that come with Consort: `consort __load NAME SECONDS` works for so long and prints how
//! much was done, as JSON.

use super::super::load::LOAD;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Number of clients, each with a process that answers it.
const CLIENTS: usize = 4;
/// Steps of work that an answer takes, some 50 us.
const ANSWER_STEPS: u64 = 60_000;

/// Runs the load that the arguments name.
pub(in super::super) fn run_named_load(name: &str, argument: &str) -> Result<()> {
    if name == "answer" {
        return answer(argument);
    }
    let time = Duration::from_secs_f64(argument.parse().context("no time")?);
    let begin = Instant::now();
    let (work, mut times) = match name {
        "serve" => serve(time)?,
        "churn" => (
            count_until(begin, time, || {
                Ok(thread::Builder::new().spawn(spin)?.join().is_ok())
            })?,
            vec![],
        ),
        "forks" => (
            count_until(begin, time, || {
                Ok(Command::new("/bin/true").status()?.success())
            })?,
            vec![],
        ),
        "ping-pong" => (run_ping_pong(begin, time)?, vec![]),
        "loops" => (run_loops(begin, time), vec![]),
        other => bail!("no load is called {other}"),
    };
    times.sort_unstable();
    let at = |share: f64| {
        times
            .get((times.len() as f64 * share) as usize)
            .copied()
            .unwrap_or(0)
    };
    let done = json!({
        "work": work,
        "seconds": begin.elapsed().as_secs_f64(),
        "median_us": at(0.5) as f64 / 1e3,
        "p99_us": at(0.99) as f64 / 1e3,
    });
    println!("{done}");
    Ok(())
}

/// Counts how often something can be done in some time.
fn count_until(
    begin: Instant,
    time: Duration,
    mut each: impl FnMut() -> Result<bool>,
) -> Result<u64> {
    let mut count = 0;
    while begin.elapsed() < time {
        count += u64::from(each()?);
    }
    Ok(count)
}

fn execute_steps(number: u64) {
    let step = |sum: u64, n| black_box(sum.wrapping_mul(31).wrapping_add(n));
    black_box((0..number).fold(1, step));
}

fn spin() {
    execute_steps(ANSWER_STEPS / 4);
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

/// A process of this program that answers whoever connects to a socket.
struct AnswerProcess {
    child: Child,
    stream: UnixStream,
}

impl AnswerProcess {
    /// Starts it with so many steps of work per answer.
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
        // It ends when its questions do.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

fn answer(argument: &str) -> Result<()> {
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

fn run_ping_pong(begin: Instant, time: Duration) -> Result<u64> {
    let mut answerer = AnswerProcess::start(0)?;
    count_until(begin, time, || Ok(answerer.request_answer().is_ok()))
}

/// Requests of some clients; returns their number, and the time that each took, ns.
fn serve(time: Duration) -> Result<(u64, Vec<u64>)> {
    let answerers = (0..CLIENTS).map(|_| AnswerProcess::start(ANSWER_STEPS));
    let mut answerers = answerers.collect::<Result<Vec<_>>>()?;
    let begin = Instant::now();
    let ask = |answerer: &mut AnswerProcess| {
        let mut times = Vec::new();
        while begin.elapsed() < time {
            let asked = Instant::now();
            if answerer.request_answer().is_err() {
                break;
            }
            times.push(u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        times
    };
    let times: Vec<u64> = thread::scope(|scope| {
        let clients: Vec<_> = answerers
            .iter_mut()
            .map(|one| scope.spawn(move || ask(one)))
            .collect();
        let times = clients.into_iter().filter_map(|client| client.join().ok());
        times.flatten().collect()
    });
    Ok((times.len() as u64, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_threads_count_their_work() {
        let begin = Instant::now();
        let time = Duration::from_millis(30);
        assert!(run_loops(begin, time) > 0);
        let count = count_until(begin, time * 2, || Ok(true)).unwrap();
        assert!(count > 0);
    }

    #[test]
    fn a_load_that_does_not_exist_is_refused() {
        assert!(run_named_load("sleep", "1").is_err());
        assert!(run_named_load("loops", "long").is_err());
    }
}
