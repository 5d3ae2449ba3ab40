//! Threads that a plan has on one core, and the share of time that pairs of them were there
//! together.

use super::adherence::AdherenceTally;
use consort_core::{PuSet, ThreadId, Topology};
use std::collections::BTreeMap;

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
        let mut pairs = Vec::new();
        for (core, threads) in group_by_core(topology, places) {
            if threads.len() <= topology.cores()[core].pus.len() {
                for (index, &a) in threads.iter().enumerate() {
                    pairs.extend(threads[index + 1..].iter().map(|&b| (a, b)));
                }
            }
        }
        Self(pairs)
    }

    /// Adds an interval. `of` returns the running time of a thread, ns, and the share of it in place.
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

/// Threads by the core that their places lie within; others are left out.
pub(crate) fn group_by_core<'a>(
    topology: &Topology,
    places: impl Iterator<Item = (ThreadId, &'a PuSet)>,
) -> BTreeMap<usize, Vec<ThreadId>> {
    let mut by_core: BTreeMap<usize, Vec<ThreadId>> = BTreeMap::new();
    for (thread, pus) in places {
        if let Some(core) = core_of(topology, pus) {
            by_core.entry(core).or_default().push(thread);
        }
    }
    by_core
}

/// The core that all of these PUs belong to; `None` if they belong to several.
fn core_of(topology: &Topology, pus: &PuSet) -> Option<usize> {
    let core = topology.core_of(pus.first()?)?;
    let is_within = pus.iter().all(|pu| topology.core_of(pu) == Some(core));
    is_within.then_some(core)
}

/// Threads that run on one core at the same time, a group for each core that has several and gives
/// them more than one PU.
pub(crate) fn neighbours<'a>(
    topology: &Topology,
    places: impl Iterator<Item = (ThreadId, &'a PuSet)> + Clone,
) -> Vec<Vec<ThreadId>> {
    let mut pus: BTreeMap<usize, PuSet> = BTreeMap::new();
    for (_, place) in places.clone() {
        if let Some(core) = core_of(topology, place) {
            let taken = pus.entry(core).or_default();
            *taken = taken.union(place);
        }
    }
    let crowds = group_by_core(topology, places).into_iter();
    let groups = crowds.filter(|(core, threads)| threads.len() > 1 && pus[core].len() > 1);
    groups.map(|(_, threads)| threads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn only_threads_alone_on_a_core_are_pairs() {
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
    }

    /// Groups of the threads 0, 1, ... with these places on two cores of two PUs.
    fn groups(places: &[&str]) -> Vec<Vec<u32>> {
        let topology = Topology::uniform(2, 2).unwrap();
        let places: Vec<PuSet> = places.iter().map(|pus| pus.parse().unwrap()).collect();
        let named = (0..).map(thread).zip(&places);
        let groups = neighbours(&topology, named).into_iter();
        groups
            .map(|group| group.into_iter().map(|t| t.tid).collect())
            .collect()
    }

    #[test]
    fn threads_of_one_core_are_a_group() {
        let topology = Topology::uniform(2, 2).unwrap();
        let core = |i: usize| topology.cores()[i].pus.clone();
        let text = |pus: &[consort_core::PuId]| pus.iter().copied().collect::<PuSet>().to_string();
        let [one, other] = [text(&core(0)), text(&core(1))];
        let [first, second] = [text(&core(0)[..1]), text(&core(0)[1..])];
        let all = topology.pus().to_string();
        assert_eq!(groups(&[&one, &other, &one]), [[0, 2]]);
        assert_eq!(groups(&[&first, &second]), [[0, 1]]);
        assert_eq!(groups(&[&one, &one, &one, &other]), [[0, 1, 2]]);
        assert_eq!(groups(&[&one, &other]), [[0; 0]; 0], "each alone");
        assert_eq!(groups(&[&first, &first]), [[0; 0]; 0], "in turns on one PU");
        assert_eq!(groups(&[&one, &all]), [[0; 0]; 0], "anywhere is no seat");
    }
}
