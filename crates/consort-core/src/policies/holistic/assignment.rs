//! Threads on the places of a mapping.

use super::active_programs::{ActiveProgram, ActivePrograms};
use super::candidate::MappingCandidate;
use super::characteristics::ProgramCharacteristics;
use super::pinning_scope::{PinningScope, choose_pinning};
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
    /// PUs of the machine when the places were given.
    machine: PuSet,
    /// Members by program.
    ids: Vec<Vec<ThreadId>>,
    /// Hold on each program.
    pub(super) holds: Vec<PinningScope>,
    pub(super) placements: BTreeMap<ThreadId, Placement>,
    pus: BTreeMap<ThreadId, PuId>,
}

impl Assignment {
    /// Returns true where the assignment is still that of the mapping, the machine and the threads.
    pub(super) fn is_current(
        &self,
        candidate: MappingCandidate,
        topology: &Topology,
        crowd: &ActivePrograms<'_>,
    ) -> bool {
        let same = |(ids, group): (&Vec<ThreadId>, &ActiveProgram<'_>)| {
            ids.iter().copied().eq(group.members.iter().map(|t| t.id))
        };
        self.candidate == candidate
            && self.machine == *topology.pus()
            && self.ids.len() == crowd.groups.len()
            && self.ids.iter().zip(&crowd.groups).all(same)
    }

    /// Gives the threads their places; a thread that had one of its program's places `before` keeps
    /// it.
    pub(super) fn new(
        candidate: MappingCandidate,
        topology: &Topology,
        crowd: &ActivePrograms<'_>,
        known: &[ProgramCharacteristics],
        before: Option<&Self>,
    ) -> Self {
        let ids = { crowd.groups.iter() }
            .map(|g| g.members.iter().map(|t| t.id).collect())
            .collect();
        let mut made = Self {
            candidate,
            machine: topology.pus().clone(),
            ids,
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
            places
                .iter()
                .for_each(|&pu| *free.entry(pu).or_default() += 1);
            let had = |id: &ThreadId| before.and_then(|b| b.pus.get(id).copied());
            let mut later = Vec::new();
            for &id in ids {
                if let Some(pu) = had(&id).filter(|pu| take_pu(&mut free, *pu)) {
                    self.pus.insert(id, pu);
                } else {
                    later.push(id);
                }
            }
            let left = { free.into_iter() }.flat_map(|(pu, n)| std::iter::repeat_n(pu, n));
            self.pus.extend(later.into_iter().zip(left));
        }
    }

    fn restrict_threads(&mut self, topology: &Topology) {
        let domains: Vec<PuSet> = { domains(topology).into_iter() }
            .map(|pus| pus.into_iter().collect())
            .collect();
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

fn take_pu(free: &mut BTreeMap<PuId, usize>, pu: PuId) -> bool {
    match free.get_mut(&pu).filter(|n| **n > 0) {
        Some(n) => {
            *n -= 1;
            true
        }
        None => false,
    }
}
