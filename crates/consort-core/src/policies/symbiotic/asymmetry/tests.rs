use super::super::tests::{World, offers, policy, spec};
use crate::plan::{Decision, Fact};
use crate::policies;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::testing::thread_id;
use crate::topology::Topology;

const ON: &str = ",core-asymmetry=true,period=40";

/// Two threads to a core; those of a core are alike, so that pairs differ.
const MEMORY: [f64; 8] = [0.8, 0.75, 0.7, 0.65, 0.1, 0.12, 0.14, 0.16];

/// A world of four cores after `quanta`, with its last decision.
fn after(quanta: usize, farther: &[f64], options: &str) -> (World, Decision) {
    let mut world = World::new(4, 2, &MEMORY);
    world.farther = farther.to_vec();
    let topology = world.topology.clone();
    let mut policy = policy(&topology, options);
    let turns = (0..quanta).map(|_| world.turn(policy.as_mut()));
    let last = turns.last().unwrap();
    (world, last)
}

fn fact<'a>(decision: &'a Decision, thread: u32, name: &str) -> &'a Fact {
    let reason = &decision.report.threads[&thread_id(thread)];
    let mut facts = reason.facts.iter();
    facts.find(|fact| fact.name == name).unwrap()
}

#[test]
fn disadvantages_are_learnt_and_told() {
    let farther = [0.3, -0.3, 0.3, -0.3];
    let (world, last) = after(200, &farther, ON);
    for thread in 0..8 {
        let learnt = fact(&last, thread, "disadvantage of the core").value;
        let planted = farther[world.core(thread as usize)];
        assert!((learnt - planted).abs() < 0.1, "{learnt} for {planted}");
    }
}

#[test]
fn groups_that_wait_most_get_the_near_cores() {
    let (world, _) = after(200, &[0.3, -0.3, 0.3, -0.3], ON);
    let waits = |core: usize| -> f64 {
        let on = (0..8).filter(|&thread| world.core(thread) == core);
        on.map(|thread| MEMORY[thread]).sum()
    };
    let far = waits(0).max(waits(2));
    let near = waits(1).min(waits(3));
    assert!(near > far, "{near} {far}");
}

/// The paper's rule: pairs are those of every core alike, and the two that wait most are on the
/// first two of four cores.
#[test]
fn first_half_gets_the_pairs_that_wait_most() {
    let mixed = [0.1, 0.8, 0.12, 0.75, 0.14, 0.7, 0.16, 0.65];
    let mut world = World::new(4, 2, &mixed);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",core-asymmetry=first-half");
    for _ in 0..5 {
        world.turn(policy.as_mut());
    }
    let waits = |core: usize| -> f64 {
        let on = (0..8).filter(|&thread| world.core(thread) == core);
        on.map(|thread| mixed[thread]).sum()
    };
    assert!(waits(0).min(waits(1)) >= waits(2).max(waits(3)));
}

/// The other reading: whatever the pairs, the four threads that wait most are on the first two of
/// four cores.
#[test]
fn first_half_inside_gets_the_most_memory_bound() {
    let mixed = [0.1, 0.8, 0.12, 0.75, 0.14, 0.7, 0.16, 0.65];
    let mut world = World::new(4, 2, &mixed);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",core-asymmetry=first-half-inside");
    for _ in 0..5 {
        world.turn(policy.as_mut());
    }
    for (thread, memory) in mixed.iter().enumerate() {
        assert_eq!(world.core(thread) < 2, *memory > 0.5, "{thread}");
    }
}

#[test]
fn equal_cores_cause_no_moves() {
    let mut world = World::new(4, 2, &MEMORY);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ON);
    let (mut before, mut measured, mut moved) = (None, false, 0);
    for _ in 0..100 {
        let decision = world.turn(policy.as_mut());
        let now: Vec<usize> = (0..8).map(|thread| world.core(thread)).collect();
        let plain = decision.quantum_ns.is_none() && !measured;
        moved += usize::from(plain && before.as_ref().is_some_and(|before| *before != now));
        (before, measured) = (Some(now), decision.quantum_ns.is_some());
    }
    assert_eq!(moved, 0);
    let decision = world.turn(policy.as_mut());
    assert!(fact(&decision, 0, "disadvantage of the core").value.abs() < 1e-9);
}

/// After the first pairing, then 4, 8, 16, 32 and 40 quanta apart.
#[test]
fn first_measurements_come_sooner() {
    let mut world = World::new(4, 2, &MEMORY);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ON);
    let alone = (0..120).filter(|_| world.turn(policy.as_mut()).quantum_ns.is_some());
    assert_eq!(alone.count(), 6);
}

fn refusal(options: &str, offers: &SignalOffers) -> String {
    let topology = Topology::uniform(2, 2).unwrap();
    let opened = policies::open(&topology, offers, &spec(options));
    opened.err().unwrap().to_string()
}

#[test]
fn what_it_cannot_do_is_refused() {
    let both = refusal(",core-asymmetry=true,numa=true", &offers(Tier::Counters));
    assert!(
        both.contains("expected false or no such option with core-asymmetry=true"),
        "{both}"
    );
    let few = [Signal::CpuTime, Signal::CycleStack].map(|signal| (signal, Tier::Counters));
    let uncounted = refusal(ON, &few.into_iter().collect());
    assert!(uncounted.contains("cycles and instructions"), "{uncounted}");
    let mut blind = offers(Tier::Counters);
    blind.set_stack(vec!["base".into(), "rest".into()]);
    let blind = refusal(ON, &blind);
    assert!(blind.contains("offers no memory-stall"), "{blind}");
    assert!(blind.contains("[base, rest]"), "{blind}");
}
