//! Small machines and programs for the tests of the engine.

use super::{EnergyMeter, Engine, Instance, RunMode, Settings};
use crate::chip::Chip;
use crate::contention::Flow;
use crate::machine::MachineSpec;
use crate::program::{MixSpec, ProgramSpec};
use std::sync::Arc;

const MACHINE: &str = include_str!("testing/machine.toml");
const PROGRAM: &str = include_str!("testing/program.toml");

/// Nodes of four SMT2 cores at 2 GHz; PUs `2c` and `2c + 1` share core `c`.
pub(crate) fn chip(nodes: u32) -> Arc<Chip> {
    let mut spec: MachineSpec = toml::from_str(MACHINE).unwrap();
    spec.layout.nodes_per_package = nodes;
    Arc::new(Chip::new(&spec, None).unwrap())
}

/// Compute-bound, one thread, one phase, nothing random.
pub(crate) fn program() -> ProgramSpec {
    toml::from_str(PROGRAM).unwrap()
}

/// The program with `more` TOML behind it.
pub(crate) fn program_with(more: &str) -> ProgramSpec {
    toml::from_str(&format!("{PROGRAM}\n{more}")).unwrap()
}

/// Instances of a program, `ginstr` 10^9 instructions each.
pub(crate) fn instances(spec: &ProgramSpec, n: usize, threads: u32, ginstr: f64) -> Vec<Instance> {
    let spec = Arc::new(spec.clone());
    let instance = |_| Instance {
        program: Arc::clone(&spec),
        threads,
        instructions: ginstr * 1e9,
        start_ms: 0.0,
    };
    (0..n).map(instance).collect()
}

/// One nanojoule per instruction, 2 W per busy core, 1 W per idle one, 5 W for the rest.
pub(crate) struct PlainEnergy;

impl EnergyMeter for PlainEnergy {
    fn instruction_j(&self, _: usize, _: &MixSpec, _: &Flow) -> f64 {
        1e-9
    }

    fn core_w(&self, _: usize, busy: bool) -> f64 {
        if busy { 2.0 } else { 1.0 }
    }

    fn uncore_w(&self) -> f64 {
        5.0
    }
}

pub(crate) fn settings(os: &str, mode: RunMode, seed: u64) -> Settings {
    Settings {
        seed,
        mode,
        os: os.to_owned(),
        logical_cores: false,
    }
}

/// An engine on one node.
pub(crate) fn engine(os: &str, mode: RunMode, instances: &[Instance], seed: u64) -> Engine {
    let settings = settings(os, mode, seed);
    Engine::new(chip(1), instances, &settings, Box::new(PlainEnergy)).unwrap()
}
