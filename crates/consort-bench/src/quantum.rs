//! Cost of one whole quantum against the number of threads: counters, policy, linter, moves,
//! solution, energy.
//!
//! The machines are those of the bench `solve`; `random` makes a new placement every 100 ms, so
//! that every quantum has a solution of its own. Each thread also has events of its own within a
//! quantum, at each of which time advances for all threads, so a quantum costs more per thread
//! the more threads there are, while a solution does not.

use super::Bench;
use super::case::{BenchCase, BenchMeasure, Effort};
use super::clock::Stopwatch;
use super::error::BenchError;
use super::simulation_setup::{SimulationSetup, run_quanta};
use super::solve::{SIZES, chip, growth, per_thread_cases};

/// Quantum, ns.
const QUANTUM_NS: u64 = 100_000_000;
/// Threads times quanta of a repetition.
const THREAD_QUANTA: u32 = 2048;

/// Whole quanta.
pub(super) struct QuantumBench;

impl Bench for QuantumBench {
    fn name(&self) -> String {
        "quantum".to_owned()
    }

    fn summary(&self) -> String {
        "one quantum of 100 ms under random for 16 to 1024 threads, all included".to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let mut cases = Vec::new();
        for n in SIZES {
            let setting = SimulationSetup::new(chip(n)?, n, QUANTUM_NS)?;
            let quanta = effort.scale_quanta(THREAD_QUANTA).div_ceil(n as u32);
            cases.push(BenchCase::from_measure(
                format!("quantum-{n}"),
                "ns",
                measure_quantum(setting, quanta),
            ));
        }
        cases.extend(per_thread_cases("quantum"));
        cases.push(growth("quantum"));
        Ok(cases)
    }
}

/// The first quantum, in which everything is cold and nothing is placed yet, does not count.
fn measure_quantum(setting: SimulationSetup, quanta: u32) -> BenchMeasure {
    Box::new(move || {
        let mut wheel = setting.new_loop()?;
        run_quanta(&mut wheel, 1)?;
        let watch = Stopwatch::start();
        run_quanta(&mut wheel, quanta)?;
        Ok(watch.ns() / f64::from(quanta))
    })
}
