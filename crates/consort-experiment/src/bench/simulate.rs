//! Speed of whole runs, in simulated instructions per second of one host core, and the share of
//! their solutions that come from memory.
//!
//! Every repetition is the same run from its beginning; making the machine does not count.

use super::case::{BenchCase, BenchMeasure, Effort, Stopwatch};
use super::{Bench, BenchError};
use crate::ExperimentError;
use consort_core::policy::PolicySpec;
use consort_core::{Backoff, ControlLoop, Machine, policies};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::machine::presets;
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::program::{self, ProgramSpec};
use std::sync::Arc;

/// A run whose speed is measured.
#[derive(Clone, Copy, Debug)]
pub struct SimulationBench {
    name: &'static str,
    summary: &'static str,
    machine: &'static str,
    smt: Option<u32>,
    threads: usize,
    quantum_ns: u64,
    quanta: u32,
    /// Simulated instructions per second aimed at.
    target: f64,
}

/// Ten cores of SMT2, fully taken.
pub const POWER8: SimulationBench = SimulationBench {
    name: "simulate-power8-100ms",
    summary: "20 programs on power8:smt=2, random every 100 ms, counters and energy included",
    machine: "power8",
    smt: Some(2),
    threads: 20,
    quantum_ns: 100_000_000,
    quanta: 200,
    target: 1e13,
};

/// One big core and three small ones at the quanta of hardware schedulers.
pub const ACMP: SimulationBench = SimulationBench {
    name: "simulate-acmp-1ms",
    summary: "4 programs on acmp-1+3, random every 1 ms, counters and energy included",
    machine: "acmp-1+3",
    smt: None,
    threads: 4,
    quantum_ns: 1_000_000,
    quanta: 5000,
    target: 5e11,
};

impl SimulationBench {
    /// Summary in a line.
    pub fn title(&self) -> &'static str {
        self.summary
    }

    /// Name of the bench.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Simulated instructions per second aimed at.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Runs it `times` times from its beginning.
    ///
    /// # Errors
    /// A machine or programs that cannot be loaded.
    pub fn run_times(&self, times: usize) -> Result<Vec<SimulationRun>, BenchError> {
        let setting = self.new_setup()?;
        (0..times)
            .map(|_| run_once(&setting, self.quanta))
            .collect()
    }

    fn new_setup(&self) -> Result<SimulationSetup, BenchError> {
        let chip = Chip::new(&presets::find(self.machine)?, self.smt)?;
        SimulationSetup::new(chip, self.threads, self.quantum_ns)
    }
}

impl Bench for SimulationBench {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn summary(&self) -> String {
        self.summary.to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let quanta = effort.scale_quanta(self.quanta);
        let speed = BenchCase::from_measure(
            self.name.to_owned(),
            "instructions/s",
            speed(self.new_setup()?, quanta),
        );
        Ok(vec![speed.with_target(self.target)])
    }
}

fn speed(setting: SimulationSetup, quanta: u32) -> BenchMeasure {
    Box::new(move || Ok(run_once(&setting, quanta)?.speed()))
}

/// Result of a run.
#[derive(Clone, Copy, Debug)]
pub struct SimulationRun {
    /// Simulated quanta.
    pub quanta: u32,
    /// Simulated instructions.
    pub instructions: f64,
    /// Processor time, s.
    pub seconds: f64,
}

impl SimulationRun {
    /// Simulated instructions per second.
    pub fn speed(self) -> f64 {
        self.instructions / self.seconds
    }
}

fn run_once(setting: &SimulationSetup, quanta: u32) -> Result<SimulationRun, BenchError> {
    let mut control = setting.new_loop()?;
    let watch = Stopwatch::start();
    run_quanta(&mut control, quanta)?;
    Ok(SimulationRun {
        quanta,
        seconds: watch.seconds(),
        instructions: instructions(control.machine()),
    })
}

/// Solutions from memory.
pub(super) struct ReuseBench;

impl Bench for ReuseBench {
    fn name(&self) -> String {
        "reuse".to_owned()
    }

    fn summary(&self) -> String {
        "share of solutions that come from memory in the runs of simulate-*".to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        [POWER8, ACMP]
            .iter()
            .map(|run| reuse_case(run, effort))
            .collect()
    }
}

fn reuse_case(run: &SimulationBench, effort: Effort) -> Result<BenchCase, BenchError> {
    let setting = run.new_setup()?;
    let quanta = effort.scale_quanta(run.quanta);
    let share = move || {
        let mut control = setting.new_loop()?;
        run_quanta(&mut control, quanta)?;
        let usage = control.machine().oracle().memo_use();
        Ok(usage.hits as f64 / (usage.hits + usage.misses) as f64)
    };
    let name = format!("reuse-{}", run.name().trim_start_matches("simulate-"));
    Ok(BenchCase::from_measure(name, "share", Box::new(share)))
}

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
    let find = |name: &&str| Ok(Arc::new(program::presets::find(name)?));
    PROGRAMS.iter().map(find).collect()
}

/// A chip with programs under the policy `random`, for equal runs with real counters, noise and energies.
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
    control: &mut ControlLoop<SimMachine>,
    quanta: u32,
) -> Result<(), ExperimentError> {
    for _ in 0..quanta {
        control.run_turn()?;
    }
    Ok(())
}

/// Instructions of all programs so far.
pub(super) fn instructions(machine: &SimMachine) -> f64 {
    machine.results().iter().map(|r| r.instructions).sum()
}
