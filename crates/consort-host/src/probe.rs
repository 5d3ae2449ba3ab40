//! Probing: which CPUs share a core, a level-2 cache, a last-level cache.
//!
//! Threads of this process run on pairs of CPUs, each bound to one, so nothing is left running or
//! bound when the process ends. First a cache line travels between the CPUs of every pair; then two
//! copies of each kernel run on the nearest pairs: alone, together, alone, run after run. The speed
//! of a host may change by half between minutes, so only slices which follow each other are
//! compared. `consort_core::sharing` infers the groups from the measurements.

use crate::crew::kernels::{
    KernelSeat, KernelThreads, SharedKernel, SliceWork, build_kernel, check_kernel, join_thread,
    pin_thread, start_thread,
};
use anyhow::Result;
use consort_core::sharing::{PairEvidence, Stress, StressEffect};
use consort_core::stats::{ConfidenceInterval, RatioInterval};
use consort_core::{PuId, PuSet};
use consort_kernels::KernelSetup;
use consort_kernels::caches::CacheSizes;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The kernel for each stress.
const KERNELS: [(Stress, &str); 5] = [
    (Stress::Int, "alu"),
    (Stress::Fp, "fp"),
    (Stress::L1, "l1"),
    (Stress::L2, "l2"),
    (Stress::Memory, "dram"),
];

/// A last-level cache counts as at most this large, bytes: the memory kernels then take 64 MiB
/// each, which small virtual machines have.
const LLC_BYTES: usize = 16 << 20;

/// Time from an order to its begin, so that two threads begin together.
const NOTICE: Duration = Duration::from_micros(200);

/// Share of a slice that a thread must have had its CPU for. Two such threads were together for at
/// least 0.7 of it, so that a slowdown of 1.3 still shows as 1.2.
const MIN_CPU_SHARE: f64 = 0.85;

/// Runs that are tried at most for each that is wanted, and time that is taken at most for them.
const TRIES: usize = 2;

/// Numbers of runs of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeRuns {
    /// Runs that count.
    pub good: usize,
    /// Runs that do not count, because other programs had the CPUs while both threads should have
    /// run.
    pub disturbed: usize,
}

/// Results of a probe.
#[derive(Clone, Debug)]
pub struct ProbeMeasurement {
    /// Measurements by pair, sorted.
    pub evidence: Vec<PairEvidence>,
    /// Time for the whole, s.
    pub seconds: f64,
    /// Numbers of runs of kernels.
    pub runs: ProbeRuns,
}

