//! Groups of threads whose places lie within one core.

use consort_core::{PuSet, ThreadId, Topology};
use std::collections::BTreeMap;

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

/// The core that all of these PUs belong to; none where they belong to several.
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
    fn whoever_runs_on_one_core_at_a_time_is_a_group() {
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
