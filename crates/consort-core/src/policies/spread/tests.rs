//! Threads on the cores of small machines.

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

fn decide(policy: &mut dyn Policy, topology: &Topology, threads: &[(u32, f64, f64)]) -> Decision {
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
fn thread_waiting_for_a_pu_is_active() {
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

/// Two threads on two CPUs, the first of which waits for `waits` of the time that it could run.
fn contended(waits: f64, idle_pus: f64) -> Observation {
    let topology = Topology::uniform(2, 1).unwrap();
    let mut seen = observation_with_activity(&topology, &[(1, 0.0, 1.0 - waits), (2, 0.0, 1.0)]);
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
    let why = "not placed: work waits for CPUs and none is idle, so that the kernel balances";
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
fn waiting_thread_is_released_and_others_stay() {
    let mut policy = spread();
    let crowded_start = contended(0.5, 1.0);
    let placed = reasons(&mut *policy, &crowded_start);
    assert!(placed.iter().all(|(placed, _)| *placed), "a place may help");
    let released = reasons(&mut *policy, &contended(0.5, 1.0));
    assert_eq!(released.map(|(placed, _)| placed), [false, true]);
}

#[test]
fn threads_stay_placed_on_unbalanced_pus() {
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
fn every_running_thread_is_placed_with_active_zero() {
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
fn servers_are_left_with_a_reason() {
    let mut seen = contended(0.0, 1.0);
    seen.left = [(thread_id(2), crate::LeaveReason::Brief(0.2))].into();
    let [hog, server] = reasons(&mut *spread(), &seen);
    assert!(hog.0);
    let why = "not placed: runs 0.2 ms between sleeps";
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
fn most_active_threads_are_placed() {
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

#[test]
fn cores_that_were_compared_are_reported() {
    let topology = Topology::uniform(3, 1).unwrap();
    let seen = observation_with_activity(&topology, &[(1, 0.0, 1.0), (2, 0.0, 1.0)]);
    let view = View {
        topology: &topology,
        observation: &seen,
    };
    let mut policy = opened(&topology, "spread");
    let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(0));
    // Each thread has a core of its own, one core is empty, and the other thread fills the last.
    let compared = &decision.report.alternatives[&thread_id(1)];
    let costs: Vec<(f64, bool)> = compared.iter().map(|a| (a.cost, a.is_chosen)).collect();
    assert_eq!(costs, [(0.0, true), (0.0, false), (1.0, false)]);
}
