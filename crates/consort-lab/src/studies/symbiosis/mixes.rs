//! The drawn workloads.

use super::programs::PROGRAMS;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Streams of workloads are this far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Programs on a number of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::studies) struct Mix {
    /// Cores in use.
    pub cores: usize,
    /// Number among the workloads for so many cores, from 1.
    pub number: usize,
    /// Indices of the programs, twice as many as cores; one may occur several times.
    pub programs: Vec<usize>,
}

impl Mix {
    /// The workload of this number for so many cores: it follows from the seed, whatever else is
    /// drawn. Each program is drawn from all, independently.
    pub fn draw(seed: u64, cores: usize, number: usize) -> Self {
        let stream = STRIDE.wrapping_mul((cores * 1000 + number) as u64);
        let mut random = Pcg64::seed_from_u64(seed ^ stream);
        let mut one = || random.random_range(0..PROGRAMS.len());
        Self {
            cores,
            number,
            programs: (0..2 * cores).map(|_| one()).collect(),
        }
    }

    /// Workloads 1 to `count` for so many cores.
    pub fn draw_all(seed: u64, cores: usize, count: usize) -> Vec<Self> {
        let numbers = 1..=count;
        numbers.map(|n| Self::draw(seed, cores, n)).collect()
    }

    /// Key of its rows: cores and number, for example `4/01`.
    pub fn key(&self) -> String {
        format!("{}/{:02}", self.cores, self.number)
    }

    /// Names of its programs; those that occur several times bear a number from the second on.
    pub fn names(&self) -> Vec<String> {
        let nth = |i: usize| {
            let before = self.programs[..i].iter();
            1 + before.filter(|&&p| p == self.programs[i]).count()
        };
        let name = |i: usize| match nth(i) {
            1 => PROGRAMS[self.programs[i]].to_owned(),
            n => format!("{}#{n}", PROGRAMS[self.programs[i]]),
        };
        (0..self.programs.len()).map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_mix_follows_from_its_seed_and_fills_the_cores(seed: u64, cores in 1usize..11) {
            let mixes = Mix::draw_all(seed, cores, 3);
            prop_assert_eq!(&mixes[2], &Mix::draw(seed, cores, 3));
            for mix in &mixes {
                let names: BTreeSet<String> = mix.names().into_iter().collect();
                prop_assert_eq!(names.len(), 2 * cores);
                prop_assert!(mix.programs.iter().all(|&p| p < PROGRAMS.len()));
            }
        }
    }

    #[test]
    fn workloads_differ_and_every_program_occurs() {
        let mixes: Vec<Mix> = (4..=10).flat_map(|c| Mix::draw_all(8, c, 15)).collect();
        assert_eq!(mixes.len(), 105);
        let drawn: BTreeSet<&Vec<usize>> = mixes.iter().map(|m| &m.programs).collect();
        assert_eq!(drawn.len(), 105);
        let used: BTreeSet<usize> = mixes.iter().flat_map(|m| m.programs.clone()).collect();
        assert_eq!(used.len(), PROGRAMS.len());
        assert_eq!(Mix::draw(8, 4, 1).key(), "4/01");
    }
}
