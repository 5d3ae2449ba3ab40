use super::blossom::BlossomSolver;
use super::coarse;
use super::fractional::FractionalMatching;
use super::scaled_costs::ScaledCosts;
use super::*;
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// The least cost by trying every partner for every thread; being alone is allowed while cores last.
fn brute(costs: &PairCosts, alone: &[f64], free: &[usize], cores: usize) -> f64 {
    let Some((&first, rest)) = free.split_first() else {
        return 0.0;
    };
    if cores == 0 {
        return f64::INFINITY;
    }
    let mut best = alone[first] + brute(costs, alone, rest, cores - 1);
    for at in 0..rest.len() {
        let mut others = rest.to_vec();
        let second = others.remove(at);
        best = best.min(costs.at(first, second) + brute(costs, alone, &others, cores - 1));
    }
    best
}

/// Ties, zeros, losses, sizes far apart, and pairs that must not meet.
fn value(kind: usize, rng: &mut Pcg64) -> f64 {
    match kind {
        0 => f64::from(rng.random_range(0..3u8)),
        1 => f64::from(rng.random_range(-50..50i8)),
        2 => rng.random_range(1.0..4.0),
        3 => 0.0,
        4 => libm::ldexp(rng.random(), rng.random_range(-60..60)),
        _ if rng.random_bool(0.7) => f64::INFINITY,
        _ => rng.random_range(1.0..4.0),
    }
}

fn random(threads: usize, kind: usize, rng: &mut Pcg64) -> PairCosts {
    PairCosts::from_fn(threads, |_, _| value(kind, rng)).unwrap()
}

