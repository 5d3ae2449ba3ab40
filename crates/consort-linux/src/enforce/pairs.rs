//! Pairs of threads that a plan has on one core, and the share of time that they were there
//! together.

use super::adherence::AdherenceTally;
use super::core_groups::group_by_core;
use consort_core::{PuSet, ThreadId, Topology};

/// Pairs of threads with a place on the same core, where each thread has a PU to itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct CorePairs(Vec<(ThreadId, ThreadId)>);

impl CorePairs {
    /// The pairs of the places in a plan. Cores with more threads than PUs have none: their threads
    /// meet others with every time slice.
    pub(crate) fn from_places<'a>(
        topology: &Topology,
        places: impl Iterator<Item = (ThreadId, &'a PuSet)>,
    ) -> Self {
        let crowds = group_by_core(topology, places).into_iter();
        let pairs = crowds
            .filter(|(core, threads)| threads.len() <= topology.cores()[*core].pus.len())
            .flat_map(|(_, threads)| all_pairs(&threads));
        Self(pairs.collect())
    }

    /// Adds an interval. `of` tells the running time of a thread, ns, and the share of it in place.
    /// Two threads were in place together for at least the sum of their shares less one (Fréchet's
    /// lower bound), so the tally is a lower bound.
    pub(crate) fn add_interval(
        &self,
        of: impl Fn(ThreadId) -> Option<(f64, f64)>,
        tally: &mut AdherenceTally,
    ) {
        for &(a, b) in &self.0 {
            if let (Some((a_ns, a)), Some((b_ns, b))) = (of(a), of(b)) {
                tally.add(a_ns.min(b_ns), (a + b - 1.0).max(0.0));
            }
        }
    }
}

fn all_pairs(threads: &[ThreadId]) -> Vec<(ThreadId, ThreadId)> {
    let from = |i: usize| threads[i + 1..].iter().map(move |&b| (threads[i], b));
    (0..threads.len()).flat_map(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    /// The pairs of threads 0, 1, ... with these places on two cores of two PUs.
    fn pairs(places: &[&str]) -> CorePairs {
        let topology = Topology::uniform(2, 2).unwrap();
        let places: Vec<PuSet> = places.iter().map(|pus| pus.parse().unwrap()).collect();
        let named = (0..).map(thread).zip(&places);
        CorePairs::from_places(&topology, named)
    }

    #[test]
    fn only_threads_that_have_a_core_together_to_themselves_are_pairs() {
        let topology = Topology::uniform(2, 2).unwrap();
        let of_core = |i: usize| topology.cores()[i].pus.iter().copied().collect::<PuSet>();
        let cores = [0, 1].map(|i| of_core(i).to_string());
        let [one, other] = [cores[0].as_str(), cores[1].as_str()];
        let of = |places: &[&str]| pairs(places).0;
        assert_eq!(of(&[one, other, one]), [(thread(0), thread(2))]);
        assert_eq!(of(&[one, one, one]), []);
        let first = topology.cores()[0].pus[0].0.to_string();
        assert_eq!(of(&[one, &first]), [(thread(0), thread(1))]);
        let all = topology.pus().to_string();
        assert_eq!(of(&[one, &all]), []);
    }

    #[test]
    fn time_together_is_a_lower_bound() {
        let mut tally = AdherenceTally::default();
        let core = Topology::uniform(2, 2).unwrap().cores()[0].pus.clone();
        let core = core.into_iter().collect::<PuSet>().to_string();
        let all = pairs(&[&core, &core]);
        let times = |share| move |_| Some((10.0, share));
        all.add_interval(times(1.0), &mut tally);
        assert_eq!(tally.share(), Some(1.0));
        all.add_interval(times(0.5), &mut tally);
        assert_eq!(tally.share(), Some(0.5));
        all.add_interval(|t| (t.tid == 0).then_some((10.0, 1.0)), &mut tally);
        assert_eq!(tally.ran_ns, 20.0);
        let every: BTreeSet<_> = all_pairs(&[thread(0), thread(1), thread(2)])
            .into_iter()
            .collect();
        assert_eq!(every.len(), 3);
    }
}
