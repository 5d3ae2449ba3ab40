//! The machine as a control loop sees it.

use super::*;
use crate::engine::RunMode;
use crate::engine::testing::{
    Exact, PlainEnergy, chip, instances, program, program_with, settings,
};
use consort_core::{Backoff, ControlLoop, policies};
use consort_core::{Placement, PuId, ThreadId};
use std::collections::BTreeMap;

fn machine(os: &str, mode: RunMode, instances: &[SimulatedProgram], seed: u64) -> SimMachine {
    let (meter, source) = (Box::new(PlainEnergy), Box::new(Exact::default()));
    let settings = settings(os, mode, seed);
    SimMachine::new(chip(1), instances, &settings, 10_000_000, meter, source).unwrap()
}

fn plan(generation: u64, masks: &[(ThreadId, &str)]) -> Plan {
    let placement =
        |(id, pus): &(ThreadId, &str)| (*id, Placement::Restricted(pus.parse().unwrap()));
    Plan {
        generation,
        quantum_ns: None,
        placements: masks.iter().map(placement).collect::<BTreeMap<_, _>>(),
        report: consort_core::plan::PlanReport::default(),
        ..Plan::default()
    }
}

#[test]
fn plans_are_obeyed_and_only_changes_are_written() {
    let work = instances(&program(), 3, 1, 1.0);
    let mut machine = machine("linux", RunMode::Once, &work, 1);
    let first = machine.observe().unwrap().unwrap();
    let ids: Vec<ThreadId> = first.threads.iter().map(|t| t.id).collect();
    let masks = [(ids[0], "6"), (ids[1], "6-7"), (ids[2], "99")];
    let enacted = machine.enact(&plan(1, &masks)).unwrap();
    assert_eq!(enacted.moved, ids[..2]);
    assert_eq!(enacted.warnings.len(), 1);
    let second = machine.observe().unwrap().unwrap();
    assert_eq!(second.threads[0].last_pu, Some(PuId(6)));
    assert_eq!(second.threads[1].last_pu, Some(PuId(7)));
    let again = machine.enact(&plan(2, &masks[..2])).unwrap();
    assert!(again.moved.is_empty());
    let old = machine.enact(&plan(2, &masks)).unwrap_err();
    assert_eq!(
        old.to_string(),
        "plan 2 is not newer than plan 2, which was enacted"
    );
}

#[test]
fn exchanging_two_threads_never_queues_them() {
    let work = instances(&program(), 2, 1, 2.0);
    let mut machine = machine("linux", RunMode::Once, &work, 1);
    let ids: Vec<ThreadId> = machine.oracle().threads().collect();
    let mut turn = |n: u64, a, b| {
        machine
            .enact(&plan(n, &[(ids[0], a), (ids[1], b)]))
            .unwrap();
        machine.observe().unwrap().unwrap()
    };
    turn(1, "0", "2");
    for n in 1..10 {
        let (a, b) = if n % 2 == 0 { ("0", "2") } else { ("2", "0") };
        let seen = turn(n + 1, a, b);
        for thread in &seen.threads {
            assert!((seen.cpu_share(thread) - 1.0).abs() < 1e-12);
        }
    }
    assert_eq!(machine.oracle().counts(ids[0]).unwrap().wait_s, 0.0);
}

#[test]
fn a_thread_that_ends_is_told_once_and_the_run_ends_with_the_last() {
    let mut work = instances(&program(), 1, 1, 0.03);
    work.extend(instances(&program(), 1, 1, 0.1));
    let mut machine = machine("pinned", RunMode::Once, &work, 1);
    let (mut ended, mut time) = (Vec::new(), 0);
    while let Some(seen) = machine.observe().unwrap() {
        assert!(seen.time_ns > time && seen.interval_ns <= 10_000_000);
        time = seen.time_ns;
        ended.extend(seen.exited.iter().map(|t| t.id));
    }
    assert_eq!(ended, machine.oracle().threads().collect::<Vec<_>>());
    let results = machine.results();
    assert!(results.iter().all(|r| r.completions.len() == 1));
    assert_eq!(machine.time_ns(), time);
}

#[test]
fn only_instrumented_synchronisation_is_seen() {
    let spec = program_with(
        "[threads]\ndefault = 2\nmax = 64\n\
         lock = { per_minstr = 10.0, hold_instr = 90000.0, count = 1 }",
    );
    let work = instances(&spec, 1, 4, 100.0);
    let seen = |instrumented_locks| {
        let mut machine_spec = chip(1).spec().clone();
        machine_spec.os.instrumented_locks = instrumented_locks;
        let chip = Arc::new(Chip::new(&machine_spec, None).unwrap());
        let (meter, source) = (Box::new(PlainEnergy), Box::new(Exact::default()));
        let settings = settings("linux", RunMode::Once, 1);
        let machine = SimMachine::new(chip, &work, &settings, 10_000_000, meter, source);
        machine.unwrap().observe().unwrap().unwrap()
    };
    assert!(seen(false).bottlenecks.is_empty());
    let reported = seen(true);
    let lock = &reported.bottlenecks[0];
    assert!(reported.thread(lock.executers[0]).is_some());
    assert!(lock.waited_ns > 10_000_000 && lock.waited_ns <= 3 * 10_000_000);
}

#[test]
fn every_policy_that_can_be_had_turns_the_wheel() {
    let spec =
        program_with("[burstiness]\nlog_sd = 0.2\ncorrelation = 0.5\ninterval_ginstr = 0.01");
    for info in policies::REGISTRY {
        let work = instances(&spec, 12, 1, 0.2);
        let machine = machine("linux", RunMode::RestartUntilAllDone, &work, 3);
        let spec = info.name.parse().unwrap();
        let Ok(policy) = policies::open(machine.topology(), machine.offers(), &spec) else {
            continue;
        };
        let mut wheel = ControlLoop::new(machine, policy, Backoff::off(), 3);
        let mut turns = 0;
        while let Some(turn) = wheel.run_turn().unwrap() {
            assert!(turn.was_enacted(), "{}: {:?}", info.name, turn.findings);
            turns += 1;
        }
        assert!(turns > 2, "{}", info.name);
    }
}

/// Ends of the first twelve quanta, ms.
fn ends(quantum_ns: u64) -> [u64; 12] {
    let (meter, source) = (Box::new(PlainEnergy), Box::new(Exact::default()));
    let work = instances(&program(), 2, 1, 1.0);
    let settings = settings("linux", RunMode::Once, 1);
    let machine = SimMachine::new(chip(1), &work, &settings, quantum_ns, meter, source);
    let mut machine = machine.unwrap();
    [(); 12].map(|()| machine.observe().unwrap().unwrap().time_ns / 1_000_000)
}

#[test]
fn one_of_eleven_quanta_as_long_as_slices_is_a_slice_longer() {
    let in_step = [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 52];
    assert_eq!(ends(4_000_000), in_step);
    assert_eq!(ends(5_000_000), std::array::from_fn(|n| 5 * n as u64 + 5));
}
