use super::*;
use crate::ids::ThreadId;
use crate::plan::Plan;
use crate::sample::Observation;
use crate::testing::{observation, observation_with_activity, opened, thread_id};
use crate::topology::{CoreType, PuFacts};
use proptest::prelude::*;
use rand::SeedableRng;
use std::sync::Arc;

fn policy(spec: &str) -> Box<dyn Policy> {
    opened(&Topology::uniform(2, 2).unwrap(), spec)
}

fn decide(policy: &mut dyn Policy, topology: &Topology, observation: &Observation) -> Decision {
    let view = View {
        topology,
        observation,
    };
    policy.decide(view, &mut PolicyRng::seed_from_u64(1))
}

/// The CPU of each thread, by tid; none when it is unrestricted.
fn pus(decision: &Decision, tids: &[u32]) -> Vec<Option<u32>> {
    let pu = |tid: &u32| match decision.placements.get(&thread_id(*tid))? {
        Placement::Restricted(pus) => pus.first().map(|pu| pu.0),
        Placement::Unrestricted => None,
    };
    tids.iter().map(pu).collect()
}

fn cores(topology: &Topology, decision: &Decision, tids: &[u32]) -> Vec<usize> {
    let pus = pus(decision, tids);
    pus.iter()
        .map(|pu| topology.core_of(PuId(pu.unwrap())).unwrap())
        .collect()
}

