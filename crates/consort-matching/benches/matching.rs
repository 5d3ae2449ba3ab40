//! Time of matchings of threads to cores: `cargo bench -p consort-matching --bench matching`.
//!
//! Costs are those of the policy `symbiotic`: sums of both slowdowns by the published POWER8
//! parameters (Feliu et al., HPCA 2016), over random cycle stacks, with corrections up to 10 percent
//! either way. `benches/rustworkx` compares the crate with rustworkx-core.

#![expect(clippy::unwrap_used, reason = "a bench may fail loudly")]

use consort_matching::{
    GroupRoom, PairCosts, Pairing, Seat, assign, group_threads, pairs, pairs_from,
};
use divan::Bencher;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Published parameters: base, fixed point, floating point, data cache misses.
const POWER8: [[f64; 4]; 4] = [
    [-0.019, 1.698, 0.0, 0.0],
    [0.009, 1.089, 0.0, -0.859],
    [0.008, 1.219, 0.0, 0.308],
    [0.031, 1.173, 0.072, 0.615],
];
const SIZES: &[usize] = &[16, 80, 256, 1_024];

fn main() {
    divan::main();
}

fn stack(rng: &mut Pcg64) -> [f64; 4] {
    let parts: [f64; 4] = std::array::from_fn(|_| rng.random::<f64>());
    let total: f64 = parts.iter().sum();
    parts.map(|part| part / total)
}

fn slowdown(own: &[f64; 4], other: &[f64; 4]) -> f64 {
    let terms = POWER8.iter().zip(own.iter().zip(other));
    terms
        .map(|([alpha, beta, gamma, delta], (c, o))| alpha + beta * c + gamma * o + delta * c * o)
        .sum()
}

fn corrected(threads: usize, stacks: &[[f64; 4]], rng: &mut Pcg64) -> PairCosts {
    PairCosts::from_fn(threads, |i, j| {
        let mut factor = || rng.random_range(0.9..1.1);
        slowdown(&stacks[i], &stacks[j]) * factor() + slowdown(&stacks[j], &stacks[i]) * factor()
    })
    .unwrap()
}

/// Costs of eight programs whose threads differ a little from their siblings: nearly everything is
/// nearly a tie.
fn similar(threads: usize, seed: u64) -> PairCosts {
    let mut rng = Pcg64::seed_from_u64(seed);
    let programs: Vec<_> = (0..8).map(|_| stack(&mut rng)).collect();
    let stacks: Vec<_> = (0..threads)
        .map(|i| programs[i % 8].map(|part| part * rng.random_range(0.99..1.01)))
        .collect();
    plain(threads, &stacks)
}

/// Costs of threads that are each a different program, without corrections.
fn smooth(threads: usize, seed: u64) -> PairCosts {
    let mut rng = Pcg64::seed_from_u64(seed);
    let stacks: Vec<_> = (0..threads).map(|_| stack(&mut rng)).collect();
    plain(threads, &stacks)
}

fn plain(threads: usize, stacks: &[[f64; 4]]) -> PairCosts {
    PairCosts::from_fn(threads, |i, j| {
        slowdown(&stacks[i], &stacks[j]) + slowdown(&stacks[j], &stacks[i])
    })
    .unwrap()
}

/// Costs of threads that are each a different program, with corrections.
fn varied(threads: usize, seed: u64) -> PairCosts {
    let mut rng = Pcg64::seed_from_u64(seed);
    let stacks: Vec<_> = (0..threads).map(|_| stack(&mut rng)).collect();
    corrected(threads, &stacks, &mut rng)
}

/// Costs of eight programs whose threads are all alike: nearly everything is a tie.
fn alike(threads: usize, seed: u64) -> PairCosts {
    let mut rng = Pcg64::seed_from_u64(seed);
    let stacks: Vec<_> = (0..8).map(|_| stack(&mut rng)).collect();
    PairCosts::from_fn(threads, |i, j| {
        let (i, j) = (stacks[i * 8 / threads], stacks[j * 8 / threads]);
        slowdown(&i, &j) + slowdown(&j, &i)
    })
    .unwrap()
}

