//! A program alone: solved phase by phase, or run with its chip's own PMU watching.

use super::error::ValidateError;
use consort_core::{Machine, Sample, Signal, SignalOffers, ThreadId};
use consort_experiment::build_machine;
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

/// A thread of its own program in a phase.
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

/// Rates of threads of unlike programs, each on its PU.
pub(super) fn solve(solver: &Solver, threads: &[(usize, &PhaseSpec)]) -> Vec<ThreadRates> {
    let demands = threads.iter().zip(0..);
    let demands: Vec<Demand> = demands.map(|((_, p), i)| demand(p, i)).collect();
    let pus = threads.iter().map(|(pu, _)| *pu);
    let running = pus
        .zip(&demands)
        .map(|(pu, demand)| RunningThread { pu, demand });
    solver.solve(&running.collect::<Vec<_>>()).threads
}

/// A quantity per instruction over a whole program alone on PU 0, without variation in phases.
pub(super) fn per_instruction(
    solver: &Solver,
    program: &ProgramSpec,
    of: impl Fn(&ThreadRates) -> f64,
) -> f64 {
    per_instruction_on(solver, 0, program, of)
}

/// The same on any PU.
pub(super) fn per_instruction_on(
    solver: &Solver,
    pu: usize,
    program: &ProgramSpec,
    of: impl Fn(&ThreadRates) -> f64,
) -> f64 {
    let length: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
    let amount = |phase: &PhaseSpec| {
        let rates = solve(solver, &[(pu, phase)]);
        rates
            .first()
            .map_or(f64::NAN, |r| of(r) * phase.length_ginstr)
    };
    program.phases.iter().map(amount).sum::<f64>() / length
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

/// Settings of a run in which each program runs once.
pub(super) fn run_once_settings(seed: u64, os: &str) -> SimulationSettings {
    SimulationSettings {
        seed,
        mode: RunMode::Once,
        os: os.to_owned(),
        logical_cores: false,
        free_migration: false,
    }
}

/// Figures that a PMU tells of a program that runs alone, means over its cycles.
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

    /// The readout that was asked for.
    pub(super) fn readout(self) -> f64 {
        self.readout / self.cycles
    }
}

/// A PMU that also keeps the means of what it tells.
struct AveragingPmu {
    pmu: SimulatedPmu,
    reported: Rc<RefCell<PmuMeans>>,
}

impl SampleSource for AveragingPmu {
    fn offers(&self) -> &SignalOffers {
        self.pmu.offers()
    }

    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample {
        let sample = self.pmu.sample(thread, counts, interval_ns);
        let readout = self.pmu.readout(thread, 0).map(|r| r.value);
        let mut reported = self.reported.borrow_mut();
        if let (Some(cycles), Some(usage), Some(readout)) = (
            sample.get(Signal::Cycles),
            sample.get(Signal::FpUsage),
            readout,
        ) {
            reported.cycles += cycles;
            reported.fp_usage += cycles * usage;
            reported.readout += cycles * readout;
        }
        sample
    }
}

/// Sampling interval of the measurements (Peternier et al., section 5.1), ns.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Runs a whole program alone and listens to the chip's PMU.
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
    let reported = Rc::default();
    let source = AveragingPmu {
        pmu: SimulatedPmu::new(chip.spec(), &request, seed)?,
        reported: Rc::clone(&reported),
    };
    let work = [instance(program, 1, length_instr(program))];
    let settings = run_once_settings(seed, "linux");
    let mut machine = build_machine(chip, &work, &settings, INTERVAL_NS, Box::new(source))?;
    while machine.observe()?.is_some() {}
    let reported = *reported.borrow();
    Ok(reported)
}
