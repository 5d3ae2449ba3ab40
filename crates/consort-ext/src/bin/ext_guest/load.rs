//! Programs to be governed: this same binary, run with `load`.

use crate::GuestResult;
use crate::tasks;
use consort_core::ThreadId;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is killed when the value is dropped.
pub(crate) struct LoadProcess {
    child: Child,
    pub(crate) threads: Vec<ThreadId>,
}

impl LoadProcess {
    /// Starts one that spins with this number of threads.
    pub(crate) fn start_spinning(threads: usize) -> GuestResult<Self> {
        Self::start(&["spin", &threads.to_string()], threads)
    }

    /// Starts one that records when its threads run, for this time.
    pub(crate) fn start_gang(threads: usize, seconds: u64) -> GuestResult<Self> {
        Self::start(
            &["gang", &threads.to_string(), &seconds.to_string()],
            threads,
        )
    }

    pub(crate) fn start(arguments: &[&str], threads: usize) -> GuestResult<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("load")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let child = command.spawn()?;
        let threads = tasks::wait_for_threads(child.id(), threads)?;
        Ok(Self { child, threads })
    }

    /// Lets a waiting load continue. Returns its output once it has ended by itself.
    pub(crate) fn output(mut self) -> GuestResult<String> {
        if let Some(mut stdin) = self.child.stdin.take() {
            // One that does not wait may have ended already.
            let _ = stdin.write_all(b"go\n");
        }
        let mut text = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut text)?;
        }
        let status = self.child.wait()?;
        if status.success() {
            Ok(text)
        } else {
            Err(format!("a load ended with {status}").into())
        }
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn run(arguments: &[&str]) -> GuestResult<()> {
    match arguments {
        ["spin", threads] => spin(threads.parse()?),
        ["gang", threads, seconds] => run_gang(threads.parse()?, seconds.parse()?),
        ["looks", number] => count_narrow_masks(number.parse()?),
        ["ping", rounds] => ping(rounds.parse()?),
        _ => Err("load spin THREADS | gang THREADS SECONDS | looks NUMBER | ping ROUNDS".into()),
    }
}

fn spin(threads: usize) -> GuestResult<()> {
    for _ in 1..threads {
        std::thread::spawn(|| spin_forever().is_ok());
    }
    spin_forever()
}

fn spin_forever() -> GuestResult<()> {
    loop {
        black_box(0u64);
    }
}

/// A longer pause between two readings of the clock means that the thread did not run.
const PAUSE: Duration = Duration::from_millis(2);

/// Every thread but the first records the stretches in which it ran: `ran FROM_NS TO_NS`.
fn run_gang(threads: usize, seconds: u64) -> GuestResult<()> {
    let end = monotonic_now()? + Duration::from_secs(seconds);
    let stretches = std::thread::scope(|scope| {
        let running: Vec<_> = (1..threads)
            .map(|_| scope.spawn(move || record_stretches(end)))
            .collect();
        let ended = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default());
        ended.collect::<Vec<_>>()
    });
    for (from, to) in stretches.into_iter().flatten() {
        println!("ran {} {}", from.as_nanos(), to.as_nanos());
    }
    Ok(())
}

fn record_stretches(end: Duration) -> Vec<(Duration, Duration)> {
    let mut all: Vec<(Duration, Duration)> = Vec::new();
    while let Ok(now) = monotonic_now() {
        if now > end {
            break;
        }
        match all.last_mut() {
            Some((_, to)) if now - *to < PAUSE => *to = now,
            _ => all.push((now, now)),
        }
    }
    all
}

fn monotonic_now() -> GuestResult<Duration> {
    let clock = nix::time::ClockId::CLOCK_MONOTONIC;
    Ok(nix::time::clock_gettime(clock)?.into())
}

/// Waits for a line, reads its own mask this often, and prints how often it was narrower than at
/// first.
fn count_narrow_masks(number: usize) -> GuestResult<()> {
    let pus = || -> GuestResult<usize> {
        let mask = sched_getaffinity(Pid::from_raw(0))?;
        Ok((0..CpuSet::count())
            .filter(|&pu| mask.is_set(pu).unwrap_or(false))
            .count())
    };
    let all = pus()?;
    wait_to_go()?;
    let mut narrower = 0;
    for _ in 0..number {
        narrower += usize::from(pus()? < all);
    }
    println!("{narrower} of {number} looks narrower than {all} CPUs");
    Ok(())
}

fn wait_to_go() -> GuestResult<()> {
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Two threads that wake each other through pipes, after a line on stdin; prints the time of the
/// rounds, ns.
fn ping(rounds: usize) -> GuestResult<()> {
    let (mut from_ping, mut to_pong) = pipe()?;
    let (mut from_pong, mut to_ping) = pipe()?;
    std::thread::scope(|scope| {
        scope.spawn(move || while pass(&mut from_ping, &mut to_ping).is_ok() {});
        wait_to_go()?;
        let started = Instant::now();
        for _ in 0..rounds {
            to_pong.write_all(&[0])?;
            from_pong.read_exact(&mut [0])?;
        }
        println!("{}", started.elapsed().as_nanos());
        drop(to_pong);
        Ok(())
    })
}

fn pass(from: &mut PipeReader, to: &mut PipeWriter) -> std::io::Result<()> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    to.write_all(&byte)
}
