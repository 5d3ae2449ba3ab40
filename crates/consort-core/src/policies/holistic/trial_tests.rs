//! The guidelines on machines whose answers are made up.

use super::tests::{decide, made};
use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement};
use crate::policies::holistic::rules::tests::machine;
use crate::policy::Policy;
use crate::pu_set::PuSet;
use crate::sample::{Observation, Reading, Sample, ThreadObservation};
use crate::signal::{Signal, Tier};
use crate::topology::Topology;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const INTERVAL_NS: u64 = 100_000_000;

fn id(program: u32, thread: u32) -> ThreadId {
    ThreadId {
        pid: program,
        tid: 100 * program + thread,
        start_ticks: 0,
    }
}

fn thread(topology: &Topology, id: ThreadId, counts: &[(Signal, f64)]) -> ThreadObservation {
    let mut sample = Sample::default();
    for &(signal, value) in counts {
        let reading = Reading::fully_counted(value, Tier::Counters, INTERVAL_NS);
        sample.set(signal, reading);
    }
    ThreadObservation {
        id,
        name: format!("program-{}", id.pid).into(),
        original: Arc::new(topology.pus().clone()),
        managed: true,
        last_pu: None,
        sample,
    }
}

fn quantum(threads: Vec<ThreadObservation>) -> Observation {
    Observation {
        time_ns: INTERVAL_NS,
        interval_ns: INTERVAL_NS,
        threads,
        ..Observation::default()
    }
}

/// LLC domain of a placement within one, on machines with two CPUs per domain.
fn domain(placement: Option<&Placement>) -> Option<u32> {
    match placement? {
        Placement::Unrestricted => None,
        Placement::Restricted(pus) => {
            let domains: Vec<u32> = pus.iter().map(|pu| pu.0 / 2).collect();
            domains.windows(2).all(|w| w[0] == w[1]).then(|| domains[0])
        }
    }
}

/// Two programs of four threads; those whose siblings are all in one domain are `bonus` times as
/// fast.
fn world(topology: &Topology, last: &Decision, bonus: f64) -> Observation {
    let mut threads = Vec::new();
    for program in [1, 2] {
        let ids: Vec<ThreadId> = (0..4).map(|t| id(program, t)).collect();
        let at = ids.iter().map(|id| domain(last.placements.get(id)));
        let at: Vec<Option<u32>> = at.collect();
        let together = at[0].is_some() && at.iter().all(|d| *d == at[0]);
        let speed = if together { bonus } else { 1.0 };
        for id in ids {
            let counts = [
                (Signal::CpuTime, INTERVAL_NS as f64 / 2.0),
                (Signal::WaitTime, INTERVAL_NS as f64 / 2.0),
                (Signal::Instructions, 1e8 * speed),
            ];
            threads.push(thread(topology, id, &counts));
        }
    }
    quantum(threads)
}

/// Notes of the last decision after so many quanta.
fn settle(policy: &mut dyn Policy, topology: &Topology, quanta: u32, bonus: f64) -> Decision {
    let mut last = Decision::default();
    for _ in 0..quanta {
        let seen = world(topology, &last, bonus);
        last = decide(policy, topology, &seen);
    }
    last
}

fn said(decision: &Decision, what: &str) -> bool {
    decision.report.notes.iter().any(|note| note.contains(what))
}

/// Looking, then at most six rounds of four mappings of three quanta.
const MOST_QUANTA: u32 = 1 + 4 + 6 * 4 * 3;

const COUNTED: [Signal; 2] = [Signal::CpuTime, Signal::Instructions];

#[test]
fn what_surely_beats_the_operating_system_is_kept() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let decision = settle(&mut *policy, &topology, MOST_QUANTA, 1.2);
    assert!(
        said(&decision, "iso: the most that is sure"),
        "{:#?}",
        decision.report.notes
    );
    // No longer than it takes to be sure.
    assert!(said(&decision, "after 3 rounds"));
    let first = domain(decision.placements.get(&id(1, 0))).unwrap();
    let other = domain(decision.placements.get(&id(2, 0))).unwrap();
    assert_ne!(first, other);
}

#[test]
fn what_loses_much_is_not_tried_again() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let mut on_trial = 0;
    let mut last = Decision::default();
    for _ in 0..MOST_QUANTA {
        let seen = world(&topology, &last, 0.5);
        last = decide(&mut *policy, &topology, &seen);
        on_trial += u32::from(said(&last, "iso: on trial"));
    }
    assert_eq!(on_trial, 3);
    assert!(said(&last, "os: nothing surely beats it"));
}

#[test]
fn quanta_until_a_mapping_is_chosen_are_short() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let first = settle(&mut *policy, &topology, 2, 1.2);
    assert_eq!(first.quantum_ns, Some(50_000_000));
    let settled = settle(&mut *policy, &topology, MOST_QUANTA, 1.2);
    assert_eq!(settled.quantum_ns, None);
}

#[test]
fn useless_mapping_is_left_to_the_os() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let decision = settle(&mut *policy, &topology, MOST_QUANTA, 1.0);
    assert!(said(&decision, "os: nothing surely beats it"));
    let all = decision.placements.values();
    assert!(all.into_iter().all(|p| *p == Placement::Unrestricted));
}

#[test]
fn once_settled_nobody_moves() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let before = settle(&mut *policy, &topology, MOST_QUANTA, 1.2);
    for _ in 0..50 {
        let seen = world(&topology, &before, 1.2);
        let after = decide(&mut *policy, &topology, &seen);
        assert_eq!(after.placements, before.placements);
    }
}

