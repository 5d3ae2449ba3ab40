//! Placements of equal threads, up to the symmetries of the machine.

use consort_core::PuId;
use consort_core::topology::Topology;
use std::cmp::Reverse;
use std::fmt::{Display, Formatter};

/// Number of threads of each PU of each core, whichever the cores and PUs are.
///
/// The text form names every core by the threads on its PUs, the fullest PU first and joined by
/// `|`; cores come with the most threads first, then with the fullest PU first, and are separated
/// by a space. Four threads on four cores of two ways are `1|0 1|0 1|0 1|0` where each has a core,
/// `1|1 1|0 1|0 0|0` where two share a core, and `2|0 1|0 1|0 0|0` where two share a PU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadSpread {
    cores: Vec<Vec<usize>>,
}

impl ThreadSpread {
    /// Sorts threads on these PUs into the machine's cores. PUs that the machine does not have
    /// count for nothing.
    #[must_use]
    pub fn new(topology: &Topology, pus: &[PuId]) -> Self {
        let on = |pu: PuId| pus.iter().filter(|&&other| other == pu).count();
        let cores = topology.cores().iter();
        let mut cores: Vec<Vec<usize>> = cores
            .map(|core| core.pus.iter().map(|&pu| on(pu)).collect())
            .collect();
        for core in &mut cores {
            core.sort_by_key(|&threads| Reverse(threads));
        }
        cores.sort_by_key(|core| Reverse((core.iter().sum::<usize>(), core.clone())));
        Self { cores }
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.cores.iter().flatten().sum()
    }

    /// Says whether some threads share a core.
    #[must_use]
    pub fn shares_core(&self) -> bool {
        self.cores.iter().any(|core| core.iter().sum::<usize>() > 1)
    }

    /// Says whether some threads share a PU, and so take turns.
    #[must_use]
    pub fn shares_pu(&self) -> bool {
        self.cores.iter().flatten().any(|&threads| threads > 1)
    }
}

impl Display for ThreadSpread {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let core = |core: &Vec<usize>| {
            let pus: Vec<String> = core.iter().map(usize::to_string).collect();
            pus.join("|")
        };
        let cores: Vec<String> = self.cores.iter().map(core).collect();
        f.write_str(&cores.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_topology::GuestTopology;
    use proptest::prelude::*;

    fn spread(pus: &[u32]) -> ThreadSpread {
        let pus: Vec<PuId> = pus.iter().copied().map(PuId).collect();
        ThreadSpread::new(&GuestTopology::smt(4, 2).topology().unwrap(), &pus)
    }

    #[test]
    fn the_text_tells_shared_cores_from_shared_pus() {
        assert_eq!(spread(&[0, 2, 4, 7]).to_string(), "1|0 1|0 1|0 1|0");
        assert_eq!(spread(&[4, 5, 0, 7]).to_string(), "1|1 1|0 1|0 0|0");
        assert_eq!(spread(&[5, 5, 0, 7]).to_string(), "2|0 1|0 1|0 0|0");
        assert_eq!(spread(&[6, 7, 7, 0, 0, 0]).to_string(), "3|0 2|1 0|0 0|0");
        assert!(!spread(&[0, 2, 4, 7]).shares_core());
        assert!(spread(&[4, 5]).shares_core() && !spread(&[4, 5]).shares_pu());
        assert!(spread(&[5, 5]).shares_pu());
    }

    /// Pus 2k and 2k+1 are a core: swaps cores `a` and `b`, and the PUs of every core.
    fn renamed(pu: u32, a: u32, b: u32) -> u32 {
        let core = match pu / 2 {
            core if core == a => b,
            core if core == b => a,
            core => core,
        };
        core * 2 + (1 - pu % 2)
    }

    proptest! {
        #[test]
        fn symmetries_change_nothing_and_no_thread_is_lost(
            pus in prop::collection::vec(0u32..8, 0..12), a in 0u32..4, b in 0u32..4,
        ) {
            let here = spread(&pus);
            let mut there: Vec<u32> = pus.iter().map(|&pu| renamed(pu, a, b)).collect();
            there.reverse();
            prop_assert_eq!(here.threads(), pus.len());
            prop_assert_eq!(here, spread(&there));
        }
    }
}
