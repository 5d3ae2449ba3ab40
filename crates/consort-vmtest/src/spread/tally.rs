//! Counts of the spreads that were seen.

use crate::spread::arrival::SpinnerArrival;
use crate::spread::look::SpreadSnapshot;
use crate::spread::threads_per_pu::ThreadSpread;
use consort_core::topology::Topology;
use std::collections::BTreeMap;

/// Counts of one number of threads, arrival and moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpreadCounts {
    /// Repetitions of each spread.
    pub spreads: BTreeMap<ThreadSpread, u64>,
    /// Moves of all threads from their births to the looks.
    pub migrations: u64,
    /// Time from the start of the last thread to the end of the look, µs of the guest, summed over
    /// repetitions.
    pub elapsed_us: u64,
}

impl SpreadCounts {
    /// The number of repetitions.
    #[must_use]
    pub fn repetitions(&self) -> u64 {
        self.spreads.values().sum()
    }

    /// The part of the repetitions that `is` holds for; 0 where there are none.
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
    /// The counts.
    pub counts: BTreeMap<(usize, SpinnerArrival, u64), SpreadCounts>,
}

impl SpreadTally {
    /// Adds looks of a guest with this topology.
    pub fn add(&mut self, topology: &Topology, looks: &[SpreadSnapshot]) {
        for look in looks {
            let key = (look.pus.len(), look.arrival, look.after_ms);
            let spread = ThreadSpread::new(topology, &look.pus);
            self.counts.entry(key).or_default().add(spread, look);
        }
    }

    /// Moves per thread and second of the guest between the first and the last moment; `None`
    /// where there are no two moments.
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
    use consort_core::PuId;

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
    fn moments_and_numbers_of_threads_are_apart() {
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
    fn moves_are_per_thread_and_second_between_the_moments() {
        let tally = tally(&[look(0, 1, &[0, 1]), look(500, 4, &[0, 2])]);
        let rate = |threads| tally.migrations_per_thread_second(threads, SpinnerArrival::Threads);
        assert_eq!((rate(2), rate(3)), (Some(3.0), None));
    }

    #[test]
    fn no_repetitions_have_no_share() {
        assert_eq!(SpreadCounts::default().share(|_| true), 0.0);
    }
}
