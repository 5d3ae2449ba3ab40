//! Distances between distributions.

use consort_core::stats::quantile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Number of times that each class was seen.
pub(super) type ClassCounts = BTreeMap<String, u64>;

/// Observations in all.
pub(super) fn total(counts: &ClassCounts) -> u64 {
    counts.values().sum()
}

/// Share of a class, 0 to 1.
pub(super) fn share(counts: &ClassCounts, class: &str) -> f64 {
    counts.get(class).copied().unwrap_or(0) as f64 / total(counts).max(1) as f64
}

/// Total variation distance: half the sum of the differences of shares, 0 to 1.
pub(super) fn distance(a: &ClassCounts, b: &ClassCounts) -> f64 {
    let only_b = b.keys().filter(|class| !a.contains_key(*class));
    let classes = a.keys().chain(only_b);
    0.5 * classes
        .map(|c| (share(a, c) - share(b, c)).abs())
        .sum::<f64>()
}

/// Reshufflings for the distance that noise makes.
const SHUFFLES: usize = 1000;

/// The distance below which 95 percent of the distances lie that two samples of these sizes from
/// one distribution have (permutation of the pooled observations).
pub(super) fn noise_distance(a: &ClassCounts, b: &ClassCounts, seed: u64) -> f64 {
    let mut pool: Vec<&str> = Vec::new();
    for (class, &n) in a.iter().chain(b) {
        pool.extend((0..n).map(|_| class.as_str()));
    }
    let size = total(a) as usize;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let distances: Vec<f64> = (0..SHUFFLES)
        .map(|_| {
            pool.shuffle(&mut random);
            distance(&tally(&pool[..size]), &tally(&pool[size..]))
        })
        .collect();
    quantile(&distances, 0.95).unwrap_or(0.0)
}

fn tally(classes: &[&str]) -> ClassCounts {
    let mut counts = ClassCounts::new();
    for class in classes {
        match counts.get_mut(*class) {
            Some(n) => *n += 1,
            None => drop(counts.insert((*class).to_owned(), 1)),
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(pairs: &[(&str, u64)]) -> ClassCounts {
        pairs
            .iter()
            .map(|&(class, n)| (class.to_owned(), n))
            .collect()
    }

    #[test]
    fn noise_shrinks_with_the_samples() {
        let of = |n: u64| {
            noise_distance(
                &counts(&[("a", n), ("b", n)]),
                &counts(&[("a", n), ("b", n)]),
                1,
            )
        };
        assert!(of(10) > of(1000) && of(1000) > 0.0);
        assert_eq!(
            noise_distance(&counts(&[("a", 5)]), &counts(&[("a", 9)]), 1),
            0.0
        );
    }

    proptest! {
        #[test]
        fn distances_are_symmetric_and_between_0_and_1(
            a in prop::array::uniform3(0u64..9), b in prop::array::uniform3(1u64..9),
        ) {
            let of = |n: [u64; 3]| counts(&[("x", n[0] + 1), ("y", n[1]), ("z", n[2])]);
            let (a, b) = (of(a), of(b));
            prop_assert_eq!(distance(&a, &a), 0.0);
            prop_assert!((distance(&a, &b) - distance(&b, &a)).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&distance(&a, &b)));
        }
    }
}
