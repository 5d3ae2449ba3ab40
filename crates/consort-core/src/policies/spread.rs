//! `spread`: every active thread on a core of its own while there are cores.
//!
//! For hosts that offer nothing but activity and a topology: it knows which PUs
//! share a core and nothing of what threads do. Threads are restricted to
//! cores, not to PUs, so that the OS can still choose among siblings. With more
//! active threads than PUs the most active ones are placed and the rest is left to
//! the OS, which balances run queues with what it may move. Sources: the first two
//! levels of Linux' own wake-up placement (idle core, then idle PU), here kept
//! for CPU hogs that never wake up.
//!
//! On a live machine other work may need the same PUs. A thread that is held in its place then
//! keeps the kernel from balancing: `spread` yields (see [`ReleasedThreads`]). With `active=0` it places every
//! thread that runs, whatever else does.

mod released_threads;

use crate::ids::ThreadId;
use crate::plan::{Decision, Fact, Placement, Reason};
use crate::policy::{
    ALL_USUAL, OptionInfo, Policy, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View, Wishes,
};
use crate::pu_set::PuSet;
use crate::sample::ThreadObservation;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::{Core, Topology};
use released_threads::ReleasedThreads;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "spread",
    family: "topology",
    source: "none: topology alone, as Linux' wake-up placement",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "gives each active thread an idle core first, then an idle PU",
    options: &[OptionInfo {
        name: "active",
        default: "0.25",
        meaning: "threads below this share of one PU are left to the OS (0 to 1); with 0 every \
                  thread that runs is placed, even while other work waits for its PU",
    }],
    open,
};

fn open(_: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(SpreadPolicy {
        active: options.share("active")?,
        core_of: BTreeMap::new(),
        balance: ReleasedThreads::default(),
    }))
}

/// A thread that has a core stays active down to this part of the threshold, so
/// that a thread near the threshold does not come and go.
const STAYS_ACTIVE: f64 = 0.5;

/// Factor by which a thread that has a core leads one of equal activity that has none; keeps equal
/// threads from taking turns when PUs are short.
const INCUMBENT: f64 = 1.1;

struct SpreadPolicy {
    active: f64,
    /// The core of each placed thread, by the core's PUs: indices change with hotplug.
    core_of: BTreeMap<ThreadId, PuSet>,
    balance: ReleasedThreads,
}

impl Policy for SpreadPolicy {
    fn wishes(&self) -> Wishes {
        Wishes {
            idle: self.active > 0.0,
            ..Wishes::default()
        }
    }

    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        if self.active > 0.0 {
            self.balance.record_interval(view, &self.core_of);
        }
        let mut threads = self.active_threads(view);
        self.leave_inactive(view, &threads, &mut decision);
        let beyond = threads.split_off(threads.len().min(view.topology.pus().len()));
        for thread in beyond {
            leave_to_os(
                view,
                thread,
                "more active threads fill all PUs",
                &mut decision,
            );
        }
        let mut seats = CoreSlots::new(view.topology, threads.len());
        let given = seats.assign_cores(&threads, &self.core_of);
        self.core_of.clear();
        for (thread, (core, rule)) in threads.iter().zip(given) {
            if let Some(core) = core {
                self.place_thread(
                    view,
                    thread,
                    &view.topology.cores()[core],
                    rule,
                    &mut decision,
                );
            }
        }
        decision
    }
}

