//! Gap between the cost of groups of more than two and the optimum, printed and bounded.

#![expect(clippy::disallowed_macros, reason = "a test may print and fail loudly")]

use consort_matching::{GroupRoom, exhaustive_grouping, group_threads};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const SWAPS: usize = 100_000;

/// A cost of groups that grows faster than the sum over pairs.
fn crowded(threads: usize, seed: u64) -> impl Fn(&[usize]) -> f64 {
    let mut rng = Pcg64::seed_from_u64(seed);
    let heavy: Vec<[f64; 3]> = (0..threads)
        .map(|_| std::array::from_fn(|_| rng.random()))
        .collect();
    move |group| {
        let sums: [f64; 3] = std::array::from_fn(|c| group.iter().map(|&t| heavy[t][c]).sum());
        group.len() as f64 + sums.iter().map(|sum| sum * sum * sum).sum::<f64>()
    }
}

/// Prints the gap to the optimum, and holds it within what is promised.
#[test]
fn gap_to_the_optimum_is_small() {
    for (cores, ways, seeds) in [(2, 4, 10), (3, 4, 10), (2, 6, 10), (4, 4, 2)] {
        let threads = cores * ways;
        let shape = GroupRoom {
            cores,
            ways,
            swaps: SWAPS,
        };
        let gaps: Vec<f64> = (0..seeds)
            .map(|seed| {
                let cost = crowded(threads, seed);
                let found = group_threads(threads, shape, &cost).unwrap().cost;
                found / exhaustive_grouping(threads, shape, &cost).unwrap().cost - 1.0
            })
            .collect();
        let worst = gaps.iter().copied().fold(0.0, f64::max);
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        println!("{threads} threads in groups of {ways}: mean gap {mean:.5}, worst {worst:.5}");
        assert!(gaps.iter().all(|gap| *gap > -1e-9));
        assert!(worst < 0.05, "{gaps:?}");
    }
}
