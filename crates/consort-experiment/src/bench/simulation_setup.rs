//! Simulated machines with programs on them under the policy `random`, as runs have them: real
//! counters with noise and turns, real energies.

use super::error::BenchError;
use crate::ExperimentError;
use consort_core::policy::PolicySpec;
use consort_core::{Backoff, ControlLoop, Machine, policies};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::program::{ProgramSpec, presets};
use std::sync::Arc;

/// Instructions of each program: more than any repetition does.
const WORK: f64 = 1e18;
/// Seed of every repetition, so that all do the same.
const SEED: u64 = 1;

/// Single-threaded programs of SPEC CPU2006, in the order in which benches take them.
const PROGRAMS: [&str; 20] = [
    "mcf",
    "hmmer",
    "gcc",
    "povray",
    "lbm",
    "milc",
    "namd",
    "bzip2",
    "sjeng",
    "astar",
    "gobmk",
    "h264ref",
    "soplex",
    "libquantum",
    "omnetpp",
    "leslie3d",
    "perlbench",
    "sphinx3",
    "bwaves",
    "gromacs",
];

/// The programs that benches run, each once.
pub(super) fn programs() -> Result<Vec<Arc<ProgramSpec>>, BenchError> {
    let find = |name: &&str| Ok(Arc::new(presets::find(name)?));
    PROGRAMS.iter().map(find).collect()
}

/// A chip with programs, from which equal runs are made.
pub(super) struct SimulationSetup {
    chip: Arc<Chip>,
    instances: Vec<SimulatedProgram>,
    quantum_ns: u64,
}

impl SimulationSetup {
    /// As many programs as `threads`, one thread each; the list begins again after its last.
    pub(super) fn new(chip: Chip, threads: usize, quantum_ns: u64) -> Result<Self, BenchError> {
        let instance = |program| SimulatedProgram {
            program,
            threads: 1,
            instructions: WORK,
            start_ms: 0.0,
        };
        let known = programs()?;
        let programs = known.iter().cycle().take(threads).cloned();
        Ok(Self {
            chip: Arc::new(chip),
            instances: programs.map(instance).collect(),
            quantum_ns,
        })
    }

    /// A run that has not begun.
    pub(super) fn new_loop(&self) -> Result<ControlLoop<SimMachine>, ExperimentError> {
        let pmu = SimulatedPmu::new(self.chip.spec(), &PmuRequest::default(), SEED)?;
        let settings = SimulationSettings {
            seed: SEED,
            mode: RunMode::RestartUntilAllDone,
            os: "linux".to_owned(),
            logical_cores: false,
            free_migration: false,
        };
        let machine = SimMachine::new(
            Arc::clone(&self.chip),
            &self.instances,
            &settings,
            self.quantum_ns,
            Box::new(EnergyModel::new(&self.chip)),
            Box::new(pmu),
        )?;
        let random: PolicySpec = "random".parse()?;
        let policy = policies::open(machine.topology(), machine.offers(), &random)?;
        Ok(ControlLoop::new(machine, policy, Backoff::off(), SEED))
    }
}

/// Lets quanta pass, each with a new placement.
pub(super) fn run_quanta(
    wheel: &mut ControlLoop<SimMachine>,
    quanta: u32,
) -> Result<(), ExperimentError> {
    for _ in 0..quanta {
        wheel.run_turn()?;
    }
    Ok(())
}

/// Instructions of all programs so far.
pub(super) fn instructions(machine: &SimMachine) -> f64 {
    machine.results().iter().map(|r| r.instructions).sum()
}
