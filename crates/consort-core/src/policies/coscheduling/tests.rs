//! Drivers on a made-up machine.

use super::testing::World;
use crate::ids::ProgramId;
use crate::plan::Placement;
use crate::pu_set::PuSet;
use crate::signal::Signal;
use proptest::prelude::*;
use std::collections::BTreeSet;

const POLICIES: [&str; 5] = ["gang", "fair-mis", "fair-com", "greedy", "pdpa"];

/// The slots of so many quanta, from the first plan on.
fn quanta(world: &mut World, n: usize) -> Vec<Vec<(u32, u32)>> {
    let mut slots = Vec::new();
    for _ in 0..n {
        world.turn();
        slots.push(world.slot());
        world.turn();
    }
    slots
}

/// The notes of the plan that holds.
fn notes(world: &World) -> String {
    world.plan.report.notes.join("; ")
}

#[test]
fn gang_gives_each_program_all_cores() {
    let mut world = World::new("gang", &[(8.0, 0.1), (2.0, 0.2), (2.0, 0.3)]);
    let slots = quanta(&mut world, 4);
    assert_eq!(slots, [[(1, 8)], [(2, 8)], [(3, 8)], [(1, 8)]]);
    let paused: Vec<u32> = world.plan.paused.iter().map(|p| p.0).collect();
    assert_eq!(paused, [2, 3]);
}

#[test]
fn gang_quantum_has_two_parts() {
    let mut world = World::new("gang", &[(8.0, 0.1), (2.0, 0.2)]);
    assert_eq!(world.turn().quantum_ns, Some(1_000_000_000));
    let slots: Vec<_> = (0..4).map(|_| (world.slot(), world.turn()).0).collect();
    assert_eq!(slots, [[(1, 8)], [(1, 8)], [(2, 8)], [(2, 8)]]);
}

#[test]
fn fair_round_samples_tries_and_takes_turns() {
    // Neither uses more than two cores: together they lose nothing and get two quanta.
    let mut world = World::new("fair-mis", &[(2.0, 0.0), (2.0, 0.0)]);
    let slots = quanta(&mut world, 6);
    // All cores, one core, the co-schedule, one more and one fewer.
    assert_eq!(slots[..4], [[(1, 8)], [(2, 8)], [(1, 1)], [(2, 1)]]);
    assert_eq!(slots[4], [(1, 4), (2, 4)]);
    quanta(&mut world, 10);
    assert!(notes(&world).starts_with("slots run in turn: worker (2) + worker (1)"));
    let reason = world.plan.report.threads.values().next().unwrap();
    assert!(
        reason.chosen.ends_with("for 2 quanta of the round"),
        "{}",
        reason.chosen
    );
    // Half of the energy, half of the time.
    let fact = |name: &str| {
        let fact = reason.facts.iter().find(|fact| fact.name == name);
        fact.map(|fact| fact.value)
    };
    assert_eq!(fact("energy-delay over the gang's"), Some(0.25));
    assert_eq!(fact("local speedup"), Some(2.0));
}

#[test]
fn near_linear_programs_run_alone() {
    let mut world = World::new("fair-mis", &[(8.0, 0.0), (2.0, 0.0), (2.0, 0.0)]);
    quanta(&mut world, 20);
    assert!(notes(&world).contains("they scale nearly linearly and run alone: worker (1)"));
    let slots = quanta(&mut world, 12);
    let alone = slots.iter().filter(|slot| slot[..] == [(1, 8)]).count();
    assert_eq!(alone, 4);
    assert!(
        slots
            .iter()
            .all(|slot| slot.len() != 1 || slot[0] == (1, 8))
    );
}