#[test]
fn returning_load_has_its_mapping_at_once() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let last = settle(&mut *policy, &topology, MOST_QUANTA, 1.2);
    let mut alone = world(&topology, &last, 1.2);
    alone.threads.truncate(4);
    let left: Vec<Decision> = { 0..4 }
        .map(|_| decide(&mut *policy, &topology, &alone))
        .collect();
    assert!(said(left.last().unwrap(), "watched"));
    let back = settle(&mut *policy, &topology, 4, 1.2);
    assert!(said(&back, "iso: the most that is sure"));
}

#[test]
fn briefly_missing_program_changes_nothing() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    let last = settle(&mut *policy, &topology, MOST_QUANTA, 1.2);
    let mut alone = world(&topology, &last, 1.2);
    alone.threads.truncate(4);
    let decision = decide(&mut *policy, &topology, &alone);
    assert!(said(&decision, "iso: the most that is sure"));
}

#[test]
fn a_new_phase_is_tried_anew() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    settle(&mut *policy, &topology, MOST_QUANTA + 80, 1.2);
    // From now on siblings that are together gain ten times as much: another phase.
    let after = settle(&mut *policy, &topology, 12, 12.0);
    assert!(
        !said(&after, "the most that is sure"),
        "{:#?}",
        after.report.notes
    );
}

#[test]
fn where_nothing_counts_instructions_nothing_is_tried() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &[Signal::CpuTime]);
    let mut last = Decision::default();
    for _ in 0..10 {
        let mut seen = world(&topology, &last, 1.0);
        for thread in &mut seen.threads {
            let counts = [(Signal::CpuTime, INTERVAL_NS as f64)];
            *thread = self::thread(&topology, thread.id, &counts);
        }
        last = decide(&mut *policy, &topology, &seen);
        assert!(
            last.placements
                .values()
                .all(|p| *p == Placement::Unrestricted)
        );
    }
    assert!(said(&last, "nothing can be tried"));
    assert!(said(&last, "not priced"));
}

#[test]
fn nothing_and_a_single_thread_are_left_alone() {
    let topology = machine(1, 2);
    let mut policy = made("holistic", &topology, &COUNTED);
    assert!(
        decide(&mut *policy, &topology, &quantum(Vec::new()))
            .placements
            .is_empty()
    );
    let one = || {
        let counts = [
            (Signal::CpuTime, INTERVAL_NS as f64),
            (Signal::Instructions, 1e8),
        ];
        quantum(vec![thread(&topology, id(1, 0), &counts)])
    };
    for _ in 0..MOST_QUANTA {
        decide(&mut *policy, &topology, &one());
    }
    let last = decide(&mut *policy, &topology, &one());
    assert_eq!(last.placements[&id(1, 0)], Placement::Unrestricted);
}

/// A thread in a quantum: how active, what is told of it, where it may run.
type Lot = (f64, [Option<f64>; 5], u32);

/// Threads by program and number.
fn rounds() -> impl Strategy<Value = Vec<BTreeMap<(u32, u32), Lot>>> {
    let value = prop_oneof![
        Just(None),
        (0.0f64..1e9).prop_map(Some),
        Just(Some(f64::NAN))
    ];
    let lot = (
        prop::sample::select(vec![0.0, 0.02, 0.5, 1.0]),
        prop::array::uniform5(value),
        1u32..16,
    );
    let thread = ((1u32..4, 0u32..6), lot);
    let round = prop::collection::btree_map(thread.0, thread.1, 0..14);
    let repeated = (round, 1usize..40).prop_map(|(round, times)| vec![round; times]);
    prop::collection::vec(repeated, 1..5).prop_map(|all| all.concat())
}

const TOLD: [Signal; 5] = [
    Signal::Instructions,
    Signal::LlcMisses,
    Signal::LlcAccesses,
    Signal::BusBusyCycles,
    Signal::FutexReturns,
];

fn observed(topology: &Topology, round: &BTreeMap<(u32, u32), Lot>) -> Observation {
    let one = |(&(program, number), &(share, reported, mask)): (&(u32, u32), &Lot)| {
        let mut counts = vec![(Signal::CpuTime, share * INTERVAL_NS as f64)];
        let reported = TOLD.into_iter().zip(reported);
        counts.extend(reported.filter_map(|(signal, value)| Some((signal, value?))));
        let mut thread = thread(topology, id(program, number), &counts);
        if mask < 4 {
            thread.original = Arc::new(PuSet::from_iter([PuId(mask)]));
        }
        thread.managed = mask != 15;
        thread
    };
    quantum(round.iter().map(one).collect())
}

proptest! {
    #[test]
    fn plans_stay_in_masks_and_starve_no_program(
        rounds in rounds(),
        nodes in 1u32..3,
        llcs in 1u32..3,
    ) {
        let topology = machine(nodes, llcs);
        let mut policy = made("holistic", &topology, &COUNTED);
        for round in &rounds {
            let seen = observed(&topology, round);
            let decision = decide(&mut *policy, &topology, &seen);
            let mut loads: BTreeMap<PuId, usize> = BTreeMap::new();
            for (id, placement) in &decision.placements {
                let thread = seen.thread(*id).unwrap();
                prop_assert!(thread.managed);
                if let Placement::Restricted(pus) = placement {
                    prop_assert!(!pus.is_empty() && pus.is_subset(&thread.original));
                    if pus.len() == 1 {
                        *loads.entry(pus.first().unwrap()).or_default() += 1;
                    }
                }
            }
            let most = loads.values().copied().max().unwrap_or(0);
            prop_assert!(most <= seen.threads.len().div_ceil(topology.pus().len()));
        }
    }
}