fn largest(costs: &PairCosts, alone: &[f64]) -> f64 {
    let all = costs.values().iter().chain(alone);
    all.fold(1e-300, |most: f64, cost| most.max(cost.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn exact_against_exhaustive_search(
        threads in 0usize..10, spare in 0usize..3, kind in 0usize..5, seed: u64,
    ) {
        let mut rng = Pcg64::seed_from_u64(seed);
        let costs = random(threads, kind, &mut rng);
        let alone: Vec<f64> = (0..threads).map(|_| value(kind, &mut rng)).collect();
        let cores = threads.div_ceil(2) + spare;
        let found = pairs(&costs, &alone, cores).unwrap();
        let best = brute(&costs, &alone, &(0..threads).collect::<Vec<_>>(), cores);
        prop_assert!((found.cost - best).abs() <= 1e-9 * largest(&costs, &alone), "{found:?} {best}");
        prop_assert!(found.pairs.len() <= cores);
    }

    #[test]
    fn the_order_of_threads_does_not_change_the_cost(
        half in 1usize..20, kind in 0usize..5, seed: u64,
    ) {
        let mut rng = Pcg64::seed_from_u64(seed);
        let threads = 2 * half;
        let costs = random(threads, kind, &mut rng);
        let mut order: Vec<usize> = (0..threads).collect();
        order.shuffle(&mut rng);
        let shuffled = PairCosts::from_fn(threads, |i, j| costs.at(order[i], order[j])).unwrap();
        let alone = vec![0.0; threads];
        let (one, two) = (pairs(&costs, &alone, half).unwrap(), pairs(&shuffled, &alone, half).unwrap());
        prop_assert!((one.cost - two.cost).abs() <= 1e-9 * largest(&costs, &alone));
    }

    #[test]
    fn duals_of_any_other_costs_may_start_it(half in 1usize..20, kind in 0usize..5, seed: u64) {
        let mut rng = Pcg64::seed_from_u64(seed);
        let (before, costs) = (random(2 * half, kind, &mut rng), random(2 * half, kind, &mut rng));
        let alone = vec![1.0; 2 * half];
        let duals = pairs(&before, &alone, half).unwrap().duals;
        let (warm, cold) = (
            pairs_from(&costs, &alone, half, &duals).unwrap(),
            pairs(&costs, &alone, half).unwrap(),
        );
        prop_assert!((warm.cost - cold.cost).abs() <= 1e-9 * largest(&costs, &alone));
    }

    #[test]
    fn duals_prove_every_matching(half in 1usize..40, kind in 0usize..6, seed: u64) {
        let costs = random(2 * half, kind, &mut Pcg64::seed_from_u64(seed));
        let scaled = ScaledCosts::new(&costs);
        let mut solver = BlossomSolver::new(&scaled, coarse::start(&scaled));
        solver.solve();
        prop_assert_eq!(solver.prove(), Ok(()));
        let mut fractional = FractionalMatching::new(&scaled, coarse::start(&scaled));
        fractional.solve();
        let mut started = BlossomSolver::new(&scaled, fractional.into_start());
        started.solve();
        prop_assert_eq!(started.prove(), Ok(()));
    }
}

/// Ten and eleven threads with idle ones beside them, and twelve on six cores: 10,395 matchings.
#[test]
fn exact_for_ten_to_twelve_threads() {
    for (threads, cores) in [(10, 5), (10, 6), (10, 8), (11, 6), (11, 7), (12, 6)] {
        let all: Vec<usize> = (0..threads).collect();
        for kind in 0..5 {
            let mut rng = Pcg64::seed_from_u64(12);
            let costs = random(threads, kind, &mut rng);
            let alone: Vec<f64> = (0..threads).map(|_| value(kind, &mut rng)).collect();
            let found = pairs(&costs, &alone, cores).unwrap();
            let best = brute(&costs, &alone, &all, cores);
            assert!(
                (found.cost - best).abs() <= 1e-9 * largest(&costs, &alone),
                "{threads} threads, {cores} cores, kind {kind}: {found:?} {best}"
            );
        }
    }
}

/// Costs as of eight programs with 128 copies each, products of two parts beside sums.
fn copies(threads: usize, scatter: f64, rng: &mut Pcg64) -> PairCosts {
    let programs: Vec<[f64; 2]> = (0..8).map(|_| [rng.random(), rng.random()]).collect();
    let parts: Vec<[f64; 2]> = (0..threads)
        .map(|thread| programs[thread % 8].map(|part| part + scatter * rng.random::<f64>()))
        .collect();
    let cost = |i: usize, j: usize| {
        let ([a, b], [c, d]) = (parts[i], parts[j]);
        2.0 + a + c + 0.6 * b * d - 0.9 * a * c
    };
    PairCosts::from_fn(threads, cost).unwrap()
}

/// Large matchings, whose threads are all different, alike, and nearly alike: the duals prove each.
#[test]
fn duals_prove_matchings_of_1024_threads() {
    let mut rng = Pcg64::seed_from_u64(1_024);
    let all = [
        random(1_024, 2, &mut rng),
        copies(1_024, 0.0, &mut rng),
        copies(1_024, 0.01, &mut rng),
    ];
    for costs in &all {
        let scaled = ScaledCosts::new(costs);
        let mut fractional = FractionalMatching::new(&scaled, coarse::start(&scaled));
        fractional.solve();
        let mut solver = BlossomSolver::new(&scaled, fractional.into_start());
        solver.solve();
        assert_eq!(solver.prove(), Ok(()));
    }
}

#[test]
fn infinity_is_taken_only_where_nothing_else_is_left() {
    // Threads 0 to 2 may meet only thread 3: one infinite pair is needed, not two.
    let cost = |i: usize, j: usize| if j == 3 { i as f64 } else { f64::INFINITY };
    let costs = PairCosts::from_fn(4, cost).unwrap();
    let found = pairs(&costs, &[1.0; 4], 2).unwrap();
    let dear = found
        .pairs
        .iter()
        .filter(|(i, j)| costs.at(*i, j.unwrap()) == f64::INFINITY);
    assert_eq!((dear.count(), found.cost), (1, f64::INFINITY));
    assert!(found.pairs.contains(&(0, Some(3))));
    let roomy = pairs(&costs, &[1.0; 4], 4).unwrap();
    assert_eq!(roomy.cost, 2.0);
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let costs = PairCosts::from_fn(3, |_, _| 2.0).unwrap();
    assert_eq!(
        pairs(&costs, &[1.0; 3], 1),
        Err(MatchingError::TooMany {
            threads: 3,
            most: 2
        })
    );
    assert!(pairs(&costs, &[1.0; 2], 2).is_err());
    assert!(pairs(&costs, &[1.0, f64::NAN, 1.0], 2).is_err());
    let odd = pairs(&costs, &[1.0; 3], 2).unwrap();
    assert_eq!((odd.cost, odd.pairs.len()), (3.0, 2));
}
