//! Assignment of a group's members to its PUs.

use super::OccupancyGroup;
use super::history::PlaceHistory;
use super::ranking::RankedThread;
use crate::ids::PuId;
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Takes the first threads of the queue that can all have a PU of this group.
pub(super) fn take_members<'a>(
    queue: &mut Vec<RankedThread<'a>>,
    slots: &[PuId],
) -> Vec<RankedThread<'a>> {
    let mut matching = Matching::default();
    let mut members = Vec::new();
    let mut rest = Vec::new();
    for candidate in queue.drain(..) {
        if members.len() < slots.len() && matching.add(&candidate, slots) {
            members.push(candidate);
        } else {
            rest.push(candidate);
        }
    }
    *queue = rest;
    members
}

/// A bipartite matching of members to PUs, grown by augmenting paths, so that masks which overlap
/// only in part never shut a thread out that could be served.
#[derive(Default)]
struct Matching {
    /// PUs that each member may have.
    usable: Vec<Vec<PuId>>,
    member_on: BTreeMap<PuId, usize>,
}

impl Matching {
    fn add(&mut self, candidate: &RankedThread<'_>, slots: &[PuId]) -> bool {
        let may_use = |&&pu: &&PuId| candidate.thread.original.contains(pu);
        self.usable
            .push(slots.iter().filter(may_use).copied().collect());
        let member = self.usable.len() - 1;
        let found = self.augment(member, &mut PuSet::new());
        if !found {
            self.usable.pop();
        }
        found
    }

    fn augment(&mut self, member: usize, tried: &mut PuSet) -> bool {
        let usable = &self.usable[member];
        let free = usable.iter().find(|pu| !self.member_on.contains_key(pu));
        if let Some(&pu) = free {
            self.member_on.insert(pu, member);
            return true;
        }
        let taken: Vec<PuId> = usable
            .iter()
            .copied()
            .filter(|&pu| !tried.contains(pu))
            .collect();
        taken.into_iter().any(|pu| self.displace(pu, member, tried))
    }

    /// Gives the member a PU whose holder can be served elsewhere.
    fn displace(&mut self, pu: PuId, member: usize, tried: &mut PuSet) -> bool {
        if tried.contains(pu) {
            return false;
        }
        tried.insert(pu);
        let holder = self.member_on.get(&pu).copied();
        let moved = holder.is_none_or(|other| self.augment(other, tried));
        if moved {
            self.member_on.insert(pu, member);
        }
        moved
    }
}

/// Gives PUs to the groups of one node, one group after the other.
pub(super) struct Assigner<'a> {
    topology: &'a Topology,
    /// FPU usage that earlier groups have put on each core.
    load: BTreeMap<usize, f64>,
}

impl<'a> Assigner<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        Self {
            topology,
            load: BTreeMap::new(),
        }
    }

    /// A PU and the rule that gave it, for each member, in their order.
    pub(super) fn assign(
        &mut self,
        group: OccupancyGroup,
        slots: &[PuId],
        members: &[RankedThread<'_>],
        history: &PlaceHistory,
    ) -> Vec<(PuId, &'static str)> {
        let mut table = PuAssignment::new(slots, members);
        table.give_pus("stays in its group, so stays on its PU", |m| {
            history.pu_in(m.id(), group).into_iter().collect()
        });
        table.give_pus("returns to the PU that it used most", |m| {
            history.most_used_pus(m.id())
        });
        let lightest_first = self.pus_by_load(slots);
        table.give_pus("on the least FPU-heavy core that is free", |m| {
            self.prefer_present_pu(&lightest_first, m)
        });
        let given = table.finish();
        for (member, (pu, _)) in members.iter().zip(&given) {
            if let Some(core) = self.topology.core_of(*pu) {
                *self.load.entry(core).or_default() += member.fp_usage;
            }
        }
        given
    }

    fn pus_by_load(&self, slots: &[PuId]) -> Vec<(f64, PuId)> {
        let mut pus: Vec<(f64, PuId)> = slots.iter().map(|&pu| (self.core_load(pu), pu)).collect();
        pus.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        pus
    }

    /// Returns the PUs in the same order, but with the member's present one first among cores of
    /// equal load.
    fn prefer_present_pu(&self, order: &[(f64, PuId)], member: &RankedThread<'_>) -> Vec<PuId> {
        let mut pus: Vec<PuId> = order.iter().map(|(_, pu)| *pu).collect();
        let here = member
            .thread
            .last_pu
            .and_then(|pu| pus.iter().position(|&p| p == pu));
        if let Some(at) = here {
            let equals = order.partition_point(|(load, _)| *load < order[at].0);
            let pu = pus.remove(at);
            pus.insert(equals, pu);
        }
        pus
    }

    fn core_load(&self, pu: PuId) -> f64 {
        let core = self.topology.core_of(pu);
        core.and_then(|core| self.load.get(&core).copied())
            .unwrap_or(0.0)
    }
}

/// Members still without a PU, and PUs still without a member.
struct PuAssignment<'m, 'a> {
    members: &'m [RankedThread<'a>],
    /// Members that may not use every PU of the group; only these can be shut out.
    partial: Vec<usize>,
    free: PuSet,
    given: Vec<Option<(PuId, &'static str)>>,
}

impl<'m, 'a> PuAssignment<'m, 'a> {
    fn new(slots: &[PuId], members: &'m [RankedThread<'a>]) -> Self {
        let free: PuSet = slots.iter().copied().collect();
        let partial = |&i: &usize| !free.is_subset(&members[i].thread.original);
        Self {
            members,
            partial: (0..members.len()).filter(partial).collect(),
            free,
            given: vec![None; members.len()],
        }
    }

    /// Gives each member that has none the first PU of its wishes that is free, that it may use,
    /// and that leaves every other member one to use.
    fn give_pus(&mut self, rule: &'static str, wishes: impl Fn(&RankedThread<'_>) -> Vec<PuId>) {
        for index in 0..self.members.len() {
            if self.given[index].is_some() {
                continue;
            }
            let wish = wishes(&self.members[index]);
            let granted = wish.into_iter().find(|&pu| self.can_have(index, pu));
            if let Some(pu) = granted {
                self.free.remove(pu);
                self.given[index] = Some((pu, rule));
            }
        }
    }

    fn can_have(&self, index: usize, pu: PuId) -> bool {
        let may = self.members[index].thread.original.contains(pu);
        may && self.free.contains(pu) && self.can_serve_others(index, pu)
    }

    /// Returns true where the members with partial masks that still wait can all be served without
    /// this PU.
    fn can_serve_others(&self, index: usize, pu: PuId) -> bool {
        if self.partial.is_empty() {
            return true;
        }
        let mut waiting = self
            .partial
            .iter()
            .filter(|&&i| i != index && self.given[i].is_none());
        let without: Vec<PuId> = self.free.iter().filter(|&free| free != pu).collect();
        let mut matching = Matching::default();
        waiting.all(|&i| matching.add(&self.members[i], &without))
    }

    /// Returns the PU of each member: every one was matched to a PU when it was taken, and no gift
    /// leaves another without, so each has one.
    fn finish(self) -> Vec<(PuId, &'static str)> {
        self.given.into_iter().flatten().collect()
    }
}