/// A share that samples on one core have told is not tried again: the seventh quantum tries the
/// partition, in which 2/4 is no less than the low threshold and nothing is free for 4/4.
#[test]
fn pdpa_runs_non_linear_programs_together() {
    let mut world = World::new("pdpa", &[(8.0, 0.0), (2.0, 0.0), (6.0, 0.0)]);
    let slots = quanta(&mut world, 7);
    assert_eq!(slots[..3], [[(1, 8)], [(2, 8)], [(3, 8)]]);
    assert_eq!(slots[3..6], [[(1, 1)], [(2, 1)], [(3, 1)]]);
    assert_eq!(slots[6], [(2, 4), (3, 4)]);
    quanta(&mut world, 1);
    let slots = quanta(&mut world, 6);
    let alone = slots.iter().filter(|slot| slot[..] == [(1, 8)]).count();
    let together = slots.iter().filter(|slot| slot[..] == [(2, 4), (3, 4)]);
    assert_eq!((alone, together.count()), (2, 4));
}

#[test]
fn where_slots_prove_worse_the_gang_comes_back() {
    // Alone each looks as if it used four cores; that they slow each other down only packing shows.
    let mut world = World::new("greedy:revert=true", &[(4.0, 3.0), (4.0, 3.0)]);
    let mut found = false;
    for _ in 0..60 {
        quanta(&mut world, 1);
        found |= notes(&world).contains("back to the gang: overall energy-delay");
    }
    assert!(found, "{}", notes(&world));
    assert_eq!(world.slot().len(), 1);
}

#[test]
fn greedy_keeps_worse_slots_without_revert() {
    let mut world = World::new("greedy", &[(4.0, 3.0), (4.0, 3.0)]);
    quanta(&mut world, 60);
    // By themselves both have their lowest energy-delay on four cores.
    assert_eq!(world.slot(), [(1, 4), (2, 4)]);
}

#[test]
fn miss_rate_shift_begins_a_new_round() {
    let mut world = World::new("fair-mis", &[(2.0, 0.1), (2.0, 0.0)]);
    quanta(&mut world, 30);
    assert!(notes(&world).starts_with("slots run in turn"));
    world.loads.get_mut(&1).unwrap().misses = 0.15;
    quanta(&mut world, 4);
    assert!(
        notes(&world).starts_with("slots run in turn"),
        "below the threshold"
    );
    world.loads.get_mut(&1).unwrap().misses = 0.3;
    quanta(&mut world, 3);
    let notes = notes(&world);
    assert!(
        notes.contains("a new phase of 1: the miss rate has shifted by"),
        "{notes}"
    );
}

#[test]
fn single_program_is_not_sampled() {
    for policy in POLICIES {
        let mut world = World::new(policy, &[(2.0, 0.1)]);
        assert!(
            quanta(&mut world, 5).iter().all(|slot| *slot == [(1, 8)]),
            "{policy}"
        );
    }
}

#[test]
fn without_programs_nothing_is_planned() {
    for policy in POLICIES {
        let mut world = World::new(policy, &[]);
        assert_eq!(*world.turn(), crate::plan::Decision::default());
    }
}

#[test]
fn only_new_programs_are_sampled() {
    let mut world = World::new("fair-com", &[(2.0, 0.0), (2.0, 0.0)]);
    quanta(&mut world, 20);
    let new = world.loads[&1];
    world.loads.insert(3, new);
    let slots = quanta(&mut world, 3);
    assert_eq!(slots[..2], [[(3, 8)], [(3, 1)]]);
    assert!(slots[2].len() > 1);
}

#[test]
fn program_with_unmanaged_thread_is_left_alone() {
    let mut world = World::new("gang", &[(8.0, 0.1), (2.0, 0.2), (2.0, 0.3)]);
    world.let_alone = vec![2];
    for _ in 0..6 {
        world.turn();
        assert!(!world.plan.paused.contains(&ProgramId(2)));
        assert!(world.plan.placements.keys().all(|thread| thread.pid != 2));
        assert!(notes(&world).contains("these threads of theirs are not managed: worker (2)"));
    }
}

#[test]
fn thread_with_own_affinity_is_not_placed() {
    let mut world = World::new("gang", &[(8.0, 0.1), (2.0, 0.2), (2.0, 0.3)]);
    (world.let_alone, world.self_placed) = (vec![2], true);
    let mut turns = [0, 0];
    for _ in 0..12 {
        world.turn();
        let is_paused = world.plan.paused.contains(&ProgramId(2));
        turns[usize::from(is_paused)] += 1;
        assert!(world.plan.placements.keys().all(|thread| thread.tid != 22));
        let expected = "keep their own affinity take turns and are not placed: 1 of worker (2)";
        assert!(notes(&world).contains(expected), "{}", notes(&world));
    }
    assert!(turns[0] > 0 && turns[1] > turns[0], "{turns:?}");
}