impl SpreadPolicy {
    /// Active threads, the most active first; those that have a core before others that are about
    /// as active.
    fn active_threads<'a>(&self, view: View<'a>) -> Vec<&'a ThreadObservation> {
        let is_active = |t: &&ThreadObservation| {
            view.observation.wanted_share(t) > 0.0 && self.reason_to_leave(view, t).is_none()
        };
        let all = view.observation.managed_threads();
        let mut threads: Vec<_> = all.filter(is_active).collect();
        let busy = |t: &ThreadObservation| {
            let placed = self.core_of.contains_key(&t.id);
            t.sample.cpu_time_ns() * if placed { INCUMBENT } else { 1.0 }
        };
        threads.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then(a.id.cmp(&b.id)));
        threads
    }

    fn reason_to_leave(
        &self,
        view: View<'_>,
        thread: &ThreadObservation,
    ) -> Option<Cow<'static, str>> {
        let placed = self.core_of.contains_key(&thread.id);
        let threshold = self.active * if placed { STAYS_ACTIVE } else { 1.0 };
        let why = view.observation.reason_to_leave(thread, threshold);
        let balanced = is_balanced(view.topology, thread);
        why.or_else(|| self.balance.reason_to_leave(thread.id).filter(|_| balanced))
    }

    fn leave_inactive(
        &self,
        view: View<'_>,
        active: &[&ThreadObservation],
        decision: &mut Decision,
    ) {
        let ids: BTreeSet<ThreadId> = active.iter().map(|t| t.id).collect();
        let inactive = view
            .observation
            .managed_threads()
            .filter(|t| !ids.contains(&t.id));
        for thread in inactive {
            let why = self.reason_to_leave(view, thread);
            leave_to_os(
                view,
                thread,
                &why.unwrap_or("hardly active".into()),
                decision,
            );
        }
    }

    fn place_thread(
        &mut self,
        view: View<'_>,
        thread: &ThreadObservation,
        core: &Core,
        rule: &str,
        decision: &mut Decision,
    ) {
        let whole: PuSet = core.pus.iter().copied().collect();
        let pus = whole.intersection(&thread.original);
        let reason = Reason {
            considered: format!("{} cores", view.topology.cores().len()),
            chosen: format!("core of PU {whole}: {rule}"),
            facts: facts(view, thread),
        };
        self.core_of.insert(thread.id, whole);
        decision.place(thread.id, Placement::Restricted(pus), reason);
    }
}

/// Returns true if the kernel balances any of the PUs that a thread may use.
fn is_balanced(topology: &Topology, thread: &ThreadObservation) -> bool {
    !thread.original.is_subset(topology.unbalanced_pus())
}

fn leave_to_os(view: View<'_>, thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: format!("{} cores", view.topology.cores().len()),
        chosen: format!("left to the OS: {why}"),
        facts: facts(view, thread),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

fn facts(view: View<'_>, thread: &ThreadObservation) -> Vec<Fact> {
    vec![Fact {
        name: "share of a PU".into(),
        value: view.observation.cpu_share(thread),
        unit: "".into(),
    }]
}

/// Places at cores: the number of threads that each core has, and the number that it may have.
struct CoreSlots<'a> {
    topology: &'a Topology,
    taken: Vec<usize>,
    /// Threads that every core takes before any takes one more.
    level: usize,
    /// Cores that may have one thread more than `level`.
    extras: usize,
}

impl<'a> CoreSlots<'a> {
    fn new(topology: &'a Topology, threads: usize) -> Self {
        let cores = topology.cores();
        let seats_at = |level: usize| cores.iter().map(|c| c.pus.len().min(level)).sum::<usize>();
        let level = (0..)
            .take_while(|&l| l <= topology.smt() && seats_at(l) <= threads)
            .last();
        let level = level.unwrap_or(0);
        Self {
            topology,
            taken: vec![0; cores.len()],
            level,
            extras: threads - seats_at(level).min(threads),
        }
    }

