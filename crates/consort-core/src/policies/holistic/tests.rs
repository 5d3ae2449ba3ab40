//! The umbrella at work.

use crate::plan::{Decision, Placement};
use crate::policies::asymmetric::testing::chip;
use crate::policies::{check, open};
use crate::policy::{Policy, PolicyForm, PolicyRng, View};
use crate::sample::{Observation, Reading};
use crate::signal::{Signal, Tier};
use crate::testing::{INTERVAL_NS, observation, observation_with_activity, thread_id};
use crate::topology::Topology;
use rand::SeedableRng;

/// The policy for a machine with these signals.
pub(super) fn made(spec: &str, topology: &Topology, signals: &[Signal]) -> Box<dyn Policy> {
    let offered = signals.iter().map(|&signal| (signal, Tier::Counters));
    open(topology, &offered.collect(), &spec.parse().unwrap()).unwrap()
}

pub(super) fn decide(
    policy: &mut dyn Policy,
    topology: &Topology,
    observation: &Observation,
) -> Decision {
    let view = View {
        topology,
        observation,
    };
    policy.decide(view, &mut PolicyRng::seed_from_u64(0))
}

/// Note of the plan's report that says which policy decides.
fn decider(decision: &Decision) -> &str {
    let said = decision.report.notes.iter();
    let mut said = said.filter(|note| note.contains(" decide"));
    said.next().unwrap()
}

/// Threads of one program with returns from futex waits.
fn siblings(topology: &Topology) -> Observation {
    let mut seen = observation(topology, &[(1, 0.0), (2, 0.0)]);
    for thread in &mut seen.threads {
        let returns = Reading::fully_counted(1.0, Tier::Software, INTERVAL_NS);
        thread.sample.set(Signal::FutexReturns, returns);
    }
    seen
}

#[test]
fn first_fed_policy_decides_and_others_give_reasons() {
    let topology = chip(1, 1, 1);
    let seen = siblings(&topology);
    let signals = [Signal::CpuTime, Signal::FutexReturns];
    let mut policy = made("holistic", &topology, &signals);
    let decision = decide(&mut *policy, &topology, &seen);
    assert!(decider(&decision).starts_with("kuths decides, since"));
    let refused = "utility is not considered: policy utility needs";
    assert!(decision.report.notes.iter().any(|n| n.starts_with(refused)));
    let mut poor = made("holistic", &topology, &[Signal::CpuTime]);
    let decision = decide(&mut *poor, &topology, &seen);
    assert!(decider(&decision).starts_with("hrrs decides"));
}

#[test]
fn asymmetric_machine_gets_the_hardware_form() {
    let topology = chip(1, 1, 1);
    let signals = [Signal::CpuTime];
    let hardware = made("holistic", &topology, &signals).wishes();
    assert_eq!(
        (hardware.form, hardware.quantum_ms),
        (PolicyForm::Hardware, Some(1))
    );
    let software = made("holistic:form=software", &topology, &signals).wishes();
    assert_eq!(
        (software.form, software.quantum_ms),
        (PolicyForm::Software, Some(4))
    );
    let alike = made("holistic", &Topology::uniform(2, 1).unwrap(), &signals).wishes();
    assert_eq!(alike.form, PolicyForm::Software);
}

#[test]
fn ungranted_form_gets_the_software_quantum() {
    let topology = chip(1, 1, 1);
    let mut policy = made("holistic", &topology, &[Signal::CpuTime]);
    let decision = decide(&mut *policy, &topology, &siblings(&topology));
    assert_eq!(decision.quantum_ns, Some(4_000_000));
}

#[test]
fn fpu_usage_decides_without_cycle_stacks() {
    let topology = Topology::uniform(2, 2).unwrap();
    let signals = [Signal::CpuTime, Signal::FpUsage];
    let mut policy = made("holistic", &topology, &signals);
    let seen = observation(&topology, &[(1, 0.9), (2, 0.8), (3, 0.0), (4, 0.0)]);
    let decision = decide(&mut *policy, &topology, &seen);
    assert!(decider(&decision).starts_with("workover decides"));
    let core = |tid| match &decision.placements[&thread_id(tid)] {
        Placement::Restricted(pus) => topology.core_of(pus.first().unwrap()).unwrap(),
        Placement::Unrestricted => panic!("thread {tid} is not placed"),
    };
    assert_ne!(core(1), core(2));
    assert_eq!(policy.wishes().quantum_ms, Some(1000));
}

#[test]
fn brief_other_load_changes_no_policy() {
    let topology = chip(1, 2, 1);
    let mut policy = made(
        "holistic",
        &topology,
        &[Signal::CpuTime, Signal::FutexReturns],
    );
    let alone = observation_with_activity(&topology, &[(1, 0.0, 1.0)]);
    let both = siblings(&topology);
    let first = decide(&mut *policy, &topology, &alone);
    assert!(decider(&first).starts_with("hrrs"));
    let mut who = |seen: &Observation| {
        let decision = decide(&mut *policy, &topology, seen);
        decider(&decision).split(' ').next().unwrap().to_owned()
    };
    let seen: Vec<String> = (0..4).map(|_| who(&both)).collect();
    assert_eq!(seen, ["hrrs", "hrrs", "hrrs", "kuths"]);
    who(&alone);
    assert_eq!(who(&both), "kuths");
}

#[test]
fn unknown_model_is_refused_before_the_start() {
    let error = check(&"holistic:model=pwr8".parse().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("knows no model 'pwr8'"),
        "{error}"
    );
}
