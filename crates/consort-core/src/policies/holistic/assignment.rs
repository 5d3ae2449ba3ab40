//! Places of all threads under a mapping.

use super::active_programs::ActivePrograms;
use super::candidate::MappingCandidate;
use super::characteristics::ProgramCharacteristics;
use super::levels::{PinningScope, choose_pinning};
use crate::ids::{PuId, ThreadId};
use crate::mapping::domains;
use crate::plan::Placement;
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Places of all threads under a mapping.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    candidate: MappingCandidate,
    /// CPUs of the machine when the places were given.
    machine: PuSet,
    /// Threads by program.
    ids: Vec<Vec<ThreadId>>,
    /// Scope of each program.
    pub(super) holds: Vec<PinningScope>,
    pub(super) placements: BTreeMap<ThreadId, Placement>,
    pus: BTreeMap<ThreadId, PuId>,
}

impl Assignment {
    /// Returns true if mapping, machine and threads are still the same.
    pub(super) fn is_current(
        &self,
        candidate: MappingCandidate,
        topology: &Topology,
        crowd: &ActivePrograms<'_>,
    ) -> bool {
        let mut pairs = self.ids.iter().zip(&crowd.groups);
        self.candidate == candidate
            && self.machine == *topology.pus()
            && self.ids.len() == crowd.groups.len()
            && pairs.all(|(ids, group)| {
                let members = group.members.iter().map(|t| t.id);
                ids.iter().copied().eq(members)
            })
    }

    /// Gives the threads their places. A thread that had one of its program's places `before` keeps
    /// it.
    pub(super) fn new(
        candidate: MappingCandidate,
        topology: &Topology,
        crowd: &ActivePrograms<'_>,
        known: &[ProgramCharacteristics],
        before: Option<&Self>,
    ) -> Self {
        let groups = crowd.groups.iter();
        let mut made = Self {
            candidate,
            machine: topology.pus().clone(),
            ids: groups
                .map(|g| g.members.iter().map(|t| t.id).collect())
                .collect(),
            holds: Vec::new(),
            placements: BTreeMap::new(),
            pus: BTreeMap::new(),
        };
        let counts = crowd.thread_counts();
        if let Some(places) = candidate.places(topology, &counts, known) {
            let shape = candidate.shape(topology, &counts, Some(&places));
            made.holds = choose_pinning(candidate, known, &shape);
            made.assign_pus(&places, before);
            made.restrict_threads(topology);
        }
        made
    }

    fn assign_pus(&mut self, places: &[Vec<PuId>], before: Option<&Self>) {
        for (ids, places) in self.ids.iter().zip(places) {
            let mut free: BTreeMap<PuId, usize> = BTreeMap::new();
            for &pu in places {
                *free.entry(pu).or_default() += 1;
            }
            let mut later = Vec::new();
            for &id in ids {
                let had = before.and_then(|before| before.pus.get(&id));
                match had.and_then(|pu| Some((*pu, free.get_mut(pu)?))) {
                    Some((pu, left)) if *left > 0 => {
                        *left -= 1;
                        self.pus.insert(id, pu);
                    }
                    _ => later.push(id),
                }
            }
            let left = free.into_iter();
            let left = left.flat_map(|(pu, n)| std::iter::repeat_n(pu, n));
            self.pus.extend(later.into_iter().zip(left));
        }
    }

    fn restrict_threads(&mut self, topology: &Topology) {
        let domains = domains(topology).into_iter();
        let domains: Vec<PuSet> = domains.map(PuSet::from_iter).collect();
        for (ids, &hold) in self.ids.iter().zip(&self.holds) {
            for id in ids {
                let Some(&pu) = self.pus.get(id) else {
                    continue;
                };
                let home = domains.iter().find(|d| d.contains(pu));
                let placement = match (hold, home) {
                    (PinningScope::Free, _) => Placement::Unrestricted,
                    (PinningScope::Domain, Some(home)) => Placement::Restricted(home.clone()),
                    _ => Placement::Restricted(pu.into()),
                };
                self.placements.insert(*id, placement);
            }
        }
    }
}
