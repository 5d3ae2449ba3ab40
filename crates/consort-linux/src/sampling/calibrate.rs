//! Measurement of the CPU time that one sample takes on this host, and of what events cost when threads
//! are switched and cloned.
//!
//! A sample is a timer interrupt. On bare metal that is a microsecond or two; in a virtual machine
//! setting the timer and taking the interrupt leave the guest (18 microseconds on a 2-CPU virtual
//! machine, by `examples/sampling_cost.rs`). So the rate that keeps within a share of the CPU time
//! differs by ten between hosts, and is measured rather than assumed.

use super::budget::Thinning;
use super::config::SamplerConfig;
use super::feed::{RecordBatch, RingFeed};
use crate::perf::FollowMode;
use crate::perf::{PerfError, PerfTarget, max_sample_rate_hz};
use consort_core::{PuId, PuSet};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Share of the managed threads' CPU time that samples may take, of the one percent that all of
/// Consort may. By pairs of runs a sample costs a fifth more than measured here, where the kernel's
/// code stays in the caches.
const SAMPLES_SHARE: f64 = 0.0035;
/// Lowest rate worth having: a window of samples in two seconds.
const MIN_RATE_HZ: u64 = 97;
/// Rate at which the cost is measured, where the host permits it; prime.
const TRIAL_HZ: u64 = 19_997;
/// Number of trials with and without events each, in turn. The fastest of each counts, since
/// disturbances only ever add.
const TRIALS: usize = 4;
/// CPU time of a slice, about.
const SLICE: Duration = Duration::from_micros(400);
/// Steps of a probe, which shows the number of steps that fill a slice: a build without
/// optimisation takes ten times as long for a step as one with, and an emulated CPU a hundred
/// times.
const PROBE_STEPS: u64 = 5_000;
/// Most work of a slice, in probes.
const MAX_PROBES: u128 = 400;
const RING_BYTES: usize = 16 << 10;
/// Most CPUs on which the cost of clones is measured; it grows with their number.
const MOST_CLONED: usize = 8;

/// CPU time that one sample takes from the thread it hits, ns; measured on the
/// calling thread in about 3 ms of its CPU time. `root` is where `/proc` is mounted.
///
/// # Errors
/// When this host does not let the caller sample itself.
pub fn sample_cost_ns(root: &Path) -> Result<u64, PerfError> {
    let rate_hz = max_sample_rate_hz(root).map_or(TRIAL_HZ, |most| most.clamp(1, TRIAL_HZ));
    let steps = steps();
    let mut plain = Duration::MAX;
    let mut sampled = Duration::MAX;
    for _ in 0..TRIALS {
        plain = plain.min(run_slice(steps));
        let own = PerfTarget::Thread { tid: 0 };
        let mut feed = RingFeed::open(own, FollowMode::Thread, rate_hz, RING_BYTES, 0)?;
        sampled = sampled.min(run_slice(steps));
        // Emptied after the measurement, so that reading the ring is not measured.
        feed.drain(&mut RecordBatch::default(), &mut Thinning::new(u64::MAX));
    }
    let extra_ns = sampled.saturating_sub(plain).as_nanos() as f64;
    let samples = sampled.as_secs_f64() * rate_hz as f64;
    Ok((extra_ns / samples) as u64)
}

/// CPU time that the events of one thread add to a switch of it, ns.
///
/// # Errors
/// When this host does not let the caller sample itself.
pub(crate) fn sampling_switch_ns(rate_hz: u64) -> Result<u64, PerfError> {
    let own = PerfTarget::Thread { tid: 0 };
    switch_cost_ns(|| RingFeed::open(own, FollowMode::Thread, rate_hz, RING_BYTES, 0))
}

/// CPU time that inherited events on these CPUs add to the start and end of a thread, ns.
///
/// # Errors
/// When this host does not let the caller sample itself.
pub(crate) fn sampling_clone_ns(rate_hz: u64, pus: &PuSet) -> Result<u64, PerfError> {
    let tried: Vec<PuId> = pus.iter().take(MOST_CLONED).collect();
    let open = |pu: &PuId| {
        let target = PerfTarget::ThreadOnPu { tid: 0, pu: pu.0 };
        RingFeed::open(target, FollowMode::Offspring, rate_hz, RING_BYTES, 0)
    };
    let cost_ns = clone_cost_ns(|| tried.iter().map(open).collect::<Result<Vec<_>, _>>())?;
    Ok(cost_ns * pus.len() as u64 / tried.len().max(1) as u64)
}