/// Change of the world between two intervals.
#[derive(Clone, Debug)]
enum Event {
    Come(u32, f64, f64),
    Go(u32),
    Miss(Vec<Signal>),
}

fn event() -> impl Strategy<Value = Event> {
    let signals = vec![
        Signal::CpuTime,
        Signal::Cycles,
        Signal::Instructions,
        Signal::LlcAccesses,
        Signal::LlcMisses,
        Signal::Energy,
    ];
    prop_oneof![
        (1u32..6, 0.5f64..9.0, 0.0f64..1.0).prop_map(|(p, s, m)| Event::Come(p, s, m)),
        (1u32..6).prop_map(Event::Go),
        prop::sample::subsequence(signals, 0..6).prop_map(Event::Miss),
    ]
}

/// Asserts that the plan that holds is sound.
fn check(world: &World) {
    let slot = world.slot();
    let cores: u32 = slot.iter().map(|(_, cores)| cores).sum();
    assert!(cores <= 8, "{slot:?}");
    assert_eq!(slot.is_empty(), world.loads.is_empty());
    // Else the control loop's backoff would judge slots that differ on purpose.
    assert_eq!(world.plan.quantum_ns.is_some(), !slot.is_empty());
    let mut used: Vec<(u32, PuSet)> = Vec::new();
    for (thread, placement) in &world.plan.placements {
        assert!(!world.is_outside(placement));
        assert!(world.plan.report.threads.contains_key(thread));
        if let Placement::Restricted(pus) = placement {
            let others = used.iter().filter(|(pid, _)| *pid != thread.pid);
            assert!(
                others
                    .into_iter()
                    .all(|(_, taken)| taken.intersection(pus).is_empty())
            );
            used.push((thread.pid, pus.clone()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn plans_are_sound_whatever_is_missing(
        policy in prop::sample::select(POLICIES.to_vec()),
        events in prop::collection::vec((event(), 1usize..30), 1..12),
    ) {
        let mut world = World::new(policy, &[(3.0, 0.2), (6.0, 0.5)]);
        for (event, turns) in events {
            match event {
                Event::Come(pid, scaling, misses) => {
                    world.loads.insert(pid, super::testing::Load { scaling, misses });
                }
                Event::Go(pid) => {
                    world.loads.remove(&pid);
                }
                Event::Miss(signals) => world.missing = signals,
            }
            for _ in 0..turns {
                world.turn();
                check(&world);
            }
        }
    }

    #[test]
    fn trials_are_bounded_and_every_program_runs(
        policy in prop::sample::select(POLICIES.to_vec()),
        loads in prop::collection::vec((0.5f64..9.0, 0.0f64..1.0), 1..6),
    ) {
        let n = loads.len();
        let mut world = World::new(policy, &loads);
        let bound = match policy {
            "gang" => 0,
            "greedy" => 8 * n,
            "pdpa" => 2 * n + 2 * 8 + 1,
            _ => 2 * n + 3 * n + 7 * n,
        };
        quanta(&mut world, bound + 1);
        prop_assert!(notes(&world).starts_with("slots run in turn"), "{}", notes(&world));
        // Two rounds, since the first may lead back to the gang.
        let slots = quanta(&mut world, 3 * n);
        let last = slots[n..].concat();
        let ran: BTreeSet<u32> = last.iter().map(|(pid, _)| *pid).collect();
        prop_assert_eq!(ran.len(), n);
    }
}

#[test]
fn sleeping_program_has_no_turns_or_pauses() {
    for policy in POLICIES {
        let mut world = World::new(policy, &[(8.0, 0.0); 3]);
        world.asleep = vec![2];
        // It is seen asleep in its first slot, which may follow samples of the others.
        quanta(&mut world, 20);
        for _ in 0..20 {
            world.turn();
            assert!(world.slot().iter().all(|(pid, _)| *pid != 2), "{policy}");
            assert!(!world.plan.paused.contains(&ProgramId(2)), "{policy}");
        }
    }
}

#[test]
fn sleeping_program_ends_its_slot_until_it_wakes() {
    let mut world = World::new("gang", &[(8.0, 0.0), (8.0, 0.0)]);
    world.turn();
    assert_eq!(world.slot(), [(1, 8)]);
    world.asleep = vec![1];
    world.turn();
    assert_eq!(world.slot(), [(2, 8)]);
    world.turn();
    assert_eq!(world.slot(), [(2, 8)]);
    world.asleep.clear();
    let slots = quanta(&mut world, 4);
    assert_eq!(slots.iter().filter(|slot| slot[..] == [(1, 8)]).count(), 2);
}

#[test]
fn waking_program_is_noticed_while_all_sleep() {
    let mut world = World::new("gang", &[(8.0, 0.0), (8.0, 0.0)]);
    world.asleep = vec![1, 2];
    quanta(&mut world, 3);
    assert!(world.plan.paused.is_empty());
    assert!(world.plan.quantum_ns.is_some());
    world.asleep = vec![1];
    world.turn();
    assert_eq!(world.slot(), [(2, 8)]);
}

#[test]
fn users_have_rotations_of_their_own() {
    let mut world = World::new("gang", &[(8.0, 0.0); 5]);
    let owner = |pid: u32| if pid == 1 { 1000 } else { 1001 };
    world.owners = (1..=5).map(|pid| (ProgramId(pid), owner(pid))).collect();
    for slot in quanta(&mut world, 8) {
        assert_eq!(slot[0], (1, 8), "the only program of its user");
        assert_eq!(slot.len(), 2);
    }
    let notes = notes(&world);
    assert_eq!(
        notes,
        "programs of user 1000 take turns: 1; programs of user 1001 take turns: 4"
    );
}

proptest! {
    #[test]
    fn awake_program_waits_only_for_own_user(
        policy in prop::sample::select(&POLICIES[..]),
        users in prop::collection::vec(0u32..3, 2..7),
        sleep in prop::collection::vec(prop::collection::vec(any::<bool>(), 6), 1..4),
    ) {
        let mut world = World::new(policy, &vec![(4.0, 0.1); users.len()]);
        let pids = 1..=users.len() as u32;
        world.owners = pids.clone().map(ProgramId).zip(users.iter().copied()).collect();
        for asleep in sleep {
            world.asleep = pids.clone().filter(|&pid| asleep[pid as usize - 1]).collect();
            for turn in 0..100 {
                world.turn();
                // A sleeper is found in its next slot at the latest.
                if turn < 90 {
                    continue;
                }
                let running = world.slot();
                for waiting in &world.plan.paused {
                    let owner = world.owners[waiting];
                    let mut others = running.iter().filter(|(pid, _)| {
                        world.owners[&ProgramId(*pid)] == owner && !world.asleep.contains(pid)
                    });
                    prop_assert!(others.next().is_some(), "{policy}: {waiting} waits for none");
                }
            }
        }
    }
}

#[test]
fn program_that_comes_and_goes_starves_no_other() {
    let mut world = World::new("gang", &[(8.0, 0.0); 4]);
    world.turn();
    world.done.clear();
    let fourth = world.loads[&4];
    for n in 0..40 {
        if n % 2 == 0 {
            world.loads.remove(&4);
        } else {
            world.loads.insert(4, fourth);
        }
        world.turn();
    }
    assert!(
        (1..=3).all(|pid| world.done[&pid] > 5e9),
        "{:?}",
        world.done
    );
}

#[test]
fn short_quanta_do_not_show_who_sleeps() {
    let mut world = World::new("gang:quantum=4", &[(8.0, 0.0), (8.0, 0.0)]);
    world.interval_ns = 2_000_000;
    // Nothing was counted in these intervals yet, although both are busy.
    world.asleep = vec![1, 2];
    for _ in 0..40 {
        world.turn();
        assert_eq!(world.plan.paused.len(), 1);
    }
    for _ in 0..80 {
        world.turn();
    }
    assert!(world.plan.paused.is_empty());
}
