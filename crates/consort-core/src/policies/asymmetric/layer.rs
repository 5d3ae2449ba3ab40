//! Logical cores and the PUs that they are on.

use super::groups::{GroupPus, Groups};
use super::seat::{Group, Ran, Seat, is_active, is_runnable, may_go_anywhere, progress};
use crate::ids::{PuId, ThreadId};
use crate::sample::{Observation, ThreadObservation};
use std::collections::{BTreeMap, BTreeSet};

/// A logical core: its PU and what is on it.
#[derive(Clone, Debug)]
struct Core {
    pu: PuId,
    members: Vec<ThreadId>,
}

/// The mapping from logical cores to PUs. In hardware form each observed thread is a logical core,
/// and keeps one here to itself; in software form the threads that share a PU are exchanged
/// together, as the logical core that they share would be.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    cores: Vec<Core>,
    /// By observed thread, the software thread that was active there when the interval began.
    before: BTreeMap<ThreadId, ThreadId>,
}

impl Layer {
    /// Follows threads that come and go, and evens out how many are runnable on each logical core.
    pub(super) fn follow(&mut self, groups: &Groups, observation: &Observation) {
        let pus: Vec<PuId> = groups.iter().flat_map(GroupPus::iter).collect();
        if !self.is_over(&pus) {
            let core = |&pu: &PuId| Core {
                pu,
                members: Vec::new(),
            };
            self.cores = pus.iter().map(core).collect();
        }
        let free = |id: ThreadId| {
            let thread = observation.thread(id);
            thread.is_some_and(|thread| may_go_anywhere(thread, &pus))
        };
        for core in &mut self.cores {
            core.members.retain(|&id| free(id));
        }
        let seated: BTreeSet<ThreadId> = self.members().collect();
        for thread in &observation.threads {
            if free(thread.id) && !seated.contains(&thread.id) {
                self.seat(thread);
            }
        }
        self.even_out(observation);
    }

    /// Whether the PUs are still those that it knows.
    fn is_over(&self, pus: &[PuId]) -> bool {
        let known: BTreeSet<PuId> = self.cores.iter().map(|core| core.pu).collect();
        known == pus.iter().copied().collect()
    }

    fn members(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.cores
            .iter()
            .flat_map(|core| core.members.iter().copied())
    }

    /// A new thread stays on its PU where that has nobody, else goes where fewest are.
    fn seat(&mut self, thread: &ThreadObservation) {
        let here = |core: &Core| thread.last_pu == Some(core.pu);
        let key = |core: &Core| (core.members.len(), !here(core));
        if let Some(core) = self.cores.iter_mut().min_by_key(|core| key(core)) {
            core.members.push(thread.id);
        }
    }

    /// Moves runnable threads until no logical core has two more of them than another.
    fn even_out(&mut self, observation: &Observation) {
        let runs = |id: &ThreadId| observation.thread(*id).is_some_and(is_runnable);
        let load = |core: &Core| core.members.iter().filter(|id| runs(id)).count();
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
    pub(super) fn seats<'a>(
        &self,
        groups: &Groups,
        observation: &'a Observation,
    ) -> Vec<Group<'a>> {
        let at: BTreeMap<PuId, usize> = self
            .cores
            .iter()
            .enumerate()
            .map(|(logical, core)| (core.pu, logical))
            .collect();
        let side = |pus: &[PuId]| -> Vec<Seat<'a>> {
            let logical = pus.iter().filter_map(|pu| at.get(pu).copied());
            logical.map(|l| self.look(l, observation)).collect()
        };
        let group = |(index, pus): (usize, &GroupPus)| Group {
            index,
            large: side(&pus.large),
            small: side(&pus.small),
        };
        groups.iter().enumerate().map(group).collect()
    }

    fn look<'a>(&self, logical: usize, observation: &'a Observation) -> Seat<'a> {
        let members = self.cores[logical].members.iter();
        let seen: Vec<&ThreadObservation> =
            members.filter_map(|&id| observation.thread(id)).collect();
        let ran = |thread: &&ThreadObservation| {
            let before = self.before.get(&thread.id)?;
            Some(Ran {
                thread: *before,
                progress: progress(thread),
            })
        };
        Seat {
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

    /// Remembers who is active, for the end of the interval that begins now.
    pub(super) fn remember(&mut self, observation: &Observation) {
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
    pub(super) fn placed(&self) -> impl Iterator<Item = (ThreadId, usize, PuId)> + '_ {
        let of = |(logical, core): (usize, &Core)| {
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
    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = PuId> + '_ {
        self.large.iter().chain(&self.small).copied()
    }
}
