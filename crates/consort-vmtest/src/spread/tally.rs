//! Placements of equal threads up to the symmetries of the machine, and counts of them.

use crate::spread::snapshot::{SpinnerArrival, SpreadSnapshot};
use consort_core::PuId;
use consort_core::topology::Topology;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// Number of threads of each CPU of each core, whichever the cores and CPUs are.
///
/// The text form names every core by the threads on its CPUs, the fullest CPU first and joined by
/// `|`; cores come with the most threads first, then with the fullest CPU first, and are separated
/// by a space. Four threads on four cores of two ways are `1|0 1|0 1|0 1|0` if each has a core,
/// `1|1 1|0 1|0 0|0` if two share a core, and `2|0 1|0 1|0 0|0` if two share a CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadSpread {
    cores: Vec<Vec<usize>>,
}

impl ThreadSpread {
    /// Sorts threads on these CPUs into the machine's cores. CPUs that the machine does not have
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

    /// Returns true if some threads share a core.
    #[must_use]
    pub fn shares_core(&self) -> bool {
        self.cores.iter().any(|core| core.iter().sum::<usize>() > 1)
    }

    /// Returns true if some threads share a CPU, and so take turns.
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

/// Counts of one number of threads, arrival and moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadCounts {
    /// Repetitions of each spread.
    pub spreads: BTreeMap<ThreadSpread, u64>,
    /// Moves of all threads from their births to the snapshots.
    pub migrations: u64,
    /// Time from the start of the last thread to the end of the snapshot, µs of the guest, summed over
    /// repetitions.
    pub elapsed_us: u64,
}

impl SpreadCounts {
    /// The number of repetitions.
    #[must_use]
    pub fn repetitions(&self) -> u64 {
        self.spreads.values().sum()
    }

    /// The part of the repetitions for which `is` holds; 0 if there are none.
    #[must_use]
    pub fn share(&self, is: impl Fn(&ThreadSpread) -> bool) -> f64 {
        let spreads = self.spreads.iter().filter(|(spread, _)| is(spread));
        let counted: u64 = spreads.map(|(_, count)| count).sum();
        counted as f64 / self.repetitions().max(1) as f64
    }

    fn add(&mut self, spread: ThreadSpread, look: &SpreadSnapshot) {
        *self.spreads.entry(spread).or_default() += 1;
        self.migrations += look.migrations;
        self.elapsed_us += look.elapsed_us;
    }
}

/// Counts by number of threads, arrival, and moment in ms after the last thread was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadTally {
    /// All counts; a key that never occurred is absent.
    pub counts: BTreeMap<(usize, SpinnerArrival, u64), SpreadCounts>,
}

impl SpreadTally {
    /// Adds snapshots of a guest with this topology.
    pub fn add(&mut self, topology: &Topology, looks: &[SpreadSnapshot]) {
        for look in looks {
            let key = (look.pus.len(), look.arrival, look.after_ms);
            let spread = ThreadSpread::new(topology, &look.pus);
            self.counts.entry(key).or_default().add(spread, look);
        }
    }

    /// Moves per thread and second of the guest between the first and the last moment; `None` if
    /// there are no two moments.
    #[must_use]
    pub fn migrations_per_thread_second(
        &self,
        threads: usize,
        arrival: SpinnerArrival,
    ) -> Option<f64> {
        let moments = self
            .counts
            .range((threads, arrival, 0)..=(threads, arrival, u64::MAX));
        let mut moments = moments.map(|(_, counts)| counts);
        let (first, last) = (moments.next()?, moments.next_back()?);
        let seconds = last.elapsed_us.checked_sub(first.elapsed_us)? as f64 / 1e6;
        let moves = last.migrations.checked_sub(first.migrations)? as f64;
        (seconds > 0.0).then(|| moves / (seconds * threads as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_topology::GuestTopology;
    use proptest::prelude::*;

    fn look(after_ms: u64, migrations: u64, pus: &[u32]) -> SpreadSnapshot {
        SpreadSnapshot {
            arrival: SpinnerArrival::Threads,
            after_ms,
            elapsed_us: after_ms * 1000,
            migrations,
            pus: pus.iter().copied().map(PuId).collect(),
        }
    }

    fn tally(looks: &[SpreadSnapshot]) -> SpreadTally {
        let mut tally = SpreadTally::default();
        tally.add(&GuestTopology::smt(4, 2).topology().unwrap(), looks);
        tally
    }

    #[test]
    fn moments_and_thread_numbers_are_separate() {
        let looks = [look(0, 0, &[0, 1]), look(500, 3, &[0, 2])];
        let more = [look(500, 3, &[4, 6]), look(0, 0, &[0, 1, 2])];
        let tally = tally(&[looks, more].concat());
        let keys: Vec<_> = tally.counts.keys().map(|&(n, _, ms)| (n, ms)).collect();
        assert_eq!(keys, [(2, 0), (2, 500), (3, 0)]);
        let late = &tally.counts[&(2, SpinnerArrival::Threads, 500)];
        assert_eq!(
            (late.repetitions(), late.share(ThreadSpread::shares_core)),
            (2, 0.0)
        );
        assert_eq!(late.share(|spread| !spread.shares_core()), 1.0);
    }

    #[test]
    fn moves_are_per_thread_and_second() {
        let tally = tally(&[look(0, 1, &[0, 1]), look(500, 4, &[0, 2])]);
        let rate = |threads| tally.migrations_per_thread_second(threads, SpinnerArrival::Threads);
        assert_eq!((rate(2), rate(3)), (Some(3.0), None));
    }

    #[test]
    fn no_repetitions_have_no_share() {
        assert_eq!(SpreadCounts::default().share(|_| true), 0.0);
    }

    fn spread(pus: &[u32]) -> ThreadSpread {
        let pus: Vec<PuId> = pus.iter().copied().map(PuId).collect();
        ThreadSpread::new(&GuestTopology::smt(4, 2).topology().unwrap(), &pus)
    }

    #[test]
    fn text_distinguishes_shared_cores_and_pus() {
        assert_eq!(spread(&[0, 2, 4, 7]).to_string(), "1|0 1|0 1|0 1|0");
        assert_eq!(spread(&[4, 5, 0, 7]).to_string(), "1|1 1|0 1|0 0|0");
        assert_eq!(spread(&[5, 5, 0, 7]).to_string(), "2|0 1|0 1|0 0|0");
        assert_eq!(spread(&[6, 7, 7, 0, 0, 0]).to_string(), "3|0 2|1 0|0 0|0");
        assert!(!spread(&[0, 2, 4, 7]).shares_core());
        assert!(spread(&[4, 5]).shares_core() && !spread(&[4, 5]).shares_pu());
        assert!(spread(&[5, 5]).shares_pu());
    }

    /// Pus 2k and 2k+1 are a core: swaps cores `a` and `b`, and the CPUs of every core.
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
        fn symmetries_change_nothing(
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