/// Costs drawn at random, without structure.
fn noise(threads: usize, seed: u64) -> PairCosts {
    let mut rng = Pcg64::seed_from_u64(seed);
    PairCosts::from_fn(threads, |_, _| rng.random()).unwrap()
}

fn solved(costs: &PairCosts) -> Pairing {
    let threads = costs.threads();
    pairs(costs, &vec![1.0; threads], threads / 2).unwrap()
}

fn cold(bencher: Bencher<'_, '_>, make: fn(usize, u64) -> PairCosts, threads: usize) {
    let mut seed = 0;
    bencher
        .with_inputs(|| {
            seed += 1;
            make(threads, seed)
        })
        .bench_local_refs(|costs| solved(costs));
}

#[divan::bench(args = SIZES)]
fn pairs_of_varied(bencher: Bencher<'_, '_>, threads: usize) {
    cold(bencher, varied, threads);
}

#[divan::bench(args = SIZES)]
fn pairs_of_alike(bencher: Bencher<'_, '_>, threads: usize) {
    cold(bencher, alike, threads);
}

#[divan::bench(args = SIZES)]
fn pairs_of_similar(bencher: Bencher<'_, '_>, threads: usize) {
    cold(bencher, similar, threads);
}

#[divan::bench(args = SIZES)]
fn pairs_of_smooth(bencher: Bencher<'_, '_>, threads: usize) {
    cold(bencher, smooth, threads);
}

#[divan::bench(args = SIZES)]
fn pairs_of_noise(bencher: Bencher<'_, '_>, threads: usize) {
    cold(bencher, noise, threads);
}

/// The same stacks with other corrections, from the duals of the slice before.
#[divan::bench(args = SIZES)]
fn pairs_of_varied_warm(bencher: Bencher<'_, '_>, threads: usize) {
    let mut rng = Pcg64::seed_from_u64(1);
    let stacks: Vec<_> = (0..threads).map(|_| stack(&mut rng)).collect();
    let before = solved(&corrected(threads, &stacks, &mut rng));
    bencher
        .with_inputs(|| corrected(threads, &stacks, &mut rng))
        .bench_local_refs(|costs| {
            pairs_from(costs, &vec![1.0; threads], threads / 2, &before.duals).unwrap()
        });
}

/// Pairs of last slice's threads, paired anew at random.
#[divan::bench(args = SIZES)]
fn seats_of_pairs(bencher: Bencher<'_, '_>, threads: usize) {
    let mut rng = Pcg64::seed_from_u64(1);
    let seats = vec![
        Seat {
            pus: 2,
            move_cost: 1
        };
        threads / 2
    ];
    let on: Vec<Option<usize>> = (0..threads).map(|thread| Some(thread / 2)).collect();
    bencher
        .with_inputs(|| {
            let mut order: Vec<usize> = (0..threads).collect();
            order.shuffle(&mut rng);
            order.chunks(2).map(<[usize]>::to_vec).collect::<Vec<_>>()
        })
        .bench_local_refs(|groups| assign(groups, &on, &seats, |_, _| true).unwrap());
}

/// Sixteen threads on four cores of four ways.
#[divan::bench(args = [16, 80])]
fn groups_of_four(bencher: Bencher<'_, '_>, threads: usize) {
    let costs = varied(threads, 1);
    let shape = GroupRoom {
        cores: threads / 4,
        ways: 4,
        swaps: 20_000,
    };
    bencher.bench_local(|| group_threads(threads, shape, |group| crowd(&costs, group)).unwrap());
}

fn crowd(costs: &PairCosts, group: &[usize]) -> f64 {
    let pairs = group
        .iter()
        .flat_map(|&i| group.iter().map(move |&j| (i, j)));
    pairs
        .filter(|(i, j)| i < j)
        .map(|(i, j)| costs.at(i, j))
        .sum()
}
