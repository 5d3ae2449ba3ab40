//! Measurements of every pair: line transfers first, then slowdowns between kernels.

use super::budget::{ProbeBudget, pairs};
use super::line_transfer;
use super::slices::{self, KernelSlowdowns, SharedKernel};
use crate::progress;
use anyhow::{Context, Result, bail};
use consort_core::sharing::{PairEvidence, Stress, StressEffect};
use consort_core::stats::RatioInterval;
use consort_core::{PuId, PuSet};
use consort_kernels::caches::CacheSizes;
use consort_kernels::{KernelSetup, kernels};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
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

/// Results of the measurements.
pub(super) struct ProbeMeasurement {
    pub(super) evidence: Vec<PairEvidence>,
    /// Time for the whole, s.
    pub(super) seconds: f64,
    /// Runs that count, and runs that others have disturbed.
    pub(super) runs: (usize, usize),
}

/// Measures what the budget allows.
pub(super) fn measure_all(pus: &PuSet, budget: &ProbeBudget) -> Result<ProbeMeasurement> {
    let begin = Instant::now();
    let pus: Vec<PuId> = pus.iter().collect();
    let mut evidence = measure_lines(&pus, budget)?;
    // Nearest first: if some have to be left out, then those that are least likely to be siblings.
    evidence.sort_by(|a, b| transfer_ns(a).total_cmp(&transfer_ns(b)));
    let runs = add_slowdowns(&mut evidence, budget)?;
    evidence.sort_by_key(|pair| (pair.a, pair.b));
    Ok(ProbeMeasurement {
        evidence,
        seconds: begin.elapsed().as_secs_f64(),
        runs,
    })
}

fn transfer_ns(pair: &PairEvidence) -> f64 {
    pair.round_trip_ns.map_or(f64::INFINITY, |time| time.mean)
}

fn measure_lines(pus: &[PuId], budget: &ProbeBudget) -> Result<Vec<PairEvidence>> {
    let progress = progress::start_meter("line transfers");
    let mut evidence = Vec::new();
    for (done, (a, b)) in pairs(pus).into_iter().take(budget.lines).enumerate() {
        progress.set_done(done, budget.lines);
        evidence.push(PairEvidence {
            a,
            b,
            effects: Vec::new(),
            round_trip_ns: line_transfer::measure_round_trip_ns(a, b)?,
        });
    }
    progress.finish();
    Ok(evidence)
}

/// Adds the slowdowns; returns the numbers of runs that count, and of disturbed ones.
fn add_slowdowns(evidence: &mut [PairEvidence], budget: &ProbeBudget) -> Result<(usize, usize)> {
    if budget.kernels == 0 {
        return Ok((0, 0));
    }
    let kernels = build_kernels()?;
    let slice = Duration::from_millis(budget.slice_ms);
    let progress = progress::start_meter("pairs of PUs");
    let (mut good, mut disturbed) = (0, 0);
    for (done, pair) in evidence.iter_mut().take(budget.kernels).enumerate() {
        progress.set_done(done, budget.kernels);
        let runs = slices::run([pair.a, pair.b], &kernels, budget.runs, slice)?;
        good += runs.iter().map(|r| r.slowdowns.len()).sum::<usize>();
        disturbed += runs.iter().map(|r| r.disturbed).sum::<usize>();
        pair.effects = effects(&runs);
    }
    progress.finish();
    check(&kernels)?;
    Ok((good, disturbed))
}

fn effects(runs: &[KernelSlowdowns]) -> Vec<StressEffect> {
    let all = KERNELS.iter().zip(runs);
    let effect = |(&(stress, _), runs): (&(Stress, &str), &KernelSlowdowns)| {
        let slowdown = RatioInterval::from_ratios(&runs.slowdowns)?;
        Some(StressEffect { stress, slowdown })
    };
    all.filter_map(effect).collect()
}

/// Two copies of every kernel. Caches are told half as large again as they are, so that a kernel
/// for one, which takes half of what it is told, takes three quarters, and two do not fit.
fn build_kernels() -> Result<Vec<[SharedKernel; 2]>> {
    let sizes = CacheSizes::read(Path::new("/"));
    let setup = KernelSetup {
        caches: CacheSizes {
            l1d_bytes: sizes.l1d_bytes * 3 / 2,
            l2_bytes: sizes.l2_bytes * 3 / 2,
            llc_bytes: sizes.llc_bytes.min(LLC_BYTES),
        },
        ..KernelSetup::default()
    };
    let one = |name: &str| -> Result<SharedKernel> {
        let entry = kernels::find(name).with_context(|| format!("unknown kernel '{name}'"))?;
        let kernel = entry.build_one(&setup);
        Ok(Mutex::new(
            kernel.with_context(|| format!("kernel {name}"))?,
        ))
    };
    let two = |&(_, name): &(Stress, &str)| Ok([one(name)?, one(name)?]);
    KERNELS.iter().map(two).collect()
}

/// A kernel whose result is wrong has not done what its units say.
fn check(kernels: &[[SharedKernel; 2]]) -> Result<()> {
    for (kernels, (_, name)) in kernels.iter().zip(KERNELS) {
        for kernel in kernels {
            let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
            if kernel.work(0) != kernel.expected() {
                bail!("kernel {name} computed a wrong result");
            }
        }
    }
    Ok(())
}
