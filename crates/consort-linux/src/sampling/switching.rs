//! Measurement of what events cost when threads are switched and cloned on this host.
//!
//! An event on a thread is taken off and put on at each switch, and cloned with the thread. In a
//! virtual machine that takes up to 14 microseconds, as the timer is set anew each time.

use crate::perf::PerfError;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// Number of bytes that two threads send each other in a trial.
const ROUNDS: u32 = 60;
/// Number of switches per round: one to each thread.
const SWITCHES: u32 = 2;
/// Number of threads that a trial starts.
const CLONES: u32 = 12;
/// Number of trials with and without events each, in turn. The fastest of each counts, since
/// disturbances only ever add.
const TRIALS: usize = 4;

/// CPU time that the events which `open` opens on the calling thread add to a switch, ns.
///
/// # Errors
/// When the events cannot be opened.
pub(crate) fn switch_cost_ns<E>(
    open: impl Fn() -> Result<E, PerfError> + Sync,
) -> Result<u64, PerfError> {
    open()?;
    let extra = extra_cpu_time(|with| exchange(with.then_some(&open)));
    Ok(nanos_per(extra, ROUNDS * SWITCHES))
}

/// CPU time that the inherited events which `open` opens on the calling thread add to the start and
/// the end of a thread, ns.
///
/// # Errors
/// When the events cannot be opened.
pub(crate) fn clone_cost_ns<E>(
    open: impl Fn() -> Result<E, PerfError> + Sync,
) -> Result<u64, PerfError> {
    open()?;
    let extra = extra_cpu_time(|with| start_threads(with.then_some(&open)));
    Ok(nanos_per(extra, CLONES))
}

/// CPU time that events add to a trial.
fn extra_cpu_time(trial: impl Fn(bool) -> Duration) -> Duration {
    let mut fastest = [Duration::MAX; 2];
    for _ in 0..TRIALS {
        for (with, least) in [false, true].into_iter().zip(&mut fastest) {
            *least = trial(with).min(*least);
        }
    }
    fastest[1].saturating_sub(fastest[0])
}

fn nanos_per(time: Duration, count: u32) -> u64 {
    u64::try_from((time / count).as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of two threads on one PU that wake each other in turn.
fn exchange<E>(open: Option<&(impl Fn() -> Result<E, PerfError> + Sync)>) -> Duration {
    let Ok((one, other)) = UnixStream::pair() else {
        return Duration::MAX;
    };
    let pu = nix::sched::sched_getcpu().ok();
    let side = |mut stream: UnixStream, is_first: bool| {
        move || {
            stay_on(pu);
            // Held to the end of the exchange.
            let _events = open.map(|open| open().ok());
            let mut byte = [0];
            // One byte each way, so that both have their events before either is measured.
            let mut pass = |rounds| {
                for _ in 0..rounds {
                    let is_done = match is_first {
                        true => stream
                            .write_all(&byte)
                            .and_then(|()| stream.read_exact(&mut byte)),
                        false => stream
                            .read_exact(&mut byte)
                            .and_then(|()| stream.write_all(&byte)),
                    };
                    if is_done.is_err() {
                        return;
                    }
                }
            };
            pass(1);
            let before = cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID);
            pass(ROUNDS);
            cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(before)
        }
    };
    thread::scope(|scope| {
        let sides = [(one, true), (other, false)];
        let threads = sides.map(|(stream, is_first)| scope.spawn(side(stream, is_first)));
        threads.into_iter().filter_map(|t| t.join().ok()).sum()
    })
}

/// CPU time of a thread and of the threads that it starts one after the other.
fn start_threads<E>(open: Option<&(impl Fn() -> Result<E, PerfError> + Sync)>) -> Duration {
    let starter = || {
        let _events = open.map(|open| open().ok());
        let before = cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID);
        for _ in 0..CLONES {
            // A thread that cannot be started costs nothing.
            let _ = thread::Builder::new()
                .spawn(|| ())
                .map(thread::JoinHandle::join);
        }
        cpu_time(ClockId::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(before)
    };
    thread::scope(|scope| scope.spawn(starter).join().unwrap_or(Duration::MAX))
}

fn stay_on(pu: Option<usize>) {
    let mut mask = CpuSet::new();
    if pu.is_some_and(|pu| mask.set(pu).is_ok()) {
        // Where it is refused, fewer switches are measured.
        let _ = sched_setaffinity(Pid::from_raw(0), &mask);
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_costs_a_fraction_of_a_switch() {
        let nothing = || Ok::<(), PerfError>(());
        // A switch takes 1 to 5 us; what differs is chance.
        assert!(switch_cost_ns(nothing).unwrap() < 5_000);
    }

    #[test]
    fn events_that_cannot_be_opened_have_no_cost() {
        let never = || Err::<(), PerfError>(PerfError::NotPermitted);
        assert_eq!(switch_cost_ns(never), Err(PerfError::NotPermitted));
        assert_eq!(clone_cost_ns(never), Err(PerfError::NotPermitted));
    }
}
