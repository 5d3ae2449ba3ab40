//! Machines with programs from the presets, exact counters and plain energy.

use crate::small::exact::{Exact, PlainEnergy};
use consort_core::Machine;
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::program::presets;
use std::sync::Arc;

/// `(program, threads)` each with `ginstr` 10^9 instructions.
pub fn instances(programs: &[(&str, u32)], ginstr: f64) -> Vec<SimulatedProgram> {
    let instance = |&(name, threads): &(&str, u32)| SimulatedProgram {
        program: Arc::new(presets::find(name).unwrap()),
        threads,
        instructions: ginstr * 1e9,
        start_ms: 0.0,
    };
    programs.iter().map(instance).collect()
}

pub fn machine(
    name: &str,
    smt: Option<u32>,
    os: &str,
    mode: RunMode,
    instances: &[SimulatedProgram],
    quantum_ns: u64,
) -> SimMachine {
    let spec = consort_sim::machine::presets::find(name).unwrap();
    let chip = Arc::new(Chip::new(&spec, smt).unwrap());
    let settings = SimulationSettings {
        seed: 42,
        mode,
        os: os.to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let (meter, source) = (Box::new(PlainEnergy), Box::new(Exact::default()));
    SimMachine::new(chip, instances, &settings, quantum_ns, meter, source).unwrap()
}

/// Observes to the end; the number of quanta.
pub fn finish(machine: &mut SimMachine) -> u64 {
    let mut quanta = 0;
    while machine.observe().unwrap().is_some() {
        quanta += 1;
        assert!(quanta < 1_000_000, "the run does not end");
    }
    quanta
}
