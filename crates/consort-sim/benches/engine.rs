//! Speed of whole runs, in simulated instructions per second of the host.
//!
//! `cargo bench -p consort-sim --bench engine`; the items of the throughput are instructions.

#![expect(
    clippy::unwrap_used,
    dead_code,
    reason = "a bench may fail loudly and uses part of the builders"
)]

#[path = "../tests/engine/build.rs"]
mod build;

use consort_core::Machine;
use consort_sim::SimMachine;
use consort_sim::engine::RunMode;
use divan::counter::ItemsCount;

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
/// Enough work that no program comes to its end.
const GINSTR: f64 = 1e6;

fn main() {
    divan::main();
}

fn prepare(name: &str, threads: usize, os: &str, quantum_ns: u64) -> SimMachine {
    let programs: Vec<(&str, u32)> = PROGRAMS[..threads].iter().map(|p| (*p, 1)).collect();
    let work = build::instances(&programs, GINSTR);
    build::machine(name, Some(2), os, RunMode::Once, &work, quantum_ns)
}

fn run(mut machine: SimMachine, quanta: u32) -> SimMachine {
    for _ in 0..quanta {
        machine.observe().unwrap();
    }
    machine
}

/// Runs are equal, so the instructions of one count for all.
fn measure(bencher: divan::Bencher<'_, '_>, quanta: u32, make: impl Fn() -> SimMachine + Sync) {
    let results = run(make(), quanta).results();
    let instructions: f64 = results.iter().map(|r| r.instructions).sum();
    bencher
        .counter(ItemsCount::new(instructions as u64))
        .with_inputs(make)
        .bench_local_values(|machine| run(machine, quanta));
}

/// Ten SMT2 cores, 20 programs, a new placement every 100 ms (`random`) or none (`linux`).
#[divan::bench(args = ["random", "linux"], sample_count = 5, sample_size = 1)]
fn power8_100_ms(bencher: divan::Bencher<'_, '_>, os: &str) {
    measure(bencher, 600, || prepare("power8", 20, os, 100_000_000));
}

/// One big and three small cores, four programs, quanta of 1 ms.
#[divan::bench(args = ["random", "linux"], sample_count = 5, sample_size = 1)]
fn acmp_1_ms(bencher: divan::Bencher<'_, '_>, os: &str) {
    measure(bencher, 10_000, || prepare("acmp-1+3", 4, os, 1_000_000));
}