    /// A core and the rule that gave it, for each thread; those that have a core keep it first.
    fn assign_cores(
        &mut self,
        threads: &[&ThreadObservation],
        earlier: &BTreeMap<ThreadId, PuSet>,
    ) -> Vec<(Option<usize>, &'static str)> {
        let mut given: Vec<(Option<usize>, &'static str)> = threads
            .iter()
            .map(|t| (self.keep_core(t, earlier.get(&t.id)), "stays"))
            .collect();
        for (slot, thread) in given.iter_mut().zip(threads) {
            if slot.0.is_none() {
                *slot = (self.take_emptiest(thread), "the emptiest core of its mask");
            }
        }
        given
    }

    fn keep_core(&mut self, thread: &ThreadObservation, core: Option<&PuSet>) -> Option<usize> {
        let first = core?.first()?;
        let core = self.topology.core_of(first)?;
        let within_level = self.taken[core] < self.level.min(self.topology.cores()[core].pus.len());
        let as_extra = !within_level && self.taken[core] == self.level && self.extras > 0;
        let fits = self.has_free_pu(core, thread) && (within_level || as_extra);
        if fits && as_extra {
            self.extras -= 1;
        }
        fits.then(|| self.take_core(core))
    }

    /// The core with the fewest threads; among equals the largest, where the thread runs now, the
    /// emptiest LLC domain.
    fn take_emptiest(&mut self, thread: &ThreadObservation) -> Option<usize> {
        let usable = (0..self.taken.len()).filter(|&core| self.has_free_pu(core, thread));
        let best = usable.min_by_key(|&core| {
            let facts = &self.topology.cores()[core];
            let capacity = self.topology.core_types()[facts.core_type].capacity;
            let elsewhere = thread.last_pu.is_none_or(|pu| !facts.pus.contains(&pu));
            (
                self.taken[core],
                std::cmp::Reverse(capacity),
                elsewhere,
                self.domain_load(facts.llc),
                core,
            )
        })?;
        Some(self.take_core(best))
    }

    fn has_free_pu(&self, core: usize, thread: &ThreadObservation) -> bool {
        let pus = &self.topology.cores()[core].pus;
        let usable = pus
            .iter()
            .filter(|pu| thread.original.contains(**pu))
            .count();
        self.taken[core] < usable
    }

    fn domain_load(&self, llc: usize) -> usize {
        let cores = &self.topology.llcs()[llc].cores;
        cores.iter().map(|&core| self.taken[core]).sum()
    }

    fn take_core(&mut self, core: usize) -> usize {
        self.taken[core] += 1;
        core
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PuId;
    use crate::sample::{Observation, Reading};
    use crate::signal::{Signal, Tier};
    use crate::testing::{INTERVAL_NS, observation, observation_with_activity, opened, thread_id};
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn spread() -> Box<dyn Policy> {
        opened(&Topology::uniform(2, 2).unwrap(), "spread")
    }

    fn decide(
        policy: &mut dyn Policy,
        topology: &Topology,
        threads: &[(u32, f64, f64)],
    ) -> Decision {
        let observation = observation_with_activity(topology, threads);
        let view = View {
            topology,
            observation: &observation,
        };
        policy.decide(view, &mut PolicyRng::seed_from_u64(0))
    }

    fn busy(threads: u32) -> Vec<(u32, f64, f64)> {
        (1..=threads).map(|tid| (tid, 0.0, 1.0)).collect()
    }

    /// Threads per core under a decision.
    fn loads(topology: &Topology, decision: &Decision) -> Vec<usize> {
        let mut loads = vec![0; topology.cores().len()];
        for placement in decision.placements.values() {
            if let Placement::Restricted(pus) = placement {
                loads[topology.core_of(pus.first().unwrap()).unwrap()] += 1;
            }
        }
        loads
    }

    #[test]
    fn a_thread_that_waits_for_a_pu_is_active() {
        let topology = Topology::uniform(2, 1).unwrap();
        let mut seen = observation_with_activity(&topology, &[(1, 0.0, 0.01)]);
        let placed = |seen: &Observation| {
            let view = View {
                topology: &topology,
                observation: seen,
            };
            let decision = spread().decide(view, &mut PolicyRng::seed_from_u64(0));
            decision.placements[&thread_id(1)] != Placement::Unrestricted
        };
        assert!(!placed(&seen));
        let waited = Reading::fully_counted(0.9 * INTERVAL_NS as f64, Tier::Proc, INTERVAL_NS);
        seen.threads[0].sample.set(Signal::WaitTime, waited);
        assert!(placed(&seen));
    }

    /// Two threads on two PUs, the first of which waits for `waits` of the time that it could run.
    fn contended(waits: f64, idle_pus: f64) -> Observation {
        let topology = Topology::uniform(2, 1).unwrap();
        let mut seen =
            observation_with_activity(&topology, &[(1, 0.0, 1.0 - waits), (2, 0.0, 1.0)]);
        let waited = Reading::fully_counted(waits * INTERVAL_NS as f64, Tier::Proc, INTERVAL_NS);
        seen.threads[0].sample.set(Signal::WaitTime, waited);
        seen.idle_pus = Some(idle_pus);
        seen
    }

    /// The reasons for the places of both threads, and whether each is placed.
    fn reasons(policy: &mut dyn Policy, seen: &Observation) -> [(bool, String); 2] {
        let topology = Topology::uniform(2, 1).unwrap();
        let view = View {
            topology: &topology,
            observation: seen,
        };
        let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(0));
        [1, 2].map(thread_id).map(|id| {
            let placed = decision.placements[&id] != Placement::Unrestricted;
            (placed, decision.report.threads[&id].chosen.clone())
        })
    }

    #[test]
    fn threads_are_released_while_other_work_waits() {
        let mut policy = spread();
        let alone = contended(0.0, 0.0);
        assert!(
            reasons(&mut *policy, &alone)
                .iter()
                .all(|(placed, _)| *placed)
        );
        let why =
            "left to the OS: work waits for PUs and none is idle, so that the kernel balances";
        let released = reasons(&mut *policy, &contended(0.5, 0.1));
        assert_eq!(released, [(false, why.to_owned()), (false, why.to_owned())]);
        let soon = reasons(&mut *policy, &alone);
        assert!(soon.iter().all(|(placed, _)| !placed), "{soon:?}");
        for _ in 0..5 {
            reasons(&mut *policy, &alone);
        }
        assert!(
            reasons(&mut *policy, &alone)
                .iter()
                .all(|(placed, _)| *placed)
        );
    }

    #[test]
    fn thread_that_waits_in_its_place_is_released_though_others_stay() {
        let mut policy = spread();
        let crowded_start = contended(0.5, 1.0);
        let placed = reasons(&mut *policy, &crowded_start);
        assert!(placed.iter().all(|(placed, _)| *placed), "a place may help");
        let released = reasons(&mut *policy, &contended(0.5, 1.0));
        assert_eq!(released.map(|(placed, _)| placed), [false, true]);
    }

    #[test]
    fn threads_stay_placed_where_the_kernel_does_not_balance() {
        let topology = Topology::uniform(2, 1).unwrap();
        let topology = topology.with_unbalanced(&"0-1".parse().unwrap());
        let mut policy = spread();
        for _ in 0..3 {
            let seen = contended(0.5, 0.0);
            let view = View {
                topology: &topology,
                observation: &seen,
            };
            let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(0));
            assert_eq!(loads(&topology, &decision), [1, 1]);
        }
    }

