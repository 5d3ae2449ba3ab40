//! Hardware schedulers: logical cores, and intervals that end with activity.

use super::forms::logical_core_id;
use super::*;
use crate::engine::RunMode;
use crate::engine::testing::{Exact, PlainEnergy, chip, instances, program_with, settings};
use consort_core::plan::PlanReport;
use consort_core::{Placement, PuId, PuSet, Signal, ThreadId};

const HARDWARE: Wishes = Wishes {
    form: PolicyForm::Hardware,
    on_activity: true,
    latency_ns: 0,
    quantum_ms: None,
    calls: false,
    idle: false,
    l1d_accesses: false,
};

/// Two programs of three threads that wait for each other, observed every millisecond.
fn machine(wishes: Wishes) -> SimMachine {
    let barriers = "[threads]\ndefault = 3\nmax = 8\nspin_us = 20.0\n\
                    barrier = { spacing_minstr = 1.0, imbalance = 0.3 }";
    let work = instances(&program_with(barriers), 2, 3, 0.05);
    let mut settings = settings("linux", RunMode::Once, 1);
    settings.logical_cores = wishes.form == PolicyForm::Hardware;
    let (meter, source) = (Box::new(PlainEnergy), Box::new(Exact::default()));
    let mut machine = SimMachine::new(chip(1), &work, &settings, 1_000_000, meter, source).unwrap();
    machine.grant_wishes(wishes);
    machine
}

fn plan(generation: u64, places: &[(usize, u32)]) -> Plan {
    let place = |&(logical, pu): &(usize, u32)| {
        let only = Placement::Restricted(PuSet::from_iter([PuId(pu)]));
        (logical_core_id(logical), only)
    };
    Plan {
        generation,
        quantum_ns: None,
        placements: places.iter().map(place).collect(),
        report: PlanReport::default(),
        ..Plan::default()
    }
}

fn all(machine: &mut SimMachine) -> Vec<Observation> {
    std::iter::from_fn(|| machine.observe().unwrap()).collect()
}

fn sum(observations: &[Observation], signal: Signal) -> f64 {
    let threads = observations
        .iter()
        .flat_map(|o| o.threads.iter().chain(&o.exited));
    threads.filter_map(|t| t.sample.get(signal)).sum()
}

#[test]
fn an_exchange_waits_for_the_unit_that_decides_and_quanta_do_not() {
    let mut machine = machine(Wishes {
        latency_ns: 300_000,
        on_activity: false,
        ..HARDWARE
    });
    let mut times = Vec::new();
    for generation in 1.. {
        let Some(seen) = machine.observe().unwrap() else {
            break;
        };
        times.push((seen.time_ns, seen.interval_ns, seen.ended));
        machine.enact(&plan(generation, &[(0, 1), (1, 0)])).unwrap();
        let decided = machine.time_ns() - seen.time_ns;
        assert!(machine.engine.is_done() || decided == 300_000, "{decided}");
    }
    let quanta = times
        .iter()
        .filter(|(_, _, ended)| *ended == IntervalEnd::Quantum);
    for (time_ns, interval_ns, _) in quanta.clone() {
        let late = time_ns % 1_000_000;
        assert!(late < 300_000, "{times:?}");
        assert!(*interval_ns <= 1_000_000, "{times:?}");
    }
    assert!(quanta.count() >= 2, "{times:?}");
}

#[test]
fn an_interval_goes_on_after_the_decision_until_something_happens() {
    let observations = |latency_ns| {
        let mut machine = machine(Wishes {
            latency_ns,
            ..HARDWARE
        });
        let mut seen = 0;
        while machine.observe().unwrap().is_some() {
            seen += 1;
            machine.enact(&plan(seen, &[(0, 0), (1, 1)])).unwrap();
            assert!(seen < 100_000, "a decision of {latency_ns} ns never ends");
        }
        seen
    };
    let at_once = observations(0);
    assert!(observations(1) <= at_once + at_once / 4, "{at_once}");
}

#[test]
fn what_logical_cores_count_is_what_threads_do() {
    let mut machine = machine(HARDWARE);
    let seen = all(&mut machine);
    assert!(
        seen.iter()
            .all(|o| o.threads.len() == 8 && o.exited.is_empty())
    );
    let done: f64 = machine.results().iter().map(|r| r.instructions).sum();
    let counted = sum(&seen, Signal::Instructions);
    assert!((counted / done - 1.0).abs() < 1e-9, "{counted} of {done}");
}

