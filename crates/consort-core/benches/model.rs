//! Time of the interference model, in both directions: `cargo bench -p consort-core --bench model`.
//!
//! The whole decision of one slice may take 1 ms for 80 threads on 40 cores and 20 ms for 1,024
//! threads on 512 cores; the matching needs most of that, so the costs of all pairs aim below 3 ms.

#![expect(clippy::unwrap_used, reason = "a bench may fail loudly")]

use consort_core::ThreadId;
use consort_core::model::{ComponentParameters, Corrections, LevelParameters, PairSlowdowns};
use consort_core::policy::PolicyRng;
use divan::Bencher;
use rand::{RngExt, SeedableRng};

const COMPONENTS: usize = 5;
const THREADS: &[usize] = &[80, 1_024];

fn main() {
    divan::main();
}

/// Every component has all four coefficients, which is the most work.
fn level(ways: u32) -> LevelParameters {
    let one = |i: usize| ComponentParameters {
        alpha: 0.01,
        beta: 1.0 + 0.1 * i as f64,
        gamma: 0.05,
        delta: 0.3 - 0.1 * i as f64 + 0.01,
    };
    LevelParameters::new(ways, (0..COMPONENTS).map(one).collect()).unwrap()
}

fn stacks(threads: usize) -> Vec<f64> {
    let mut rng = PolicyRng::seed_from_u64(1);
    let mut stacks: Vec<f64> = (0..threads * COMPONENTS).map(|_| rng.random()).collect();
    for stack in stacks.chunks_exact_mut(COMPONENTS) {
        let sum: f64 = stack.iter().sum();
        stack.iter_mut().for_each(|share| *share /= sum);
    }
    stacks
}

fn ids(threads: usize) -> Vec<ThreadId> {
    let id = |tid| ThreadId {
        pid: 1,
        tid: tid as u32,
        start_ticks: 0,
    };
    (0..threads).map(id).collect()
}

/// The stacks of one core after another, as they would be measured.
fn measured(level: &LevelParameters, stacks: &[f64]) -> Vec<f64> {
    let mut all = Vec::new();
    for core in stacks.chunks_exact(COMPONENTS * level.ways() as usize) {
        for own in core.chunks_exact(COMPONENTS) {
            let others: Vec<f64> = (0..COMPONENTS)
                .map(|c| core.iter().skip(c).step_by(COMPONENTS).sum::<f64>() - own[c])
                .collect();
            let mut together = vec![0.0; COMPONENTS];
            level.predict_stack(own, &others, &mut together);
            all.extend(together);
        }
    }
    all
}

/// The costs of all pairs, row by row.
fn costs(pairs: &mut PairSlowdowns, row: &mut [f64]) -> f64 {
    let threads = pairs.threads();
    let of_first = |first: usize| {
        let row = &mut row[first + 1..];
        pairs.fill_costs_after(first, |slowdown| slowdown, row);
        row.iter().fold(0.0, |most: f64, cost| most.max(*cost))
    };
    (0..threads).map(of_first).fold(0.0, f64::max)
}

#[divan::bench(args = THREADS)]
fn costs_of_all_pairs(bencher: Bencher<'_, '_>, threads: usize) {
    let (level, stacks) = (level(2), stacks(threads));
    let (mut pairs, mut row) = (PairSlowdowns::default(), vec![0.0; threads]);
    bencher.bench_local(|| {
        let filled = level.pairs_into(divan::black_box(&stacks), &mut pairs);
        filled.map(|()| costs(&mut pairs, &mut row))
    });
}

/// All pairs have been seen, which is the most work.
#[divan::bench(args = THREADS)]
fn corrected_costs_of_all_pairs(bencher: Bencher<'_, '_>, threads: usize) {
    let (level, ids) = (level(2), ids(threads));
    let mut pairs = level.pairs(&stacks(threads)).unwrap();
    let mut row = vec![0.0; threads];
    let mut corrections = Corrections::default();
    for thread in &ids {
        corrections.update(*thread, &ids, 1.0, 1.0);
    }
    bencher.bench_local(|| {
        corrections.apply(divan::black_box(&ids), &mut pairs);
        costs(&mut pairs, &mut row)
    });
}

/// All cores of a machine: 1,024 threads are on 512 cores in SMT2.
fn invert(bencher: Bencher<'_, '_>, ways: u32, threads: usize) {
    let level = level(ways);
    let measured = measured(&level, &stacks(threads));
    let cores = || measured.chunks_exact(COMPONENTS * ways as usize);
    bencher.bench_local(|| {
        cores()
            .map(|core| {
                let stacks: Vec<&[f64]> = core.chunks_exact(COMPONENTS).collect();
                level.invert(&stacks).unwrap().sensitivity()
            })
            .fold(0.0, f64::max)
    });
}

#[divan::bench(args = THREADS)]
fn inverse_smt2(bencher: Bencher<'_, '_>, threads: usize) {
    invert(bencher, 2, threads);
}

#[divan::bench(args = THREADS)]
fn inverse_smt4(bencher: Bencher<'_, '_>, threads: usize) {
    invert(bencher, 4, threads);
}
