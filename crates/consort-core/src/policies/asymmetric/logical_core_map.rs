//! Logical cores and the PUs that they are on.

use super::groups::{ExchangeGroups, GroupPus};
use super::logical_core::{
    ActiveThread, LogicalCore, LogicalCoreGroup, is_active, is_allowed_on_all, is_runnable,
    progress,
};
use crate::ids::{PuId, ThreadId};
use crate::sample::{Observation, ThreadObservation};
use std::collections::{BTreeMap, BTreeSet};

/// A logical core: its PU and what is on it.
#[derive(Clone, Debug)]
struct MappedCore {
    pu: PuId,
    members: Vec<ThreadId>,
}

/// The mapping from logical cores to PUs. In hardware form each observed thread is a logical core,
/// and keeps one here to itself; in software form the threads that share a PU are exchanged
/// together, as the logical core that they share would be.
#[derive(Clone, Debug, Default)]
pub(super) struct LogicalCoreMap {
    cores: Vec<MappedCore>,
    /// Software thread that was active on each observed thread when the interval began.
    before: BTreeMap<ThreadId, ThreadId>,
}

impl LogicalCoreMap {
    /// Follows threads that come and go, and evens out the numbers that are runnable on each
    /// logical core.
    pub(super) fn follow_threads(&mut self, groups: &ExchangeGroups, observation: &Observation) {
        let pus: Vec<PuId> = groups.iter().flat_map(GroupPus::iter).collect();
        if !self.has_same_pus(&pus) {
            let core = |&pu: &PuId| MappedCore {
                pu,
                members: Vec::new(),
            };
            self.cores = pus.iter().map(core).collect();
        }
        let free = |id: ThreadId| {
            let thread = observation.thread(id);
            thread.is_some_and(|thread| is_allowed_on_all(thread, &pus))
        };
        for core in &mut self.cores {
            core.members.retain(|&id| free(id));
        }
        let seated: BTreeSet<ThreadId> = self.members().collect();
        for thread in &observation.threads {
            if free(thread.id) && !seated.contains(&thread.id) {
                self.add_thread(thread);
            }
        }
        self.balance_load(observation);
    }

    /// Returns true where the PUs are still those that the layer knows.
    fn has_same_pus(&self, pus: &[PuId]) -> bool {
        let known: BTreeSet<PuId> = self.cores.iter().map(|core| core.pu).collect();
        known == pus.iter().copied().collect()
    }

    fn members(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.cores
            .iter()
            .flat_map(|core| core.members.iter().copied())
    }

    /// Seats a new thread: on its PU where that has no thread, else where fewest are.
    fn add_thread(&mut self, thread: &ThreadObservation) {
        let here = |core: &MappedCore| thread.last_pu == Some(core.pu);
        let key = |core: &MappedCore| (core.members.len(), !here(core));
        if let Some(core) = self.cores.iter_mut().min_by_key(|core| key(core)) {
            core.members.push(thread.id);
        }
    }

    /// Moves runnable threads until no logical core has two more of them than another.
    fn balance_load(&mut self, observation: &Observation) {
        let runs = |id: &ThreadId| observation.thread(*id).is_some_and(is_runnable);
        let load = |core: &MappedCore| core.members.iter().filter(|id| runs(id)).count();
        // Each move brings loads closer together, so as many moves as threads are enough.
        for _ in 0..self.members().count() {
            let of = |&c: &usize| load(&self.cores[c]);
            let most = (0..self.cores.len()).rev().max_by_key(of);
            let least = (0..self.cores.len()).min_by_key(of);
            let (Some(most), Some(least)) = (most, least) else {
                return;
            };
            if of(&most) < of(&least) + 2 {
                return;
            }
            let last = self.cores[most].members.iter().rposition(runs);
            if let Some(at) = last {
                let id = self.cores[most].members.remove(at);
                self.cores[least].members.push(id);
            }
        }
    }

    /// The logical cores of every group.
    pub(super) fn group_logical_cores<'a>(
        &self,
        groups: &ExchangeGroups,
        observation: &'a Observation,
    ) -> Vec<LogicalCoreGroup<'a>> {
        let at: BTreeMap<PuId, usize> = self
            .cores
            .iter()
            .enumerate()
            .map(|(logical, core)| (core.pu, logical))
            .collect();
        let side = |pus: &[PuId]| -> Vec<LogicalCore<'a>> {
            let logical = pus.iter().filter_map(|pu| at.get(pu).copied());
            logical
                .map(|l| self.observe_logical_core(l, observation))
                .collect()
        };
        let group = |(index, pus): (usize, &GroupPus)| LogicalCoreGroup {
            index,
            large: side(&pus.large),
            small: side(&pus.small),
        };
        groups.iter().enumerate().map(group).collect()
    }

    fn observe_logical_core<'a>(
        &self,
        logical: usize,
        observation: &'a Observation,
    ) -> LogicalCore<'a> {
        let members = self.cores[logical].members.iter();
        let seen: Vec<&ThreadObservation> =
            members.filter_map(|&id| observation.thread(id)).collect();
        let ran = |thread: &&'a ThreadObservation| {
            let before = self.before.get(&thread.id)?;
            Some(ActiveThread {
                thread: *before,
                progress: progress(thread),
                sample: &thread.sample,
                cpu_ns: thread.sample.cpu_time_ns(),
            })
        };
        LogicalCore {
            logical,
            ran: seen.iter().filter_map(ran).collect(),
            active: seen
                .iter()
                .filter(|t| is_active(t))
                .map(|t| occupant(t))
                .collect(),
            seen,
        }
    }

    /// Remembers the active threads, for the end of the interval that begins now.
    pub(super) fn remember_active(&mut self, observation: &Observation) {
        let active = observation.threads.iter().filter(|t| is_active(t));
        self.before = active.map(|t| (t.id, occupant(t))).collect();
    }

    /// Exchanges the PUs of two logical cores.
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        if a < self.cores.len() && b < self.cores.len() {
            let pu = self.cores[a].pu;
            self.cores[a].pu = self.cores[b].pu;
            self.cores[b].pu = pu;
        }
    }

    /// Every placed thread with its logical core and PU.
    pub(super) fn thread_positions(&self) -> impl Iterator<Item = (ThreadId, usize, PuId)> + '_ {
        let of = |(logical, core): (usize, &MappedCore)| {
            let pu = core.pu;
            let members = core.members.clone().into_iter();
            members.map(move |id| (id, logical, pu))
        };
        self.cores.iter().enumerate().flat_map(of)
    }
}