#[test]
fn an_interval_ends_when_a_thread_stalls_or_goes_on_and_the_quantum_s_end_stays() {
    let mut machine = machine(HARDWARE);
    let seen = all(&mut machine);
    let activity = seen
        .iter()
        .filter(|o| o.ended == IntervalEnd::Activity)
        .count();
    assert!(activity > seen.len() / 2, "{activity} of {}", seen.len());
    for observation in &seen[..seen.len() - 1] {
        assert!(observation.interval_ns > 0);
        let on_grid = observation.time_ns % 1_000_000 == 0;
        assert_eq!(on_grid, observation.ended == IntervalEnd::Quantum);
    }
}

#[test]
fn watching_changes_nothing() {
    let end = |mut machine: SimMachine| {
        all(&mut machine);
        machine.results()
    };
    let heeding = Wishes {
        on_activity: true,
        ..Wishes::default()
    };
    let both = [heeding, Wishes::default()].map(|wishes| end(machine(wishes)));
    for (one, other) in both[0].iter().zip(&both[1]) {
        // To the picosecond; sums of more parts are rounded otherwise.
        assert_eq!(one.completions[0].end_s, other.completions[0].end_s);
        assert!((one.instructions / other.instructions - 1.0).abs() < 1e-12);
        assert!((one.energy_j / other.energy_j - 1.0).abs() < 1e-12);
    }
}

#[test]
fn occupants_are_the_threads_of_the_programs() {
    let mut machine = machine(HARDWARE);
    let ids: Vec<ThreadId> = machine.oracle().threads().collect();
    for observation in all(&mut machine) {
        let occupants = observation.threads.iter().filter_map(|t| t.sample.occupant);
        let mut occupants: Vec<ThreadId> = occupants.collect();
        assert!(occupants.iter().all(|id| ids.contains(id)));
        let n = occupants.len();
        occupants.sort_unstable();
        occupants.dedup();
        assert_eq!(occupants.len(), n);
        for thread in &observation.threads {
            let runs = thread.sample.get(Signal::Runnable) == Some(1.0);
            assert_eq!(runs, thread.sample.occupant.is_some());
        }
    }
}

#[test]
fn logical_cores_are_exchanged_and_keep_their_threads() {
    let mut machine = machine(HARDWARE);
    machine.observe().unwrap().unwrap();
    let mut before = machine.observe().unwrap().unwrap();
    // Not while a thread is being switched in.
    while before.threads[..2]
        .iter()
        .any(|t| t.sample.get(Signal::KernelMode) == Some(1.0))
    {
        before = machine.observe().unwrap().unwrap();
    }
    let enacted = machine.enact(&plan(1, &[(0, 1), (1, 0)])).unwrap();
    assert_eq!(
        enacted.moved,
        [logical_core_id(0), logical_core_id(1)],
        "{:?}",
        enacted.warnings
    );
    let after = machine.observe().unwrap().unwrap();
    let pus: Vec<_> = after.threads[..2].iter().map(|t| t.last_pu).collect();
    assert_eq!(pus, [Some(PuId(1)), Some(PuId(0))]);
}

#[test]
fn a_logical_core_in_kernel_mode_is_not_exchanged() {
    let mut machine = machine(HARDWARE);
    let in_kernel = |o: &Observation| {
        let kernel =
            |t: &consort_core::ThreadObservation| t.sample.get(Signal::KernelMode) == Some(1.0);
        o.threads.iter().position(kernel)
    };
    let (n, logical) = (0..)
        .find_map(|n| Some((n, in_kernel(&machine.observe().unwrap()?)?)))
        .unwrap();
    assert!(n < 100);
    let other = (logical + 1) % 8;
    let swap = [(logical, other as u32), (other, logical as u32)];
    let enacted = machine.enact(&plan(1, &swap)).unwrap();
    assert!(enacted.moved.is_empty());
    assert!(
        enacted.warnings[0].contains("is in kernel mode"),
        "{:?}",
        enacted.warnings
    );
}

#[test]
fn what_is_no_permutation_is_not_enacted() {
    let mut machine = machine(HARDWARE);
    let mut seen = machine.observe().unwrap().unwrap();
    while seen.threads[0].sample.get(Signal::KernelMode) == Some(1.0) {
        seen = machine.observe().unwrap().unwrap();
    }
    let enacted = machine.enact(&plan(1, &[(0, 1)])).unwrap();
    assert!(enacted.moved.is_empty() && enacted.warnings.len() == 1);
}
