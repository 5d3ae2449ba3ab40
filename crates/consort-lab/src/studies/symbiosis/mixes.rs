//! The drawn workloads.

use super::programs::PROGRAMS;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::collections::BTreeSet;

/// Streams of workloads are this far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Programs on a number of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::studies) struct DrawnMix {
    /// Cores in use.
    pub cores: usize,
    /// Number among the workloads for so many cores, from 1.
    pub number: usize,
    /// Indices of the programs, twice as many as cores, no two alike.
    pub programs: Vec<usize>,
}

impl DrawnMix {
    /// Workloads 1 to `count` for so many cores.
    pub fn draw_all(seed: u64, cores: usize, count: usize) -> Vec<Self> {
        let numbered = (1..=count).zip(draws(seed, cores));
        let mix = |(number, programs)| Self {
            cores,
            number,
            programs,
        };
        numbered.map(mix).collect()
    }

    /// Key of its rows: cores and number, for example `4/01`.
    pub fn key(&self) -> String {
        format!("{}/{:02}", self.cores, self.number)
    }

    /// Names of its programs.
    pub fn names(&self) -> Vec<String> {
        let name = |&program: &usize| PROGRAMS[program].to_owned();
        self.programs.iter().map(name).collect()
    }
}

/// Workloads for so many cores, one after another: programs drawn without replacement, in the
/// order in which they start. One of the same programs as an earlier one is drawn again, but for
/// the last that there can be.
fn draws(seed: u64, cores: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut random = Pcg64::seed_from_u64(seed ^ STRIDE.wrapping_mul(cores as u64));
    let mut seen: BTreeSet<Vec<usize>> = BTreeSet::new();
    std::iter::repeat_with(move || {
        loop {
            let mut programs: Vec<usize> = (0..PROGRAMS.len()).collect();
            programs.shuffle(&mut random);
            programs.truncate(2 * cores);
            let mut sorted = programs.clone();
            sorted.sort_unstable();
            if seen.insert(sorted) || seen.len() == PROGRAMS.len() {
                return programs;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mix_follows_from_its_seed_and_fills_the_cores(seed: u64, cores in 1usize..11) {
            let mixes = DrawnMix::draw_all(seed, cores, 3);
            prop_assert_eq!(&mixes[..2], &DrawnMix::draw_all(seed, cores, 2)[..]);
            for mix in &mixes {
                let different: BTreeSet<&usize> = mix.programs.iter().collect();
                prop_assert_eq!(different.len(), 2 * cores);
                prop_assert!(mix.programs.iter().all(|&p| p < PROGRAMS.len()));
            }
        }
    }

    #[test]
    fn workloads_differ_and_every_program_occurs() {
        let mixes: Vec<DrawnMix> = (4..=10)
            .flat_map(|c| DrawnMix::draw_all(8, c, 15))
            .collect();
        assert_eq!(mixes.len(), 105);
        let sorted = |mix: &DrawnMix| -> BTreeSet<usize> { mix.programs.iter().copied().collect() };
        let drawn: BTreeSet<BTreeSet<usize>> = mixes.iter().map(sorted).collect();
        assert_eq!(drawn.len(), 105);
        let used: BTreeSet<usize> = mixes.iter().flat_map(|m| m.programs.clone()).collect();
        assert_eq!(used.len(), PROGRAMS.len());
        assert_eq!(mixes[0].key(), "4/01");
    }
}
