//! Statistics of the trials with everything varied: Latin hypercube samples and score intervals.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Value above which 2.5 percent of the standard normal distribution lie.
const Z_975: f64 = 1.959_963_984_540_054;

/// Draws a Latin hypercube, each value in 0 to 1; by sample, then variable.
///
/// Source: McKay, Beckman and Conover, "A Comparison of Three Methods for Selecting Values of
/// Input Variables in the Analysis of Output from a Computer Code", Technometrics 21(2), 1979:
/// the range of each variable is cut into as many equal parts as there are samples, and each part
/// has one sample, at a random place in it; which parts meet in a sample is by lot.
pub fn hypercube(seed: u64, samples: usize, variables: usize) -> Vec<Vec<f64>> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut all = vec![Vec::with_capacity(variables); samples];
    let mut parts: Vec<usize> = (0..samples).collect();
    for _ in 0..variables {
        parts.shuffle(&mut random);
        for (sample, &part) in all.iter_mut().zip(&parts) {
            let within: f64 = random.random();
            sample.push((part as f64 + within) / samples as f64);
        }
    }
    all
}

/// The 95 percent score interval of the share of `hits` in `count`, 0 to 1 (Wilson, "Probable
/// Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927): it stays within 0
/// to 1 and has a width at both of them. Everything is possible without samples.
pub(super) fn wilson_interval(hits: usize, count: usize) -> [f64; 2] {
    if count == 0 {
        return [0.0, 1.0];
    }
    let (n, share) = (count as f64, hits as f64 / count as f64);
    let z2 = Z_975 * Z_975 / n;
    let middle = share + z2 / 2.0;
    let half = (z2 * (share * (1.0 - share) + z2 / 4.0)).sqrt();
    let [low, high] = [middle - half, middle + half].map(|end| end / (1.0 + z2));
    // At 0 and at 1 the share is an end; rounding must not leave it outside.
    [low.clamp(0.0, share), high.clamp(share, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_part_of_every_variable_has_one_sample(
            seed: u64, samples in 1usize..40, variables in 1usize..8,
        ) {
            let all = hypercube(seed, samples, variables);
            prop_assert_eq!(all.len(), samples);
            for variable in 0..variables {
                let part = |sample: &Vec<f64>| (sample[variable] * samples as f64) as usize;
                let mut parts: Vec<usize> = all.iter().map(part).collect();
                parts.sort_unstable();
                prop_assert_eq!(parts, (0..samples).collect::<Vec<_>>());
            }
            prop_assert_eq!(&all, &hypercube(seed, samples, variables));
        }
    }

    #[test]
    fn seeds_and_variables_differ() {
        let all = hypercube(1, 20, 2);
        assert_ne!(all, hypercube(2, 20, 2));
        assert!(all.iter().any(|sample| (sample[0] - sample[1]).abs() > 0.1));
    }

    #[test]
    fn intervals_match_published_ones() {
        let check = |hits, count, expect: [f64; 2]| {
            let got = wilson_interval(hits, count);
            let near = got.iter().zip(expect).all(|(a, b)| (a - b).abs() < 5e-4);
            assert!(near, "{got:?} is not {expect:?}");
        };
        // Newcombe, Statistics in Medicine 17, 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29.
        check(81, 263, [0.2553, 0.3662]);
        check(15, 148, [0.0624, 0.1605]);
        check(0, 20, [0.0, 0.1611]);
        check(1, 29, [0.0061, 0.1718]);
        check(20, 20, [1.0 - 0.1611, 1.0]);
        check(0, 0, [0.0, 1.0]);
    }

    #[test]
    fn share_is_in_its_interval() {
        for count in 1..200 {
            for hits in 0..=count {
                let [low, high] = wilson_interval(hits, count);
                let share = hits as f64 / count as f64;
                assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            }
        }
    }
}
