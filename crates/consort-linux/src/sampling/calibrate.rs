//! Measurement of the CPU time that one sample takes on this host.
//!
//! A sample is a timer interrupt. On bare metal that is a microsecond or two; in
//! a virtual machine setting the timer and taking the interrupt leave the guest
//! (18 microseconds on a 2-PU virtual machine, by `examples/sampling_cost.rs`).
//! So the rate that keeps within a share of the CPU time differs by ten between
//! hosts, and is measured rather than assumed.

use super::config::SamplerConfig;
use super::feed::{RecordBatch, RingFeed};
use super::switching::{clone_cost_ns, switch_cost_ns};
use super::thinning::Thinning;
use crate::perf::attr::FollowMode;
use crate::perf::{PerfError, PerfTarget, max_sample_rate_hz};
use consort_core::{PuId, PuSet};
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// Share of the managed threads' CPU time that samples may take, of the one percent that all of
/// Consort may. By pairs of runs a sample costs a fifth more than measured here, where the kernel's
/// code stays in the caches.
const SAMPLES_SHARE: f64 = 0.0035;
/// Lowest rate worth having: a window of samples in two seconds.
const MIN_RATE_HZ: u64 = 97;
/// Rate at which the cost is measured, where the host permits it; prime.
const TRIAL_HZ: u64 = 19_997;
/// Number of slices with and without sampling each, in turn. The fastest of each counts, since
/// disturbances only ever add.
const TRIALS: usize = 4;
/// CPU time of a slice, about.
const SLICE: Duration = Duration::from_micros(400);
/// Steps of a probe, which shows the number of steps that fill a slice: a build without
/// optimisation takes ten times as long for a step as one with, and an emulated PU a hundred times.
const PROBE_STEPS: u64 = 5_000;
/// Most work of a slice, in probes.
const MAX_PROBES: u128 = 400;
const RING_BYTES: usize = 16 << 10;
/// Most PUs on which the cost of clones is measured; it grows with their number.
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
        sampled = sampled.min(run_sampled_slice(steps, rate_hz)?);
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

/// CPU time that inherited events on these PUs add to the start and end of a thread, ns.
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

fn run_sampled_slice(steps: u64, rate_hz: u64) -> Result<Duration, PerfError> {
    let own = PerfTarget::Thread { tid: 0 };
    let mut feed = RingFeed::open(own, FollowMode::Thread, rate_hz, RING_BYTES, 0)?;
    let time = run_slice(steps);
    feed.drain(&mut RecordBatch::default(), &mut Thinning::new(u64::MAX));
    Ok(time)
}

fn run_slice(steps: u64) -> Duration {
    let start = cpu_time();
    let step = |sum: u64, n| black_box(sum.wrapping_mul(31).wrapping_add(n));
    black_box((0..steps).fold(1, step));
    cpu_time().saturating_sub(start)
}

/// CPU time of the calling thread; unlike the time of day it stands still while
/// the thread is preempted.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(Duration::ZERO, Duration::from)
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
