//! Cost of one solution and of one whole quantum against the number of threads, and the exponents
//! with which they grow.
//!
//! The machine grows with the threads as real ones do: EPYC sockets with core dies of 8 SMT2
//! cores and an LLC each, two dies and two memory channels to a node. All CPUs are taken.

use super::case::{BenchCase, BenchMeasure, Effort, Stopwatch, exponent, measure_ns};
use super::simulate::{SimulationSetup, programs, run_quanta};
use super::{Bench, BenchError};
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::contention::{Demand, RunningThread, Solver};
use consort_sim::machine::presets;
use consort_sim::phase::Phase;
use std::hint::black_box;
use std::sync::Arc;

/// Threads, and CPUs.
const SIZES: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];
const PUS_PER_LLC: usize = 16;

/// One solution.
pub(super) struct SolverBench;

impl Bench for SolverBench {
    fn name(&self) -> String {
        "solve".to_owned()
    }

    fn summary(&self) -> String {
        "one solution for 16 to 1024 threads, all CPUs of an EPYC-like machine taken".to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let mut cases = Vec::new();
        for n in SIZES {
            cases.push(solution_case(n, effort)?);
        }
        cases.extend(per_thread_cases("solve"));
        cases.push(growth("solve").with_target(1.0));
        Ok(cases)
    }
}

fn solution_case(n: usize, effort: Effort) -> Result<BenchCase, BenchError> {
    let chip = Arc::new(chip(n)?);
    let demands = demands(&chip)?;
    let solver = Solver::new(chip);
    let once = move || {
        let running = demands.iter().enumerate();
        let running: Vec<RunningThread<'_>> = running
            .map(|(pu, demand)| RunningThread { pu, demand })
            .collect();
        black_box(solver.solve(black_box(&running)));
    };
    Ok(BenchCase::from_measure(
        format!("solve-{n}"),
        "ns",
        measure_ns(effort, once),
    ))
}

/// The cost per thread at each of [`SIZES`]; the total costs come first among the cases.
fn per_thread_cases(bench: &str) -> Vec<BenchCase> {
    let each = |(i, n): (usize, usize)| {
        let name = format!("{bench}-{n}-per-thread");
        let derive = move |totals: &[f64]| totals[i] / n as f64;
        BenchCase::from_derivation(name, "ns/thread", Box::new(derive))
    };
    SIZES.into_iter().enumerate().map(each).collect()
}

/// The exponent with which the total cost grows; 1 is linear.
fn growth(bench: &str) -> BenchCase {
    let derive = |totals: &[f64]| exponent(&SIZES.map(|n| n as f64), &totals[..SIZES.len()]);
    BenchCase::from_derivation(format!("{bench}-exponent"), "1", Box::new(derive))
}

/// A machine of `n` CPUs, a power of two from 16 on.
fn chip(n: usize) -> Result<Chip, BenchError> {
    let mut spec = presets::find("epyc-7763")?;
    let layout = &mut spec.layout;
    let (dies, nodes) = (
        layout.llc_domains_per_node as usize,
        layout.nodes_per_package as usize,
    );
    let domains = n / PUS_PER_LLC;
    layout.llc_domains_per_node = domains.min(dies) as u32;
    layout.nodes_per_package = (domains / dies).clamp(1, nodes) as u32;
    layout.packages = (domains / (dies * nodes)).max(1) as u32;
    Ok(Chip::new(&spec, None)?)
}

/// A thread on every CPU, in the first phase of its program, with its memory on its node. Copies of
/// a program share its description, as they do in a run.
fn demands(chip: &Chip) -> Result<Vec<Demand>, BenchError> {
    let phases = programs()?;
    let phases: Vec<Arc<Phase>> = phases
        .iter()
        .map(|program| Arc::new(Phase::new(&program.phases[0])))
        .collect();
    let places = chip.places().iter().zip(phases.iter().cycle());
    let demand = |(i, (place, phase)): (usize, (&PuPlace, &Arc<Phase>))| Demand {
        phase: Arc::clone(phase),
        intensity: 1.0,
        program: i as u32,
        text: i as u32,
        shared_data: 0.0,
        shared_code: 0.0,
        lock: None,
        home_node: place.node,
    };
    Ok(places.enumerate().map(demand).collect())
}

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
        let mut control = setting.new_loop()?;
        run_quanta(&mut control, 1)?;
        let watch = Stopwatch::start();
        run_quanta(&mut control, quanta)?;
        Ok(watch.ns() / f64::from(quanta))
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::FigureSource;
    use super::*;

    #[test]
    fn every_size_has_a_machine() {
        for n in SIZES {
            let chip = chip(n).unwrap();
            assert_eq!(chip.places().len(), n);
            assert_eq!(chip.domains().llcs, n / PUS_PER_LLC);
        }
    }

    #[test]
    fn costs_and_exponent_follow_from_the_totals() {
        let totals: Vec<f64> = SIZES.iter().map(|&n| 100.0 * n as f64).collect();
        let value = |case: &BenchCase| match &case.figure {
            FigureSource::Derived(derive) => derive(&totals),
            FigureSource::Measured(_) => f64::NAN,
        };
        let values: Vec<f64> = per_thread_cases("solve").iter().map(value).collect();
        assert_eq!(values, [100.0; SIZES.len()]);
        assert!((value(&growth("solve")) - 1.0).abs() < 1e-12);
    }
}
