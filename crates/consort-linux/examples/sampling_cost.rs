//! Cost of sampling on this host, measured.
//!
//! Usage: `cargo run --release -p consort-linux --example sampling_cost`.
//! Prints: the slowdown of a busy thread by sampling at several rates (slices
//! with and without sampling in turn, medians of the ratios of neighbours); the
//! sampler's own time per sample and per thread start; its memory. All times are CPU times of the thread.

use consort_core::PuSet;
use consort_linux::discovery::ThreadTracker;
use consort_linux::sampling::{
    SampleProfiler, Sampler, SamplerConfig, SamplingScope, sample_cost_ns,
};
use nix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Number of pairs of slices per rate.
const PAIRS: usize = 120;
/// Steps of one slice: about 25 ms of dependent integer arithmetic.
const SLICE_STEPS: u64 = 20_000_000;

fn main() -> Outcome<()> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let pus: PuSet = online.trim().parse()?;
    println!(
        "one sample: {} ns by the built-in calibration",
        sample_cost_ns(Path::new("/"))?
    );
    for rate_hz in [499, 1_998, 9_973] {
        slowdown(&pus, rate_hz)?;
    }
    own_cost_of_samples(&pus)?;
    own_cost_of_starts(&pus)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let memory = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{}", memory.unwrap_or_default());
    Ok(())
}

fn at_rate(rate_hz: u64) -> SamplerConfig {
    SamplerConfig {
        rate_hz,
        max_samples_per_s: u64::MAX,
        reach: SamplingScope::Own,
        ..SamplerConfig::default()
    }
}

fn attach(pus: &PuSet, config: SamplerConfig) -> Outcome<Sampler> {
    let own = std::process::id();
    Ok(Sampler::attach_process(Path::new("/"), own, pus, config)?)
}

/// CPU time of this thread, which being preempted does not lengthen.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(Duration::ZERO, Duration::from)
}

/// The time of a fixed amount of work, s.
fn slice() -> f64 {
    let start = cpu_time();
    let steps = 0..SLICE_STEPS;
    let step = |sum: u64, n| black_box(sum.wrapping_mul(31).wrapping_add(n));
    black_box(steps.fold(1, step));
    (cpu_time() - start).as_secs_f64()
}

fn slowdown(pus: &PuSet, rate_hz: u64) -> Outcome<()> {
    let mut ratios = Vec::new();
    let mut samples = 0;
    let mut sampled_s = 0.0;
    for pair in 0..PAIRS {
        // The order alternates, because the first run may be slower.
        let before = (pair % 2 == 0).then(slice);
        let mut sampler = attach(pus, at_rate(rate_hz))?;
        let with = slice();
        samples += sampler.drain().samples();
        drop(sampler);
        let without = before.unwrap_or_else(slice);
        sampled_s += with;
        ratios.push(with / without - 1.0);
    }
    let (low, median, high) = quartiles(&mut ratios);
    let per_s = samples as f64 / sampled_s;
    println!(
        "{rate_hz} Hz: slowdown {:+.3} % (quartiles {:+.3}, {:+.3}; {PAIRS} pairs), {per_s:.0} samples/s, {:.2} us per sample",
        median * 100.0,
        low * 100.0,
        high * 100.0,
        median / per_s * 1e6,
    );
    Ok(())
}

fn quartiles(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| values[values.len() * part / 4];
    (at(1), at(2), at(3))
}

fn own_cost_of_samples(pus: &PuSet) -> Outcome<()> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..pus.len().min(8) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    slice();
                }
            });
        }
        for rate_hz in [499, 4_999] {
            let measured = own_cost(pus, rate_hz, 20);
            measured.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        stop.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// Follows this process for some rounds of 100 ms.
fn own_cost(pus: &PuSet, rate_hz: u64, rounds: u32) -> Outcome<()> {
    let mut sampler = attach(pus, at_rate(rate_hz))?;
    let mut profiler = SampleProfiler::new(Path::new("/"));
    let mut drained = Duration::ZERO;
    let mut applied = Duration::ZERO;
    let mut judged = Duration::ZERO;
    let mut samples = 0;
    for _ in 0..rounds {
        thread::sleep(Duration::from_millis(100));
        let batch = timed(&mut drained, || sampler.drain());
        timed(&mut applied, || profiler.apply(&batch));
        timed(&mut judged, || profiler.end_interval());
        samples += batch.samples();
    }
    let each = |time: Duration| time.as_secs_f64() * 1e9 / samples as f64;
    let all = drained + applied + judged;
    println!(
        "own time at {rate_hz} Hz: {samples} samples, per sample {:.0} ns to read, {:.0} ns to decode and book, {:.0} ns to judge; {:.3} % of one CPU",
        each(drained),
        each(applied),
        each(judged),
        all.as_secs_f64() / (0.1 * f64::from(rounds)) * 100.0,
    );
    Ok(())
}

fn own_cost_of_starts(pus: &PuSet) -> Outcome<()> {
    let mut sampler = attach(pus, at_rate(499))?;
    let mut discovery = ThreadTracker::new(Path::new("/"), &[std::process::id()])?;
    discovery.apply(&sampler.drain());
    let mut spent = Duration::ZERO;
    let threads = 2_000;
    for _ in 0..threads / 200 {
        for _ in 0..200 {
            thread::spawn(|| ())
                .join()
                .map_err(|_| "a thread panicked")?;
        }
        let batch = timed(&mut spent, || sampler.drain());
        timed(&mut spent, || discovery.apply(&batch));
    }
    let each = spent.as_secs_f64() * 1e9 / f64::from(threads);
    println!(
        "own time per started and ended thread: {each:.0} ns ({} counted)",
        discovery.short_lived_count()
    );
    Ok(())
}

fn timed<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = cpu_time();
    let done = work();
    *spent += cpu_time() - start;
    done
}
