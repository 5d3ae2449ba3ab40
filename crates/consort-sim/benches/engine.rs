//! Speed of whole runs, in simulated instructions per second of the host, with real counters and
//! energies.
//!
//! `cargo bench -p consort-sim --bench engine`; the items of the throughput are instructions.
//! `consort bench` has the same runs with its own method.

#![expect(clippy::unwrap_used, reason = "a bench may fail loudly")]

use consort_core::{Backoff, ControlLoop, Machine, policies};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::machine;
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::program::presets;
use divan::counter::ItemsCount;
use std::sync::Arc;

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
/// More instructions than any program does here.
const WORK: f64 = 1e18;
/// Seed of every run, so that all are equal.
const SEED: u64 = 1;

fn main() {
    divan::main();
}

fn instance(name: &str) -> SimulatedProgram {
    SimulatedProgram {
        program: Arc::new(presets::find(name).unwrap()),
        threads: 1,
        instructions: WORK,
        start_ms: 0.0,
    }
}

fn prepare(name: &str, threads: usize, policy: &str, quantum_ns: u64) -> ControlLoop<SimMachine> {
    let chip = Chip::new(&machine::presets::find(name).unwrap(), Some(2)).unwrap();
    let chip = Arc::new(chip);
    let instances: Vec<SimulatedProgram> =
        PROGRAMS[..threads].iter().map(|p| instance(p)).collect();
    let settings = SimulationSettings {
        seed: SEED,
        mode: RunMode::RestartUntilAllDone,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let pmu = SimulatedPmu::new(chip.spec(), &PmuRequest::default(), SEED).unwrap();
    let meter = Box::new(EnergyModel::new(&chip));
    let machine = SimMachine::new(
        chip,
        &instances,
        &settings,
        quantum_ns,
        meter,
        Box::new(pmu),
    );
    let (machine, spec) = (machine.unwrap(), policy.parse().unwrap());
    let policy = policies::open(machine.topology(), machine.offers(), &spec).unwrap();
    ControlLoop::new(machine, policy, Backoff::off(), SEED)
}

fn run(mut wheel: ControlLoop<SimMachine>, quanta: u32) -> ControlLoop<SimMachine> {
    for _ in 0..quanta {
        wheel.run_turn().unwrap();
    }
    wheel
}

/// The instructions of one run count for all.
fn measure(
    bencher: divan::Bencher<'_, '_>,
    quanta: u32,
    make: impl Fn() -> ControlLoop<SimMachine> + Sync,
) {
    let results = run(make(), quanta).machine().results();
    let instructions: f64 = results.iter().map(|r| r.instructions).sum();
    bencher
        .counter(ItemsCount::new(instructions as u64))
        .with_inputs(make)
        .bench_local_values(|wheel| run(wheel, quanta));
}

/// Ten SMT2 cores, 20 programs, a new placement every 100 ms (`random`) or none (`none`).
#[divan::bench(args = ["random", "none"], sample_count = 5, sample_size = 1)]
fn power8_100_ms(bencher: divan::Bencher<'_, '_>, policy: &str) {
    measure(bencher, 200, || prepare("power8", 20, policy, 100_000_000));
}

/// One big and three small cores, four programs, quanta of 1 ms.
#[divan::bench(args = ["random", "none"], sample_count = 5, sample_size = 1)]
fn acmp_1_ms(bencher: divan::Bencher<'_, '_>, policy: &str) {
    measure(bencher, 5000, || prepare("acmp-1+3", 4, policy, 1_000_000));
}
