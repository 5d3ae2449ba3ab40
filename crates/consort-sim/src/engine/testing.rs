//! Small machines and programs for the tests of the engine.

use super::{Engine, RunMode, SimulatedProgram, SimulationSettings};
use crate::chip::Chip;
use crate::machine::{self, NumaSpec};
use crate::program::{self, ProgramSpec};
use std::sync::Arc;

#[path = "../../tests/suite/small/exact.rs"]
mod exact;

pub(crate) use exact::{Exact, PlainEnergy};

const MACHINE: &str = include_str!("../../../consort-describe/tests/small/machine.toml");
const PROGRAM: &str = include_str!("../../../consort-describe/tests/small/program.toml");

/// Nodes of four SMT2 cores at 2 GHz; CPUs `2c` and `2c + 1` share core `c`.
pub(crate) fn chip(nodes: u32) -> Arc<Chip> {
    chip_with_memory(nodes, None)
}

/// The same with memory on those nodes alone.
pub(crate) fn chip_with_memory(nodes: u32, with: Option<Vec<u32>>) -> Arc<Chip> {
    let mut spec = machine::parse("small", MACHINE).unwrap();
    spec.layout.nodes_per_package = nodes;
    spec.numa = (nodes > 1).then_some(NumaSpec {
        same_package_ns: 50.0,
        other_package_ns: 80.0,
        link_bandwidth_gb_s: 20.0,
        memory_nodes: with,
    });
    Arc::new(Chip::new(&spec, None).unwrap())
}

/// Compute-bound, one thread, one phase, nothing random.
pub(crate) fn program() -> ProgramSpec {
    program::parse("small", PROGRAM).unwrap()
}

/// The program with `more` TOML behind it.
pub(crate) fn program_with(more: &str) -> ProgramSpec {
    program::parse("small", &format!("{PROGRAM}\n{more}")).unwrap()
}

/// Instances of a program, `ginstr` 10^9 instructions each.
pub(crate) fn instances(
    spec: &ProgramSpec,
    n: usize,
    threads: u32,
    ginstr: f64,
) -> Vec<SimulatedProgram> {
    let spec = Arc::new(spec.clone());
    let instance = |_| SimulatedProgram {
        program: Arc::clone(&spec),
        threads,
        instructions: ginstr * 1e9,
        start_ms: 0.0,
    };
    (0..n).map(instance).collect()
}

pub(crate) fn settings(os: &str, mode: RunMode, seed: u64) -> SimulationSettings {
    SimulationSettings {
        seed,
        mode,
        os: os.to_owned(),
        logical_cores: false,
        free_migration: false,
    }
}

/// An engine on one node.
pub(crate) fn engine(os: &str, mode: RunMode, instances: &[SimulatedProgram], seed: u64) -> Engine {
    let settings = settings(os, mode, seed);
    Engine::new(chip(1), instances, &settings, Box::new(PlainEnergy)).unwrap()
}