impl SamplerConfig {
    /// This configuration with its rates lowered, if need be, so that samples of
    /// `cost_ns` each take no more than 0.35 percent of the sampled threads' CPU
    /// time, and twice that at the start.
    #[must_use]
    pub fn for_cost(self, cost_ns: u64) -> Self {
        let affordable = SAMPLES_SHARE * 1e9 / cost_ns.max(1) as f64;
        let affordable = (affordable as u64).max(MIN_RATE_HZ);
        Self {
            rate_hz: self.rate_hz.min(affordable),
            burst_hz: self.burst_hz.min(affordable),
            ..self
        }
        .with_distinct_rates()
    }
}

/// Number of steps that fill a slice, after the fastest of some probes.
fn steps() -> u64 {
    let probes = (0..TRIALS).map(|_| run_slice(PROBE_STEPS));
    let fastest_ns = probes.map(|probe| probe.as_nanos()).min().unwrap_or(0);
    let fitting = SLICE.as_nanos() / fastest_ns.max(1);
    // Within 1 and `MAX_PROBES`, so it fits.
    PROBE_STEPS * fitting.clamp(1, MAX_PROBES) as u64
}

fn run_slice(steps: u64) -> Duration {
    let start = cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID);
    let step = |sum: u64, n| black_box(sum.wrapping_mul(31).wrapping_add(n));
    black_box((0..steps).fold(1, step));
    cpu_time(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(start)
}

// An event on a thread is taken off and put on at each switch, and cloned with the thread. In a
// virtual machine that takes up to 14 microseconds, as the timer is set anew each time.

/// Number of bytes that two threads send each other in a trial.
const ROUNDS: u32 = 60;
/// Number of switches per round: one to each thread.
const SWITCHES: u32 = 2;
/// Number of threads that a trial starts.
const CLONES: u32 = 12;
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

/// CPU time of two threads on one CPU that wake each other in turn.
fn exchange<E>(open: Option<&(impl Fn() -> Result<E, PerfError> + Sync)>) -> Duration {
    let Ok((one, other)) = UnixStream::pair() else {
        return Duration::MAX;
    };
    let pu = nix::sched::sched_getcpu().ok();
    let side = |mut stream: UnixStream, is_first: bool| {
        move || {
            let mut mask = CpuSet::new();
            if pu.is_some_and(|pu| mask.set(pu).is_ok()) {
                // If the kernel refuses, fewer switches are measured.
                let _ = sched_setaffinity(Pid::from_raw(0), &mask);
            }
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

/// CPU time, which stands still while the thread is preempted, unlike the time of day.
fn cpu_time(clock: ClockId) -> Duration {
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skipped;

    #[test]
    fn dear_samples_are_taken_less_often() {
        let rates = [1_000, 10_000, 20_000, 1_000_000].map(|cost_ns| {
            let config = SamplerConfig::default().for_cost(cost_ns);
            config.rate_hz
        });
        assert_eq!(rates, [499, 350, 175, MIN_RATE_HZ]);
        let dear = SamplerConfig::default().for_cost(20_000);
        assert_eq!((dear.rate_hz, dear.burst_hz), (175, 108));
    }

    #[test]
    fn a_slice_has_work_whatever_the_speed() {
        let steps = steps();
        assert!((PROBE_STEPS..=PROBE_STEPS * MAX_PROBES as u64).contains(&steps));
    }

    #[test]
    fn the_cost_is_measurable_where_sampling_is_allowed() {
        match sample_cost_ns(Path::new("/")) {
            // No host takes a millisecond per interrupt.
            Ok(cost_ns) => assert!(cost_ns < 1_000_000, "{cost_ns}"),
            Err(error) => skipped(error),
        }
    }
}

#[cfg(test)]
mod switching_tests {
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