    #[test]
    fn every_thread_that_runs_is_placed_if_that_is_asked_for() {
        let mut policy = opened(&Topology::uniform(2, 1).unwrap(), "spread:active=0");
        let mut seen = contended(0.5, 0.0);
        seen.left = [(thread_id(2), crate::LeaveReason::Brief(0.2))].into();
        for _ in 0..3 {
            assert!(
                reasons(&mut *policy, &seen)
                    .iter()
                    .all(|(placed, _)| *placed)
            );
        }
    }

    #[test]
    fn servers_are_left_to_the_os_with_the_reason() {
        let mut seen = contended(0.0, 1.0);
        seen.left = [(thread_id(2), crate::LeaveReason::Brief(0.2))].into();
        let [hog, server] = reasons(&mut *spread(), &seen);
        assert!(hog.0);
        let why = "left to the OS: runs 0.2 ms between sleeps";
        assert_eq!(server, (false, why.to_owned()));
    }

    #[test]
    fn idle_cores_first_then_idle_pus() {
        let topology = Topology::uniform(4, 2).unwrap();
        let loads = |n| loads(&topology, &decide(&mut *spread(), &topology, &busy(n)));
        assert_eq!(loads(3), [1, 1, 1, 0]);
        assert_eq!(loads(6), [2, 2, 1, 1]);
        assert_eq!(loads(8), [2, 2, 2, 2]);
    }

