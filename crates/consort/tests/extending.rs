//! Promise: the policy of docs/research/own.md compiles and decides, on the page's own chip. `book.rs`
//! runs the page's commands.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "extending/page.rs"]
mod page;
// The page shows this file as one of `consort-core`, so it finds here what it finds there.
#[path = "../../../docs/examples/packed.rs"]
mod packed;

use consort_core::policy::{PolicyOptions, PolicyResult};
use consort_core::{
    Backoff, ControlLoop, ControlTurn, Placement, PuId, PuSet, Signal, SignalOffers, Tier, Topology,
};
use consort_core::{plan, policy};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::{machine, program};
use page::Block;
use std::sync::Arc;

fn page() -> Vec<Block> {
    page::blocks("research/own.md")
}

/// The text of the page's file of that name.
fn file(name: &str) -> String {
    let blocks = page().into_iter();
    let mut named = blocks.filter(|block| block.title.as_deref() == Some(name));
    let found = named.next().unwrap();
    assert!(named.next().is_none(), "{name} is there twice");
    found.text
}

#[test]
fn the_page_s_policy_is_the_one_that_is_compiled_here() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/packed.rs");
    assert_eq!(file("packed.rs"), std::fs::read_to_string(path).unwrap());
}

#[test]
fn the_registry_has_lines_as_the_page_says() {
    let path = "/../consort-core/src/policies/mod.rs";
    let path = format!("{}{path}", env!("CARGO_MANIFEST_DIR"));
    let registry = std::fs::read_to_string(path).unwrap();
    let blocks = page().into_iter();
    let lines = blocks.filter(|block| block.title.as_deref() == Some("mod.rs"));
    let lines: Vec<String> = lines.map(|block| block.text).collect();
    assert_eq!(lines, ["mod packed;\n", "    packed::INFO,\n"]);
    for line in lines {
        assert!(
            registry.contains(&line.replace("packed", "random")),
            "{line}"
        );
    }
}

/// The page's policy with options.
fn packed(text: &str) -> PolicyResult {
    let spec: policy::PolicySpec = text.parse()?;
    let options = PolicyOptions::new(&packed::INFO, &spec)?;
    let topology = Topology::uniform(1, 1).unwrap();
    (packed::INFO.open)(&topology, &SignalOffers::default(), &options)
}

/// The page's chip with `threads` copies of the page's program, watched by the chip's PMU.
fn simulated(threads: usize) -> SimMachine {
    let chip = machine::parse("my-chip.toml", &file("my-chip.toml")).unwrap();
    let program = program::parse("my-program.toml", &file("my-program.toml")).unwrap();
    let instance = SimulatedProgram {
        program: Arc::new(program),
        threads: 1,
        instructions: 1e11,
        start_ms: 0.0,
    };
    let settings = SimulationSettings {
        seed: 1,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let pmu = SimulatedPmu::new(&chip, &PmuRequest::default(), 1).unwrap();
    let chip = Arc::new(Chip::new(&chip, None).unwrap());
    let meter = Box::new(EnergyModel::new(&chip));
    let instances = vec![instance; threads];
    let quantum_ns = packed::INFO.quantum_ms * 1_000_000;
    SimMachine::new(
        chip,
        &instances,
        &settings,
        quantum_ns,
        meter,
        Box::new(pmu),
    )
    .unwrap()
}

/// The first turn of the page's policy with that many threads.
fn first_turn(threads: usize, policy: &str) -> ControlTurn {
    let policy = packed(policy).unwrap();
    let mut wheel = ControlLoop::new(simulated(threads), policy, Backoff::off(), 1);
    wheel.run_turn().unwrap().unwrap()
}

fn placements(turn: &ControlTurn) -> Vec<Placement> {
    turn.plan.placements.values().cloned().collect()
}

#[test]
fn the_policy_packs_busy_threads_and_its_plans_are_enacted() {
    let turn = first_turn(2, "packed");
    assert!(turn.was_enacted(), "{:?}", turn.findings);
    let on = |pu| Placement::Restricted(PuSet::from(PuId(pu)));
    assert_eq!(placements(&turn), [on(0), on(1)]);
    assert_eq!(turn.enacted.moved.len(), 2);

    let crowd = placements(&first_turn(5, "packed"));
    let free = crowd.iter().filter(|p| **p == Placement::Unrestricted);
    assert_eq!((crowd.len(), free.count()), (5, 1));
}

#[test]
fn the_policy_s_option_decides_and_is_checked() {
    let crowd = placements(&first_turn(8, "packed:busy=0.9"));
    assert!(
        crowd.iter().all(|p| *p == Placement::Unrestricted),
        "{crowd:?}"
    );
    let error = packed("packed:busy=2").err().unwrap();
    assert!(error.to_string().contains("from 0 to 1"), "{error}");
    assert!(packed("packed:bsy=1").is_err());
}
