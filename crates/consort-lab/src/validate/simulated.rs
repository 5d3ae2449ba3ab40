//! Simulated programs of checks: solved phase by phase, or run to their end.

use super::ValidateError;
use consort_core::{Machine, Sample, Signal, SignalOffers, ThreadId};
use consort_experiment::{NullSampleSource, build_machine};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver, ThreadRates};
use consort_sim::engine::{
    RunMode, SampleSource, SimulatedProgram, SimulationSettings, ThreadCounts,
};
use consort_sim::phase::Phase;
use consort_sim::pmu::{PmuRequest, Readout, SimulatedPmu};
use consort_sim::program::{PhaseSpec, ProgramSpec};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A thread of a program of its own in a phase.
pub(super) fn demand(phase: &PhaseSpec, program: u32) -> Demand {
    Demand {
        phase: Arc::new(Phase::new(phase)),
        intensity: 1.0,
        program,
        text: program,
        shared_data: 0.0,
        shared_code: 0.0,
        lock: None,
        home_node: 0,
    }
}

/// Rates of threads of different programs, each on its CPU.
pub(super) fn solve(solver: &Solver, threads: &[(usize, &PhaseSpec)]) -> Vec<ThreadRates> {
    let demands: Vec<Demand> = { threads.iter().zip(0..) }
        .map(|((_, phase), program)| demand(phase, program))
        .collect();
    let running: Vec<RunningThread<'_>> = { threads.iter().zip(&demands) }
        .map(|((pu, _), demand)| RunningThread { pu: *pu, demand })
        .collect();
    solver.solve(&running).threads
}

/// A quantity per instruction over a whole program alone on a CPU, without variation in phases.
pub(super) fn per_instruction(
    solver: &Solver,
    pu: usize,
    program: &ProgramSpec,
    quantity: impl Fn(&ThreadRates) -> f64,
) -> f64 {
    let length: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
    let amounts = program.phases.iter().map(|phase| {
        let rates = solve(solver, &[(pu, phase)]);
        rates
            .first()
            .map_or(f64::NAN, |r| quantity(r) * phase.length_ginstr)
    });
    amounts.sum::<f64>() / length
}

/// Instructions of a program from its beginning to its end.
pub(super) fn length_instr(program: &ProgramSpec) -> f64 {
    1e9 * program.phases.iter().map(|p| p.length_ginstr).sum::<f64>()
}

/// An instance that begins at once.
pub(super) fn instance(
    program: &Arc<ProgramSpec>,
    threads: u32,
    instructions: f64,
) -> SimulatedProgram {
    SimulatedProgram {
        program: Arc::clone(program),
        threads,
        instructions,
        start_ms: 0.0,
    }
}

/// A run under `linux` in which each program runs once.
fn build_run(
    chip: &Arc<Chip>,
    work: &[SimulatedProgram],
    seed: u64,
    quantum_ns: u64,
    source: Box<dyn SampleSource>,
) -> Result<SimMachine, ValidateError> {
    let settings = SimulationSettings {
        seed,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    Ok(build_machine(chip, work, &settings, quantum_ns, source)?)
}

/// A run under `linux` in which each program runs once; nothing is sampled.
pub(super) fn start_run(
    chip: &Arc<Chip>,
    work: &[SimulatedProgram],
    seed: u64,
    quantum_ns: u64,
) -> Result<SimMachine, ValidateError> {
    let source = Box::<NullSampleSource>::default();
    build_run(chip, work, seed, quantum_ns, source)
}

/// Runs a machine until its last program has ended.
pub(super) fn finish_run(machine: &mut SimMachine) -> Result<(), ValidateError> {
    while machine.observe()?.is_some() {}
    Ok(())
}

/// Figures of a PMU, summed over the samples of a program that runs alone and weighted by cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PmuMeans {
    cycles: f64,
    fp_usage: f64,
    readout: f64,
}

impl PmuMeans {
    /// FPU usage as the chip's events define it.
    pub(super) fn fp_usage(self) -> f64 {
        self.fp_usage / self.cycles
    }

    /// Mean of the requested readout.
    pub(super) fn readout(self) -> f64 {
        self.readout / self.cycles
    }
}

struct AveragingPmu {
    pmu: SimulatedPmu,
    means: Rc<RefCell<PmuMeans>>,
}

impl SampleSource for AveragingPmu {
    fn offers(&self) -> &SignalOffers {
        self.pmu.offers()
    }

    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample {
        let sample = self.pmu.sample(thread, counts, interval_ns);
        let readout = self.pmu.readout(thread, 0).map(|r| r.value);
        let mut means = self.means.borrow_mut();
        if let (Some(cycles), Some(usage), Some(readout)) = (
            sample.get(Signal::Cycles),
            sample.get(Signal::FpUsage),
            readout,
        ) {
            means.cycles += cycles;
            means.fp_usage += cycles * usage;
            means.readout += cycles * readout;
        }
        sample
    }
}

/// Sampling interval of the measurements (Peternier et al., section 5.1), ns.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Runs a whole program alone and averages the samples of the chip's PMU.
pub(super) fn measure_pmu_means(
    chip: &Arc<Chip>,
    program: &Arc<ProgramSpec>,
    readout: Readout,
    seed: u64,
) -> Result<PmuMeans, ValidateError> {
    let request = PmuRequest {
        signals: Some(vec![Signal::FpUsage]),
        readouts: vec![readout],
    };
    let means = Rc::default();
    let source = AveragingPmu {
        pmu: SimulatedPmu::new(chip.spec(), &request, seed)?,
        means: Rc::clone(&means),
    };
    let work = [instance(program, 1, length_instr(program))];
    let mut machine = build_run(chip, &work, seed, INTERVAL_NS, Box::new(source))?;
    finish_run(&mut machine)?;
    let means = *means.borrow();
    Ok(means)
}