/// The software thread that an observed thread stands for.
fn occupant(thread: &ThreadObservation) -> ThreadId {
    thread.sample.occupant.unwrap_or(thread.id)
}

impl GroupPus {
    /// All PUs of the group.
    pub(super) fn iter(&self) -> impl Iterator<Item = PuId> + '_ {
        self.large.iter().chain(&self.small).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use crate::testing::{observation_with_activity, thread_id};
    use crate::topology::Topology;
    use proptest::prelude::*;

    /// Threads by number with their share of a PU.
    fn seen(topology: &Topology, shares: &[(u32, f64)]) -> Observation {
        let threads: Vec<_> = shares.iter().map(|&(t, s)| (t, 0.0, s)).collect();
        observation_with_activity(topology, &threads)
    }

    fn runnable(layer: &LogicalCoreMap, shares: &[(u32, f64)]) -> Vec<usize> {
        let runs = |id: &ThreadId| shares.iter().any(|&(t, s)| thread_id(t) == *id && s > 0.0);
        let load = |core: &MappedCore| core.members.iter().filter(|id| runs(id)).count();
        layer.cores.iter().map(load).collect()
    }

    #[test]
    fn a_new_thread_stays_where_it_is_when_nobody_else_is_there() {
        let topology = chip(1, 3, 1);
        let mut layer = LogicalCoreMap::default();
        let mut observation = seen(&topology, &[(1, 1.0), (2, 1.0)]);
        observation.threads[0].last_pu = Some(PuId(2));
        observation.threads[1].last_pu = Some(PuId(2));
        layer.follow_threads(&ExchangeGroups::from_topology(&topology), &observation);
        let placed: Vec<(u32, u32)> = layer
            .thread_positions()
            .map(|(id, _, pu)| (id.tid, pu.0))
            .collect();
        assert_eq!(placed, [(2, 0), (1, 2)]);
    }

    #[test]
    fn threads_that_share_a_logical_core_are_exchanged_together() {
        let topology = chip(1, 1, 1);
        let mut layer = LogicalCoreMap::default();
        let groups = ExchangeGroups::from_topology(&topology);
        layer.follow_threads(
            &groups,
            &seen(&topology, &[(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]),
        );
        let before: Vec<_> = layer
            .thread_positions()
            .map(|(id, _, pu)| (id, pu))
            .collect();
        layer.swap(0, 1);
        let other = |pu: PuId| PuId(1 - pu.0);
        let expected: Vec<_> = before.iter().map(|&(id, pu)| (id, other(pu))).collect();
        assert_eq!(
            layer
                .thread_positions()
                .map(|(id, _, pu)| (id, pu))
                .collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_thread_that_may_not_run_everywhere_is_left_alone() {
        let topology = chip(1, 3, 1);
        let mut observation = seen(&topology, &[(1, 1.0), (2, 1.0)]);
        observation.threads[0].original = std::sync::Arc::new("1-2".parse().unwrap());
        let mut layer = LogicalCoreMap::default();
        layer.follow_threads(&ExchangeGroups::from_topology(&topology), &observation);
        assert_eq!(layer.members().collect::<Vec<_>>(), [thread_id(2)]);
    }

    proptest! {
        #[test]
        fn runnable_threads_are_spread_evenly_whoever_comes_goes_or_sleeps(
            rounds in prop::collection::vec(
                prop::collection::btree_map(1u32..20, prop::sample::select(vec![0.0, 1.0]), 0..16),
                1..6,
            ),
        ) {
            let topology = chip(1, 3, 1);
            let mut layer = LogicalCoreMap::default();
            for round in rounds {
                let shares: Vec<(u32, f64)> = round.into_iter().collect();
                layer.follow_threads(&ExchangeGroups::from_topology(&topology), &seen(&topology, &shares));
                let loads = runnable(&layer, &shares);
                let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
                prop_assert!(most - least <= 1, "{:?}", loads);
                prop_assert_eq!(layer.members().count(), shares.len());
            }
        }
    }
}
