//! Assignment of ranked threads: to NUMA nodes first, then of a group's members to its CPUs.

use super::ranking::RankedThread;
use super::{OccupancyGroup, PlaceHistory};
use crate::ids::PuId;
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Splits a ranking into one queue per domain, each still in ranking order.
///
/// A thread's memory is where it has run, so it stays on its node as long as the node does not get
/// more than its share. Shares are proportional to the nodes' CPUs, and are counted twice: for
/// FPU-heavy threads and for all threads, so that no node collects the heavy ones.
pub(super) fn divide_by_node<'a>(
    topology: &Topology,
    domains: &[PuSet],
    ranked: Vec<RankedThread<'a>>,
    heavy: f64,
    history: &PlaceHistory,
) -> Vec<Vec<RankedThread<'a>>> {
    let total = topology.pus().len().max(1);
    let shares = |threads: usize| -> Vec<isize> {
        let pus = domains.iter().map(PuSet::len);
        pus.map(|pus| (threads * pus).div_ceil(total) as isize)
            .collect()
    };
    let heavies = ranked.iter().filter(|c| c.fp_usage >= heavy).count();
    let mut heavy_room = shares(heavies);
    let mut room = shares(ranked.len());
    let mut queues: Vec<Vec<RankedThread<'a>>> = domains.iter().map(|_| Vec::new()).collect();
    for candidate in ranked {
        let is_heavy = candidate.fp_usage >= heavy;
        // The thread's memory is probably at the CPU that it used most.
        let most_used = history.most_used_pus(candidate.id()).first().copied();
        let pu = most_used.or(candidate.thread.last_pu);
        let home = pu.and_then(|pu| domains.iter().position(|domain| domain.contains(pu)));
        let limit = if is_heavy { &mut heavy_room } else { &mut room };
        let node = choose_node(&candidate, domains, home, limit);
        limit[node] -= 1;
        if is_heavy {
            room[node] -= 1;
        }
        queues[node].push(candidate);
    }
    queues
}

/// Returns the thread's home if it has room, else the domain with the most room among the ones that
/// the thread may use.
fn choose_node(
    candidate: &RankedThread<'_>,
    domains: &[PuSet],
    home: Option<usize>,
    room: &[isize],
) -> usize {
    let original = &candidate.thread.original;
    let usable = |&node: &usize| !original.intersection(&domains[node]).is_empty();
    let at_home = home.filter(|node| room[*node] > 0 && usable(node));
    let roomiest = || {
        let nodes = (0..domains.len()).filter(usable);
        nodes.max_by_key(|&node| (room[node], Reverse(node)))
    };
    at_home.or_else(roomiest).unwrap_or(0)
}

/// Takes the first threads of the queue that can all have a CPU of this group.
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

/// A bipartite matching of members to CPUs, grown by augmenting paths, so that masks which overlap
/// only in part never exclude a thread that could have a CPU.
#[derive(Default)]
struct Matching {
    /// CPUs that each member may have.
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
        // A copy, because displacing a member changes the matching.
        let taken = usable.clone();
        taken.into_iter().any(|pu| self.displace(pu, member, tried))
    }

    /// Gives the member a CPU whose holder can have another.
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

/// Gives CPUs to the groups of one node, one group after the other.
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

    /// A CPU and the rule that gave it, for each member, in their order.
    pub(super) fn assign(
        &mut self,
        group: OccupancyGroup,
        slots: &[PuId],
        members: &[RankedThread<'_>],
        history: &PlaceHistory,
    ) -> Vec<(PuId, &'static str)> {
        let mut assignment = PuAssignment::new(slots, members);
        assignment.give_pus("stays in its group, so stays on its CPU", |m| {
            let place = history.place(m.id());
            let here = place.filter(|(last, _)| *last == group);
            here.into_iter().map(|(_, pu)| pu).collect()
        });
        assignment.give_pus("returns to the CPU that it used most", |m| {
            history.most_used_pus(m.id())
        });
        let mut lightest_first: Vec<(f64, PuId)> = Vec::new();
        for &pu in slots {
            let core = self.topology.core_of(pu);
            let load = core.and_then(|core| self.load.get(&core).copied());
            lightest_first.push((load.unwrap_or(0.0), pu));
        }
        lightest_first.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        assignment.give_pus("on the least FPU-heavy core that is free", |m| {
            prefer_present_pu(&lightest_first, m)
        });
        // Every member was matched to a CPU when it was taken, and no gift leaves another without
        // one, so each has one.
        let given: Vec<_> = assignment.given.into_iter().flatten().collect();
        for (member, (pu, _)) in members.iter().zip(&given) {
            if let Some(core) = self.topology.core_of(*pu) {
                *self.load.entry(core).or_default() += member.fp_usage;
            }
        }
        given
    }
}

/// Returns the CPUs in the same order, but with the member's present one first among cores of equal
/// load.
fn prefer_present_pu(order: &[(f64, PuId)], member: &RankedThread<'_>) -> Vec<PuId> {
    let mut pus: Vec<PuId> = order.iter().map(|(_, pu)| *pu).collect();
    let last_pu = member.thread.last_pu;
    if let Some(at) = pus.iter().position(|&pu| last_pu == Some(pu)) {
        let equals = order.partition_point(|(load, _)| *load < order[at].0);
        let pu = pus.remove(at);
        pus.insert(equals, pu);
    }
    pus
}

/// Members still without a CPU, and CPUs still without a member.
struct PuAssignment<'m, 'a> {
    members: &'m [RankedThread<'a>],
    /// Members that may not use every CPU of the group; only these can be left without one.
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

    /// Gives each member without a CPU the first of its `wishes` that is free, that it may use, and
    /// that leaves every other member one to use.
    fn give_pus(&mut self, rule: &'static str, wishes: impl Fn(&RankedThread<'_>) -> Vec<PuId>) {
        for index in 0..self.members.len() {
            if self.given[index].is_some() {
                continue;
            }
            let original = &self.members[index].thread.original;
            let granted = wishes(&self.members[index]).into_iter().find(|&pu| {
                original.contains(pu) && self.free.contains(pu) && self.can_serve_others(index, pu)
            });
            if let Some(pu) = granted {
                self.free.remove(pu);
                self.given[index] = Some((pu, rule));
            }
        }
    }

    /// Returns true if the waiting members with partial masks can all have a CPU other than this
    /// one.
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
}