    #[test]
    fn threads_are_restricted_to_whole_cores() {
        let topology = Topology::uniform(2, 2).unwrap();
        let decision = decide(&mut *spread(), &topology, &busy(1));
        let core = Placement::Restricted("0,2".parse().unwrap());
        assert_eq!(decision.placements[&thread_id(1)], core);
    }

    #[test]
    fn with_more_active_threads_than_pus_the_most_active_are_placed() {
        let topology = Topology::uniform(2, 1).unwrap();
        let mut policy = spread();
        let threads = [(1, 0.0, 0.5), (2, 0.0, 0.8), (3, 0.0, 0.7)];
        let decision = decide(&mut *policy, &topology, &threads);
        assert_eq!(loads(&topology, &decision), [1, 1]);
        assert_eq!(decision.placements[&thread_id(1)], Placement::Unrestricted);
        let nearly_equal = [(1, 0.0, 0.72), (2, 0.0, 0.7), (3, 0.0, 0.68)];
        let again = decide(&mut *policy, &topology, &nearly_equal);
        assert_eq!(again.placements, decision.placements);
    }

    #[test]
    fn sleepers_are_left_to_the_os() {
        let topology = Topology::uniform(2, 1).unwrap();
        let threads = [(1, 0.0, 1.0), (2, 0.0, 0.1)];
        let decision = decide(&mut *spread(), &topology, &threads);
        assert_eq!(decision.placements[&thread_id(2)], Placement::Unrestricted);
    }

    #[test]
    fn placed_threads_stay_unless_another_core_would_idle() {
        let topology = Topology::uniform(4, 2).unwrap();
        let mut policy = spread();
        let all = decide(&mut *policy, &topology, &busy(8));
        let fewer: Vec<_> = busy(8).into_iter().filter(|t| t.0 != 3).collect();
        let after = decide(&mut *policy, &topology, &fewer);
        for (id, placement) in &after.placements {
            assert_eq!(placement, &all.placements[id]);
        }
        let half: Vec<_> = busy(8).into_iter().take(5).collect();
        let after = decide(&mut *policy, &topology, &half);
        assert_eq!(loads(&topology, &after).iter().max(), Some(&2));
        assert_eq!(loads(&topology, &after).iter().min(), Some(&1));
    }

    #[test]
    fn the_larger_cores_fill_first() {
        let facts = |pu, core_type| crate::topology::PuFacts {
            pu: PuId(pu),
            package: 0,
            node: 0,
            core: pu,
            llc: 0,
            l2: None,
            core_type,
        };
        let kind = |name: &str, capacity| crate::topology::CoreType {
            name: name.into(),
            capacity,
            pipeline: None,
        };
        let topology = Topology::new(
            vec![facts(0, 1), facts(1, 0)],
            vec![kind("big", 1024), kind("little", 400)],
        )
        .unwrap();
        let seen = observation(&topology, &[(1, 0.0)]);
        let decision = decide(&mut *spread(), &topology, &busy(1));
        assert_eq!(seen.threads.len(), 1);
        let big = Placement::Restricted(PuId(1).into());
        assert_eq!(decision.placements[&thread_id(1)], big);
    }

    proptest! {
        #[test]
        fn no_core_idles_while_another_is_doubled(
            cores in 1u32..8,
            ways in 1u32..5,
            rounds in prop::collection::vec(prop::collection::btree_set(1u32..40, 0..32), 1..5),
        ) {
            let topology = Topology::uniform(cores, ways).unwrap();
            let mut policy = spread();
            for tids in rounds {
                let threads: Vec<_> = tids.iter().map(|&tid| (tid, 0.0, 1.0)).collect();
                let decision = decide(&mut *policy, &topology, &threads);
                let loads = loads(&topology, &decision);
                let placed = tids.len().min((cores * ways) as usize);
                prop_assert_eq!(loads.iter().sum::<usize>(), placed);
                let spread = loads.iter().max().unwrap() - loads.iter().min().unwrap();
                prop_assert!(spread <= 1, "{loads:?}");
            }
        }
    }
}