/// Measures line transfers of as many pairs as the budget allows; `progress` receives the pairs
/// done and their total.
///
/// # Errors
/// A thread that cannot be started or bound to its CPU.
pub fn measure_lines(
    pus: &PuSet,
    budget: &ProbeBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<PairEvidence>> {
    let pus: Vec<PuId> = pus.iter().collect();
    let mut evidence = Vec::new();
    for (done, (a, b)) in order_pairs(&pus).into_iter().take(budget.lines).enumerate() {
        progress(done, budget.lines);
        evidence.push(PairEvidence {
            a,
            b,
            effects: Vec::new(),
            round_trip_ns: measure_round_trip_ns(a, b)?,
        });
    }
    Ok(evidence)
}

/// Adds the slowdowns of kernels to as many pairs as the budget allows, and sorts all pairs.
///
/// # Errors
/// A kernel that cannot be built or computes a wrong result, a thread that cannot be started or
/// bound.
pub fn measure_slowdowns(
    evidence: &mut [PairEvidence],
    budget: &ProbeBudget,
    progress: &dyn Fn(usize, usize),
) -> Result<ProbeRuns> {
    let mut total = ProbeRuns::default();
    if budget.kernels > 0 {
        // Nearest first: if pairs have to be left out, then those least likely to be siblings.
        let round_trip = |pair: &PairEvidence| pair.round_trip_ns.map_or(f64::INFINITY, |t| t.mean);
        evidence.sort_by(|a, b| round_trip(a).total_cmp(&round_trip(b)));
        let kernels = build_kernels()?;
        let slice = Duration::from_millis(budget.slice_ms);
        for (done, pair) in evidence.iter_mut().take(budget.kernels).enumerate() {
            progress(done, budget.kernels);
            let runs = run_kernels([pair.a, pair.b], &kernels, budget.runs, slice)?;
            for (&(stress, _), runs) in KERNELS.iter().zip(&runs) {
                total.good += runs.slowdowns.len();
                total.disturbed += runs.disturbed;
                let slowdown = RatioInterval::from_ratios(&runs.slowdowns);
                pair.effects
                    .extend(slowdown.map(|slowdown| StressEffect { stress, slowdown }));
            }
        }
        for (copies, (_, name)) in kernels.iter().zip(KERNELS) {
            for kernel in copies {
                check_kernel(name, kernel)?;
            }
        }
    }
    evidence.sort_by_key(|pair| (pair.a, pair.b));
    Ok(total)
}

/// Builds two copies of every kernel, one for each CPU.
fn build_kernels() -> Result<Vec<[SharedKernel; 2]>> {
    let sizes = CacheSizes::read(Path::new("/"));
    // A kernel takes half of the cache that it is built for. Half as large again, it takes three
    // quarters, so that two copies do not fit into a shared cache.
    let setup = KernelSetup {
        caches: CacheSizes {
            l1d_bytes: sizes.l1d_bytes * 3 / 2,
            l2_bytes: sizes.l2_bytes * 3 / 2,
            llc_bytes: sizes.llc_bytes.min(LLC_BYTES),
        },
        ..KernelSetup::default()
    };
    let mut kernels = Vec::new();
    for (_, name) in KERNELS {
        kernels.push([build_kernel(name, &setup)?, build_kernel(name, &setup)?]);
    }
    Ok(kernels)
}

/// Runs of one kernel on one pair.
#[derive(Debug, Default)]
struct KernelSlowdowns {
    /// Time together over time alone for the same work, geometric mean of the two threads.
    slowdowns: Vec<f64>,
    disturbed: usize,
}

fn run_kernels(
    pus: [PuId; 2],
    kernels: &[[SharedKernel; 2]],
    runs: usize,
    slice: Duration,
) -> Result<Vec<KernelSlowdowns>> {
    let seats = [0, 1].map(|slot| KernelSeat {
        pu: pus[slot],
        kernels: kernels.iter().map(|copies| &copies[slot]).collect(),
    });
    KernelThreads::run(&seats, |threads| {
        let kernels = 0..kernels.len();
        kernels
            .map(|kernel| run_kernel(kernel, threads, runs, slice))
            .collect()
    })
}

fn run_kernel(
    kernel: usize,
    threads: &KernelThreads,
    runs: usize,
    slice: Duration,
) -> Result<KernelSlowdowns> {
    let mut all = KernelSlowdowns::default();
    let mut tries = 0;
    let begin = Instant::now();
    let limit = slice * (TRIES * runs * SLICES) as u32;
    // Not counted: caches are cold.
    threads.run_slice(&[0, 1], kernel, slice / 2, NOTICE)?;
    while all.slowdowns.len() < runs && tries < TRIES * runs && begin.elapsed() < limit {
        // The order changes from run to run, so that a drift affects both alike.
        let (first, second) = (tries % 2, 1 - tries % 2);
        let a = threads.run_slice(&[first], kernel, slice, NOTICE)?;
        let both = threads.run_slice(&[first, second], kernel, slice, NOTICE)?;
        let b = threads.run_slice(&[second], kernel, slice, NOTICE)?;
        match slowdown(&[a[0], b[0]], &both).filter(|_| have_overlapped(&both)) {
            Some(slowdown) => all.slowdowns.push(slowdown),
            None => all.disturbed += 1,
        }
        tries += 1;
    }
    Ok(all)
}

/// True if threads had their CPUs for most of a slice, and so at the same time.
fn have_overlapped(both: &[SliceWork]) -> bool {
    both.iter()
        .all(|work| work.cpu_ns as f64 >= MIN_CPU_SHARE * work.wall_ns as f64)
}

fn slowdown(alone: &[SliceWork], together: &[SliceWork]) -> Option<f64> {
    let ratios = alone.iter().zip(together);
    let ratios = ratios.map(|(alone, together)| Some(alone.speed()? / together.speed()?));
    let product: Option<f64> = ratios.product();
    product.map(f64::sqrt)
}

/// Share of the time for line transfers; the rest is for kernels.
const LINE_SHARE: f64 = 0.2;
/// Time that the line transfers of a pair take at most, as a rule.
const LINE_TIME: Duration = Duration::from_millis(5);
/// Slices in a run: one thread alone, both, the other alone.
const SLICES: usize = 3;
/// Runs and length of a slice, ms, the best first. 5 ms is a hundred units of work or more; in
/// slices beyond a few ms, other programs that want the CPUs get them most of the time.
const CHOICES: [(usize, u64); 4] = [(40, 8), (20, 5), (10, 5), (6, 5)];

/// Measurements that fit into a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeBudget {
    /// Pairs of the chosen CPUs.
    pub pairs: usize,
    /// Pairs whose line transfers are measured.
    pub lines: usize,
    /// Pairs on which kernels are run; at most `lines`.
    pub kernels: usize,
    /// Runs of every kernel on a pair.
    pub runs: usize,
    /// Length of a slice, ms.
    pub slice_ms: u64,
}

