//! Logical cores, the CPUs that they are on, and what a rule sees of them.

use super::groups::{ExchangeGroups, GroupPus};
use crate::ids::{PuId, ThreadId};
use crate::sample::{Observation, Sample, ThreadObservation};
use crate::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};

/// A software thread that was active on a logical core when the interval began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ActiveThread<'a> {
    pub(super) thread: ThreadId,
    /// Progress in the interval: instructions if they are counted, else ns of CPU time.
    pub(super) progress: f64,
    pub(super) sample: &'a Sample,
    /// Time on a CPU in the interval, ns.
    pub(super) cpu_ns: f64,
}

/// A logical core as a rule sees it.
#[derive(Clone, Debug)]
pub(super) struct LogicalCore<'a> {
    /// Number of the logical core.
    pub(super) logical: usize,
    /// The threads that the machine observes: the logical core itself in hardware form, its threads
    /// in software form.
    pub(super) seen: Vec<&'a ThreadObservation>,
    /// Software threads that were active on it when the interval began.
    pub(super) ran: Vec<ActiveThread<'a>>,
    /// Software threads that are active on it now: they run or could, and do not wait for others.
    pub(super) active: Vec<ThreadId>,
}

impl LogicalCore<'_> {
    /// Returns true if nothing would run on it: its active bit is not set.
    pub(super) fn is_idle(&self) -> bool {
        !self.seen.iter().any(|thread| is_runnable(thread))
    }

    /// Returns true if it is in kernel mode, so that it cannot be exchanged.
    pub(super) fn is_in_kernel(&self) -> bool {
        self.seen.iter().any(|t| is_set(t, Signal::KernelMode))
    }

    /// Returns true if it has something to run, in user mode.
    pub(super) fn is_ready(&self) -> bool {
        !self.is_idle() && !self.is_in_kernel()
    }

    /// Returns true if it went from kernel to user code in the interval: its transition bit. If the
    /// machine does not report the privilege level, returns from futex and blocking calls stand for
    /// it.
    pub(super) fn has_returned_to_user(&self) -> bool {
        self.seen.iter().any(|thread| {
            thread.sample.get(Signal::UserReturns).map_or_else(
                || {
                    let calls = [Signal::FutexReturns, Signal::BlockingReturns];
                    calls.iter().any(|&signal| is_set(thread, signal))
                },
                |returns| returns > 0.0,
            )
        })
    }

    /// Sum of the progress of all threads, as in [`ActiveThread::progress`].
    pub(super) fn progress(&self) -> f64 {
        self.seen.iter().map(|thread| progress(thread)).sum()
    }
}

/// The logical cores of a group.
#[derive(Clone, Debug)]
pub(super) struct LogicalCoreGroup<'a> {
    /// Number of the group.
    pub(super) index: usize,
    pub(super) large: Vec<LogicalCore<'a>>,
    pub(super) small: Vec<LogicalCore<'a>>,
}

impl<'a> LogicalCoreGroup<'a> {
    /// All logical cores, those on large cores first.
    pub(super) fn logical_cores(&self) -> impl Iterator<Item = &LogicalCore<'a>> {
        self.large.iter().chain(&self.small)
    }
}

fn progress(thread: &ThreadObservation) -> f64 {
    let counted = thread.sample.get(Signal::Instructions);
    counted.unwrap_or_else(|| thread.sample.cpu_time_ns())
}

/// Returns true for a thread that runs or could. If the machine does not report that, a thread that
/// ran in the interval counts as one.
fn is_runnable(thread: &ThreadObservation) -> bool {
    let reported = thread.sample.get(Signal::Runnable);
    reported.map_or_else(|| thread.sample.cpu_time_ns() > 0.0, |on| on > 0.0)
}

/// Returns true for a thread that is runnable and does not spin for others.
fn is_active(thread: &ThreadObservation) -> bool {
    is_runnable(thread) && !is_set(thread, Signal::Waiting)
}

fn is_set(thread: &ThreadObservation, signal: Signal) -> bool {
    thread.sample.get(signal).is_some_and(|value| value > 0.0)
}

/// The software thread that an observed thread stands for.
fn occupant(thread: &ThreadObservation) -> ThreadId {
    thread.sample.occupant.unwrap_or(thread.id)
}

#[derive(Clone, Debug)]
struct MappedCore {
    pu: PuId,
    members: Vec<ThreadId>,
}

/// The mapping from logical cores to CPUs. In hardware form each observed thread is a logical core
/// and is alone on one here. In software form the threads that share a CPU are exchanged together,
/// as the logical core that they share would be.
#[derive(Clone, Debug, Default)]
pub(super) struct LogicalCoreMap {
    cores: Vec<MappedCore>,
    /// Software thread that was active on each observed thread when the interval began.
    before: BTreeMap<ThreadId, ThreadId>,
}

