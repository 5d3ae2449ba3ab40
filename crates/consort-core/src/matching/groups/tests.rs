use super::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const SWAPS: usize = 100_000;

/// A cost of groups in which three and more weigh on each other more than pairs tell.
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

fn factorial(n: u64) -> u64 {
    (1..=n).product()
}

#[test]
fn as_many_partitions_as_the_formula_says() {
    for (cores, ways) in [(1, 4), (2, 4), (3, 4), (5, 2), (4, 3), (2, 8)] {
        let threads = cores * ways;
        let shape = GroupRoom {
            cores,
            ways,
            swaps: 0,
        };
        let mut visited = 0;
        let count = visit_partitions(threads, shape, |_| visited += 1).unwrap();
        let (n, c, w) = (threads as u64, cores as u64, ways as u64);
        let expected = factorial(n) / (factorial(c) * factorial(w).pow(c as u32));
        assert_eq!(
            (count, visited),
            (expected, expected),
            "{cores} cores of {ways}"
        );
    }
}

proptest! {
    #[test]
    fn each_thread_is_in_one_group_that_fits(
        cores in 1usize..6, ways in 1usize..9, share in 0.0f64..=1.0, seed: u64, swaps in 0usize..2_000,
    ) {
        let threads = ((cores * ways) as f64 * share) as usize;
        let shape = GroupRoom { cores, ways, swaps };
        let found = group_threads(threads, shape, crowded(threads, seed)).unwrap();
        prop_assert!(found.groups.len() <= cores);
        prop_assert!(found.groups.iter().all(|group| (1..=ways).contains(&group.len())));
        let mut all: Vec<usize> = found.groups.concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..threads).collect::<Vec<_>>());
    }

    #[test]
    fn local_search_never_makes_it_dearer(seed: u64, swaps in 0usize..3_000) {
        let cost = crowded(12, seed);
        let with = |swaps| group_threads(12, GroupRoom { cores: 3, ways: 4, swaps }, &cost).unwrap().cost;
        prop_assert!(with(swaps) <= with(0) + 1e-9);
    }
}

#[test]
fn no_number_is_very_dear() {
    let shape = GroupRoom {
        cores: 2,
        ways: 2,
        swaps: SWAPS,
    };
    let cost = |group: &[usize]| if group == [0, 1] { f64::NAN } else { 1.0 };
    let found = group_threads(4, shape, cost).unwrap();
    assert!(found.cost.is_finite() && !found.groups.contains(&vec![0, 1]));
    assert!(group_threads(5, shape, |_| 1.0).is_err());
}
