//! `symbiotic` needs nothing but observations: fed from a recording of a run alone, with no machine
//! behind it, it decides just as it did there.

use consort_core::policy::{Policy, PolicyRng, PolicySpec, View};
use consort_core::{
    EnactmentReport, Machine, Observation, Placement, Plan, SignalOffers, ThreadId, Topology,
    policies,
};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::machine::MachineRef;
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::program::presets;
use rand::SeedableRng;
use std::collections::BTreeMap;
use std::sync::Arc;

const QUANTUM_NS: u64 = 100_000_000;
const PROGRAMS: [&str; 6] = ["lbm", "hmmer", "mcf", "povray", "gcc", "milc"];

type Placements = BTreeMap<ThreadId, Placement>;

fn machine() -> SimMachine {
    let loaded = "power8:smt=2"
        .parse::<MachineRef>()
        .unwrap()
        .load(&[])
        .unwrap();
    let chip = Arc::new(Chip::new(&loaded.spec, loaded.smt).unwrap());
    let instance = |name: &str| SimulatedProgram {
        program: Arc::new(presets::find(name).unwrap()),
        threads: 1,
        instructions: 1e12,
        start_ms: 0.0,
    };
    let settings = SimulationSettings {
        seed: 3,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let pmu = SimulatedPmu::new(chip.spec(), &PmuRequest::default(), 3).unwrap();
    let meter = Box::new(EnergyModel::new(&chip));
    let instances = PROGRAMS.map(instance);
    SimMachine::new(
        chip,
        &instances,
        &settings,
        QUANTUM_NS,
        meter,
        Box::new(pmu),
    )
    .unwrap()
}

/// Observations of a run as text, one per quantum, each with the placements that were decided.
struct Recorded {
    topology: String,
    offers: SignalOffers,
    quanta: Vec<(String, Placements)>,
}

fn policy(topology: &Topology, offers: &SignalOffers) -> Box<dyn Policy> {
    // Few cores and a short period, so that pairing, correction and isolation all take place.
    let spec: PolicySpec = "symbiotic:period=7".parse().unwrap();
    policies::open(topology, offers, &spec).unwrap()
}

fn record(quanta: u64) -> Recorded {
    let mut machine = machine();
    let mut policy = policy(machine.topology(), machine.offers());
    let mut rng = PolicyRng::seed_from_u64(1);
    let mut recorded = Recorded {
        topology: serde_json::to_string(machine.topology()).unwrap(),
        offers: machine.offers().clone(),
        quanta: Vec::new(),
    };
    for generation in 1..=quanta {
        let observation = machine.observe().unwrap().unwrap();
        let view = View {
            topology: machine.topology(),
            observation: &observation,
        };
        let decision = policy.decide(view, &mut rng);
        let text = serde_json::to_string(&observation).unwrap();
        recorded.quanta.push((text, decision.placements.clone()));
        let plan = Plan {
            generation,
            placements: decision.placements,
            quantum_ns: decision.quantum_ns,
            report: decision.report,
            ..Plan::default()
        };
        let _: EnactmentReport = machine.enact(&plan).unwrap();
    }
    recorded
}

#[test]
fn a_recording_is_all_that_symbiotic_needs() {
    let recorded = record(40);
    let topology: Topology = serde_json::from_str(&recorded.topology).unwrap();
    let mut policy = policy(&topology, &recorded.offers);
    let mut rng = PolicyRng::seed_from_u64(1);
    for (text, decided) in &recorded.quanta {
        let observation: Observation = serde_json::from_str(text).unwrap();
        let view = View {
            topology: &topology,
            observation: &observation,
        };
        assert_eq!(policy.decide(view, &mut rng).placements, *decided);
    }
    let restricted =
        |placements: &Placements| placements.values().any(|p| *p != Placement::Unrestricted);
    assert!(
        recorded
            .quanta
            .iter()
            .any(|(_, decided)| restricted(decided))
    );
}