impl ProbeBudget {
    /// Returns the budget for `pus` CPUs: at least one pair, if there is one, whatever the time.
    #[must_use]
    pub fn new(pus: usize, time: Duration) -> Self {
        let pairs = pus * pus.saturating_sub(1) / 2;
        let lines = count_fitting(time.mul_f64(LINE_SHARE), LINE_TIME).max(1);
        let kernel_time = time.mul_f64(1.0 - LINE_SHARE);
        // The first choice with which every pair has its turn, or else the cheapest.
        let (mut runs, mut slice_ms, mut kernels) = (0, 0, 0);
        for choice in CHOICES {
            (runs, slice_ms) = choice;
            let slices = (Stress::ALL.len() * runs * SLICES) as u64;
            kernels = count_fitting(kernel_time, Duration::from_millis(slices * slice_ms));
            if kernels >= pairs {
                break;
            }
        }
        let lines = lines.min(pairs);
        Self {
            pairs,
            lines,
            kernels: kernels.max(1).min(lines),
            runs,
            slice_ms,
        }
    }
}

fn count_fitting(time: Duration, each: Duration) -> usize {
    (time.as_nanos() / each.as_nanos()) as usize
}

/// All pairs of these CPUs, those first that share a core under the usual numberings: neighbours,
/// and CPUs half the machine apart.
fn order_pairs(pus: &[PuId]) -> Vec<(PuId, PuId)> {
    let n = pus.len();
    let usual = [1, n / 2];
    let others = (1..n).filter(|distance| !usual.contains(distance));
    let mut distances: Vec<usize> = usual.into_iter().filter(|d| *d > 0).chain(others).collect();
    // With two or three CPUs, half the machine apart is next to each other.
    distances.dedup();
    let mut pairs = Vec::new();
    for distance in distances {
        for i in 0..n.saturating_sub(distance) {
            pairs.push((pus[i], pus[i + distance]));
        }
    }
    pairs
}

/// Runs of a pair; each gives its fastest batch, which no interrupt has hit.
const RUNS: usize = 8;
const BATCHES: usize = 8;
const TRIPS: u64 = 100;
/// Time after which an unfinished measurement is given up: others have the CPUs.
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

/// Measures round trips between two CPUs, ns; `None` if other threads kept the CPUs busy.
fn measure_round_trip_ns(a: PuId, b: PuId) -> Result<Option<ConfidenceInterval>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn work(units: u64, cpu_ns: u64, wall_ns: u64) -> SliceWork {
        SliceWork {
            tid: 0,
            units,
            cpu_ns,
            wall_ns,
        }
    }

    #[test]
    fn same_work_in_twice_the_time_is_two() {
        let alone = [work(100, 10, 10), work(50, 10, 10)];
        let together = [work(50, 10, 10), work(25, 10, 10)];
        assert!((slowdown(&alone, &together).unwrap() - 2.0).abs() < 1e-12);
        // A thread that did not get its CPU gives no slowdown.
        assert_eq!(slowdown(&alone, &[work(50, 10, 10), work(0, 0, 0)]), None);
    }

    #[test]
    fn delayed_threads_have_not_overlapped() {
        assert!(have_overlapped(&[work(1, 90, 100), work(1, 99, 100)]));
        assert!(!have_overlapped(&[work(1, 90, 100), work(1, 50, 100)]));
    }

    #[test]
    fn more_time_buys_runs_then_pairs() {
        let budget = |pus, seconds| ProbeBudget::new(pus, Duration::from_secs(seconds));
        let extent = |b: ProbeBudget| (b.runs, b.slice_ms, b.kernels);
        assert_eq!(extent(budget(2, 30)), (40, 8, 1));
        assert_eq!(extent(budget(2, 3)), (20, 5, 1));
        assert_eq!(extent(budget(4, 30)), (20, 5, 6));
        let large = budget(64, 30);
        assert_eq!((large.pairs, large.lines, large.kernels), (2016, 1200, 53));
        assert_eq!(budget(1, 30).kernels, 0);
    }

    #[test]
    fn usual_siblings_come_first() {
        let pus: Vec<PuId> = (0..4).map(PuId).collect();
        let pairs = order_pairs(&pus);
        let first: Vec<(u32, u32)> = pairs.iter().map(|(a, b)| (a.0, b.0)).collect();
        assert_eq!(first, [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)]);
    }

    proptest! {
        #[test]
        fn every_pair_comes_once(n in 0u32..40) {
            let pus: Vec<PuId> = (0..n).map(|pu| PuId(3 * pu)).collect();
            let pairs = order_pairs(&pus);
            let all: BTreeSet<_> = pairs.iter().copied().collect();
            prop_assert_eq!(all.len(), pairs.len());
            prop_assert_eq!(pairs.len(), (n * n.saturating_sub(1) / 2) as usize);
            prop_assert!(pairs.iter().all(|(a, b)| a < b));
        }

        #[test]
        fn budget_never_exceeds_the_pairs(pus in 0usize..600, ms in 1u64..100_000) {
            let budget = ProbeBudget::new(pus, Duration::from_millis(ms));
            prop_assert!(budget.kernels <= budget.lines && budget.lines <= budget.pairs);
            prop_assert!(budget.pairs == 0 || budget.kernels > 0);
        }
    }
}