impl LogicalCoreMap {
    /// Adds new threads, removes exited ones, and evens out the runnable threads of the logical
    /// cores. Threads that may not run on all CPUs of the groups are left alone, because an
    /// exchange could send them to any.
    pub(super) fn follow_threads(&mut self, groups: &ExchangeGroups, observation: &Observation) {
        let pus: Vec<PuId> = groups.iter().flat_map(GroupPus::iter).collect();
        let known: BTreeSet<PuId> = self.cores.iter().map(|core| core.pu).collect();
        if known != pus.iter().copied().collect() {
            let core = |&pu: &PuId| MappedCore {
                pu,
                members: Vec::new(),
            };
            self.cores = pus.iter().map(core).collect();
        }
        let is_free = |thread: &ThreadObservation| {
            thread.managed && pus.iter().all(|&pu| thread.original.contains(pu))
        };
        for core in &mut self.cores {
            core.members
                .retain(|&id| observation.thread(id).is_some_and(is_free));
        }
        let placed: BTreeSet<ThreadId> = self.members().collect();
        for thread in &observation.threads {
            if is_free(thread) && !placed.contains(&thread.id) {
                self.add_thread(thread);
            }
        }
        self.balance_load(observation);
    }

    fn members(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.cores
            .iter()
            .flat_map(|core| core.members.iter().copied())
    }

    /// Puts a new thread where fewest are; among equals, on the CPU where it runs.
    fn add_thread(&mut self, thread: &ThreadObservation) {
        let emptiest = self
            .cores
            .iter_mut()
            .min_by_key(|core| (core.members.len(), thread.last_pu != Some(core.pu)));
        if let Some(core) = emptiest {
            core.members.push(thread.id);
        }
    }

    /// Moves runnable threads until no logical core has two more of them than another.
    fn balance_load(&mut self, observation: &Observation) {
        let runs = |id: &ThreadId| observation.thread(*id).is_some_and(is_runnable);
        // Each move brings loads closer together, so as many moves as threads are enough.
        for _ in 0..self.members().count() {
            let load = |&c: &usize| self.cores[c].members.iter().filter(|id| runs(id)).count();
            // Of equals the lowest number, for both: `max_by_key` takes the last.
            let most = (0..self.cores.len()).rev().max_by_key(load);
            let least = (0..self.cores.len()).min_by_key(load);
            let (Some(most), Some(least)) = (most, least) else {
                return;
            };
            if load(&most) < load(&least) + 2 {
                return;
            }
            if let Some(at) = self.cores[most].members.iter().rposition(runs) {
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
        let cores = self.cores.iter().enumerate();
        let at: BTreeMap<PuId, usize> = cores.map(|(logical, core)| (core.pu, logical)).collect();
        let observe = |pus: &[PuId]| -> Vec<LogicalCore<'a>> {
            let logical = pus.iter().filter_map(|pu| at.get(pu));
            logical
                .map(|&l| self.observe_logical_core(l, observation))
                .collect()
        };
        groups
            .iter()
            .enumerate()
            .map(|(index, pus)| LogicalCoreGroup {
                index,
                large: observe(&pus.large),
                small: observe(&pus.small),
            })
            .collect()
    }

    fn observe_logical_core<'a>(
        &self,
        logical: usize,
        observation: &'a Observation,
    ) -> LogicalCore<'a> {
        let mut core = LogicalCore {
            logical,
            seen: Vec::new(),
            ran: Vec::new(),
            active: Vec::new(),
        };
        let members = self.cores[logical].members.iter();
        for thread in members.filter_map(|&id| observation.thread(id)) {
            if let Some(&before) = self.before.get(&thread.id) {
                core.ran.push(ActiveThread {
                    thread: before,
                    progress: progress(thread),
                    sample: &thread.sample,
                    cpu_ns: thread.sample.cpu_time_ns(),
                });
            }
            if is_active(thread) {
                core.active.push(occupant(thread));
            }
            core.seen.push(thread);
        }
        core
    }

    /// Remembers the active threads, for the end of the interval that begins now.
    pub(super) fn remember_active(&mut self, observation: &Observation) {
        let active = observation.threads.iter().filter(|t| is_active(t));
        self.before = active.map(|t| (t.id, occupant(t))).collect();
    }

    /// Exchanges the CPUs of two logical cores.
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        if a < self.cores.len() && b < self.cores.len() {
            let pu = self.cores[a].pu;
            self.cores[a].pu = self.cores[b].pu;
            self.cores[b].pu = pu;
        }
    }

    /// Every placed thread with its logical core and CPU.
    pub(super) fn thread_positions(&self) -> impl Iterator<Item = (ThreadId, usize, PuId)> + '_ {
        let cores = self.cores.iter().enumerate();
        cores.flat_map(|(logical, core)| {
            let members = core.members.iter();
            members.map(move |&id| (id, logical, core.pu))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use crate::testing::{observation_with_activity, thread_id};
    use crate::topology::Topology;
    use proptest::prelude::*;

    /// Threads by number with their share of a CPU.
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
    fn new_thread_stays_on_an_empty_core() {
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
    fn threads_of_a_logical_core_move_together() {
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
    fn partly_barred_thread_is_left_alone() {
        let topology = chip(1, 3, 1);
        let mut observation = seen(&topology, &[(1, 1.0), (2, 1.0)]);
        observation.threads[0].original = std::sync::Arc::new("1-2".parse().unwrap());
        let mut layer = LogicalCoreMap::default();
        layer.follow_threads(&ExchangeGroups::from_topology(&topology), &observation);
        assert_eq!(layer.members().collect::<Vec<_>>(), [thread_id(2)]);
    }

    proptest! {
        #[test]
        fn runnable_threads_are_spread_evenly(
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
