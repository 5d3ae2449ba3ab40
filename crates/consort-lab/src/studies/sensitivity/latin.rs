//! Latin hypercube samples.
//!
//! Source: McKay, Beckman and Conover, "A Comparison of Three Methods for Selecting Values of
//! Input Variables in the Analysis of Output from a Computer Code", Technometrics 21(2), 1979:
//! the range of each variable is cut into as many equal parts as there are samples, and each part
//! has one sample, at a random place in it; which parts meet in a sample is by lot.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Draws so many samples of so many variables, each in 0 to 1; by sample, then variable.
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
}