fn distinct(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// Threads 1..=heavy are FPU-heavy, the following `light` are not.
fn half_and_half(topology: &Topology, heavy: u32, light: u32) -> Observation {
    let usage = |tid| if tid <= heavy { 0.6 } else { 0.01 };
    let threads: Vec<_> = (1..=heavy + light).map(|tid| (tid, usage(tid))).collect();
    observation(topology, &threads)
}

/// Two nodes of `cores` cores x `ways`; node n has CPUs n*cores*ways onwards.
fn two_nodes(cores: u32, ways: u32) -> Topology {
    let per_node = cores * ways;
    let facts = (0..2 * per_node).map(|pu| PuFacts {
        pu: PuId(pu),
        package: pu / per_node,
        node: pu / per_node,
        core: pu / ways,
        llc: pu / per_node,
        l2: None,
        core_type: 0,
    });
    Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap()
}

#[test]
fn smt2_separates_heavy_threads() {
    let topology = Topology::uniform(4, 2).unwrap();
    let seen = half_and_half(&topology, 4, 4);
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    assert_eq!(distinct(cores(&topology, &decision, &[1, 2, 3, 4])), 4);
    assert_eq!(distinct(cores(&topology, &decision, &[5, 6, 7, 8])), 4);
}

#[test]
fn smt4_separates_heavy_threads() {
    let topology = Topology::uniform(8, 4).unwrap();
    let seen = half_and_half(&topology, 8, 24);
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    let heavy: Vec<u32> = (1..=8).collect();
    assert_eq!(distinct(cores(&topology, &decision, &heavy)), 8);
}

#[test]
fn heaviest_thread_is_beside_the_lightest() {
    let topology = Topology::uniform(2, 2).unwrap();
    let seen = observation(&topology, &[(1, 0.9), (2, 0.6), (3, 0.5), (4, 0.1)]);
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    let core = cores(&topology, &decision, &[1, 2, 3, 4]);
    assert_eq!(core[0], core[3], "0.9 beside 0.1");
    assert_eq!(core[1], core[2], "0.6 beside 0.5");
}

#[test]
fn aggregate_puts_like_with_like() {
    let topology = Topology::uniform(4, 2).unwrap();
    let seen = half_and_half(&topology, 4, 4);
    let decision = decide(&mut *policy("aggregate"), &topology, &seen);
    assert_eq!(distinct(cores(&topology, &decision, &[1, 2, 3, 4])), 2);
}

/// Two cores of FPU-heavy threads and two of others; whichever class ends, and though no thread is
/// heavy any more, the other stays where it was, two to a core.
#[test]
fn aggregate_keeps_places_when_a_class_ends() {
    let topology = Topology::uniform(4, 2).unwrap();
    let seen = half_and_half(&topology, 4, 4);
    for (rest, tids) in [(0..4, [1, 2, 3, 4]), (4..8, [5, 6, 7, 8])] {
        let mut policy = policy("aggregate");
        let before = decide(&mut *policy, &topology, &seen);
        let left = Observation {
            threads: seen.threads[rest].to_vec(),
            ..seen.clone()
        };
        for _ in 0..3 {
            let after = decide(&mut *policy, &topology, &left);
            assert_eq!(pus(&after, &tids), pus(&before, &tids));
            assert_eq!(distinct(cores(&topology, &after, &tids)), 2);
        }
        let again = decide(&mut *policy, &topology, &seen);
        assert_eq!(pus(&again, &tids), pus(&before, &tids));
    }
}

#[test]
fn when_no_thread_is_heavy_nobody_is_restricted() {
    let topology = Topology::uniform(2, 2).unwrap();
    let seen = half_and_half(&topology, 0, 4);
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    assert_eq!(pus(&decision, &[1, 2, 3, 4]), [None; 4]);
    assert_eq!(decision.report.notes.len(), 1);
}

#[test]
fn idle_and_excess_threads_are_left_to_os() {
    let topology = Topology::uniform(1, 2).unwrap();
    let threads = [(1, 0.5, 1.0), (2, 0.5, 0.6), (3, 0.5, 0.4), (4, 0.9, 0.01)];
    let seen = observation_with_activity(&topology, &threads);
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    let placed = pus(&decision, &[1, 2, 3, 4]);
    assert!(placed[0].is_some() && placed[1].is_some());
    assert_eq!(placed[2..], [None, None]);
}

#[test]
fn moves_happen_only_when_group_membership_changes() {
    let topology = Topology::uniform(2, 2).unwrap();
    let mut policy = policy("workover:margin=0");
    let first = observation(&topology, &[(1, 0.9), (2, 0.8), (3, 0.2), (4, 0.1)]);
    let before = decide(&mut *policy, &topology, &first);
    let order_changes = observation(&topology, &[(1, 0.7), (2, 0.8), (3, 0.1), (4, 0.2)]);
    let after = decide(&mut *policy, &topology, &order_changes);
    assert_eq!(before.placements, after.placements);
    let group_changes = observation(&topology, &[(1, 0.3), (2, 0.8), (3, 0.9), (4, 0.2)]);
    let swapped = decide(&mut *policy, &topology, &group_changes);
    assert_eq!(pus(&swapped, &[2, 4]), pus(&before, &[2, 4]));
    assert_eq!(pus(&swapped, &[3]), pus(&before, &[1]));
}

#[test]
fn a_lead_below_the_margin_changes_no_group() {
    let topology = Topology::uniform(2, 2).unwrap();
    let mut policy = policy("workover:margin=0.1");
    let first = observation(&topology, &[(1, 0.9), (2, 0.52), (3, 0.48), (4, 0.1)]);
    let before = decide(&mut *policy, &topology, &first);
    let noise = observation(&topology, &[(1, 0.9), (2, 0.48), (3, 0.52), (4, 0.1)]);
    assert_eq!(
        before.placements,
        decide(&mut *policy, &topology, &noise).placements
    );
    let real = observation(&topology, &[(1, 0.9), (2, 0.3), (3, 0.7), (4, 0.1)]);
    let after = decide(&mut *policy, &topology, &real);
    assert_ne!(before.placements, after.placements);
}

#[test]
fn returning_thread_gets_its_most_used_pu() {
    let topology = Topology::uniform(2, 2).unwrap();
    let mut policy = policy("workover");
    let full = half_and_half(&topology, 2, 2);
    let before = decide(&mut *policy, &topology, &full);
    decide(&mut *policy, &topology, &full);
    let asleep = observation_with_activity(
        &topology,
        &[(1, 0.6, 0.0), (2, 0.6, 1.0), (3, 0.01, 1.0), (4, 0.01, 1.0)],
    );
    assert_eq!(pus(&decide(&mut *policy, &topology, &asleep), &[1]), [None]);
    let again = decide(&mut *policy, &topology, &full);
    assert_eq!(pus(&again, &[1, 2]), pus(&before, &[1, 2]));
}

#[test]
fn threads_stay_on_a_node_with_room() {
    let topology = two_nodes(2, 2);
    let mut seen = half_and_half(&topology, 4, 4);
    for (i, thread) in seen.threads.iter_mut().enumerate() {
        thread.last_pu = Some(PuId(if i % 2 == 0 { 0 } else { 4 }));
    }
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    for (i, pu) in pus(&decision, &[1, 2, 3, 4, 5, 6, 7, 8]).iter().enumerate() {
        let node = usize::from(pu.unwrap() >= 4);
        assert_eq!(node, i % 2, "thread {} on CPU {pu:?}", i + 1);
    }
    assert_eq!(distinct(cores(&topology, &decision, &[1, 2, 3, 4])), 4);
}

#[test]
fn a_crowded_node_gives_threads_to_the_other() {
    let topology = two_nodes(2, 2);
    let mut seen = half_and_half(&topology, 4, 0);
    for thread in &mut seen.threads {
        thread.last_pu = Some(PuId(0));
    }
    let decision = decide(&mut *policy("workover"), &topology, &seen);
    assert_eq!(distinct(cores(&topology, &decision, &[1, 2, 3, 4])), 4);
}

/// Any machine, threads and masks: (cores, ways, per thread: usage, share, mask bits).
type Case = (u32, u32, Vec<(f64, f64, u64)>);

fn case() -> impl Strategy<Value = Case> {
    let thread = (0.0f64..1.0, 0.0f64..1.0, 1u64..u64::MAX);
    (1u32..6, 1u32..5, prop::collection::vec(thread, 0..40))
}

fn observe(topology: &Topology, threads: &[(f64, f64, u64)]) -> Observation {
    let rows: Vec<_> = (1..).zip(threads).map(|(tid, t)| (tid, t.0, t.1)).collect();
    let mut seen = observation_with_activity(topology, &rows);
    for (thread, (_, _, bits)) in seen.threads.iter_mut().zip(threads) {
        let mask = topology
            .pus()
            .iter()
            .filter(|pu| bits & (1 << (pu.0 % 64)) != 0);
        thread.original = Arc::new(mask.collect());
    }
    seen
}

fn restricted(decision: &Decision) -> Vec<(ThreadId, PuSet)> {
    let one = |(id, p): (&ThreadId, &Placement)| match p {
        Placement::Restricted(pus) => Some((*id, pus.clone())),
        Placement::Unrestricted => None,
    };
    decision.placements.iter().filter_map(one).collect()
}

proptest! {
    #[test]
    fn plans_are_sound_for_any_machine_and_masks((cores, ways, threads) in case(), flip in any::<bool>()) {
        let topology = Topology::uniform(cores, ways).unwrap();
        let seen = observe(&topology, &threads);
        let name = if flip { "aggregate" } else { "workover" };
        let mut policy = policy(name);
        for generation in 1..4 {
            let decision = decide(&mut *policy, &topology, &seen);
            let plan = Plan {
                generation,
            quantum_ns: None,
                placements: decision.placements.clone(),
                report: decision.report.clone(),
                ..Plan::default()
            };
            let findings = crate::lint::lint(&topology, &seen, generation - 1, &plan);
            prop_assert!(findings.is_empty(), "{findings:?}");
            let mut taken = PuSet::new();
            for (_, pus) in restricted(&decision) {
                prop_assert_eq!(pus.len(), 1);
                prop_assert!(taken.intersection(&pus).is_empty(), "a CPU is given twice");
                taken = taken.union(&pus);
            }
        }
    }

    #[test]
    fn the_same_observation_again_moves_nobody((cores, ways, threads) in case()) {
        let topology = Topology::uniform(cores, ways).unwrap();
        let seen = observe(&topology, &threads);
        let mut policy = policy("workover");
        let first = decide(&mut *policy, &topology, &seen);
        let second = decide(&mut *policy, &topology, &seen);
        prop_assert_eq!(first.placements, second.placements);
    }
}
