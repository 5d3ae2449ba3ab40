//! Probing: which PUs share a core, a level-2 cache, a last-level cache.
//!
//! Threads of this process run on pairs of PUs, each bound to one, so nothing is left running or
//! bound when the process ends. First a cache line travels between the PUs of every pair; then two
//! copies of each kernel run on the nearest pairs: alone, together, alone, run after run. The speed
//! of a host may change by half between minutes, so only slices which follow each other are
//! compared. `consort_core::sharing` infers the groups from the measurements.

mod budget;
mod line_transfer;

use crate::crew::kernels::{
    KernelSeat, KernelThreads, SharedKernel, SliceWork, build_kernel, check_kernel,
};
use anyhow::Result;
pub use budget::ProbeBudget;
use budget::{SLICES, order_pairs};
use consort_core::sharing::{PairEvidence, Stress, StressEffect};
use consort_core::stats::RatioInterval;
use consort_core::{PuId, PuSet};
use consort_kernels::KernelSetup;
use consort_kernels::caches::CacheSizes;
use line_transfer::measure_round_trip_ns;
use std::path::Path;
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

/// Share of a slice that a thread must have had its PU for. Two such threads were together for at
/// least 0.7 of it, so that a slowdown of 1.3 still shows as 1.2.
const MIN_CPU_SHARE: f64 = 0.85;

/// Runs that are tried at most for each that is wanted, and time that is taken at most for them.
const TRIES: usize = 2;

/// Numbers of runs of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeRuns {
    /// Runs that count.
    pub good: usize,
    /// Runs that do not count, because other programs had the PUs while both threads should have
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
/// A thread that cannot be started or bound to its PU.
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

/// Builds two copies of every kernel, one for each PU.
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

/// Runs every kernel on a pair.
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

/// Returns true if threads had their PUs for most of a slice, and so at the same time.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // A thread that did not get its PU gives no slowdown.
        assert_eq!(slowdown(&alone, &[work(50, 10, 10), work(0, 0, 0)]), None);
    }

    #[test]
    fn delayed_threads_have_not_overlapped() {
        assert!(have_overlapped(&[work(1, 90, 100), work(1, 99, 100)]));
        assert!(!have_overlapped(&[work(1, 90, 100), work(1, 50, 100)]));
    }
}
