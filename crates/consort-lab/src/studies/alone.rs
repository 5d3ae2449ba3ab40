//! Copies of a program alone on one core, and the figures of the chip's own counters for them.
//!
//! Usage: [`ProgramCopies::run`] puts each copy on a PU of the first core, in the order
//! of the ways, lets all of them do their work once, and adds up what the
//! simulated PMU reads every second. Pitfalls: the figures are the chip's own
//! events, with read noise, so a usage near 0 can come out a hair below; FPU
//! usage means another thing on each chip, and operations per cycle can exceed 1.

use crate::frame::{Case, Frame};
use crate::simulate::{CaseSpec, ExperimentSpec, run_every_case};
use crate::study::StudyError;
use consort_core::plan::PlanReport;
use consort_core::{
    Machine, Placement, Plan, PuSet, Sample, Signal, SignalOffers, ThreadId, Topology,
};
use consort_experiment::ExperimentContext;
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{
    RunMode, SampleSource, SimulatedProgram, SimulationSettings, ThreadCounts,
};
use consort_sim::machine::{self, Quantity};
use consort_sim::pmu::{PmuError, PmuRequest, Readout, SimulatedPmu};
use consort_sim::program::{ProgramSpec, presets};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Time between two readings of the counters, ns: the source's one second.
const READ_EVERY_NS: u64 = 1_000_000_000;
/// L2 misses as the source counts them.
const L2_MISSES: &str = "l2-misses per 100 cycles";
/// Count of the first chip for its FPU: empty cycles per cycle; usage is 1 less this.
const FPU_EMPTY: &str = "fpu-empty-cycles per cycles";
/// Count of the second chip for its FPU: operations per cycle. The policies' signal is this, too,
/// but ends at 1.
const FP_OPERATIONS: &str = "fp-operations per cycles";
/// Instructions in the unit in which programs state their lengths.
const GIGA: f64 = 1e9;

/// The work of a quick run of a program, 10⁹ instructions: its first seconds.
const QUICK_GINSTR: f64 = 20.0;

/// Copies of a program, and their machine.
#[derive(Clone, Debug)]
pub(super) struct ProgramCopies {
    /// Name of a machine that comes with Consort.
    pub machine: String,
    /// PUs per core that are in use; all when none.
    pub smt: Option<u32>,
    /// Name of a program that comes with Consort.
    pub program: String,
    /// Copies of it, each on a PU of its own while there are PUs.
    pub copies: u32,
    /// Most work per copy, 10⁹ instructions; the program's whole length when none.
    pub at_most_ginstr: Option<f64>,
}

/// Copies of programs on one core, each of the experiment's cases with a machine and the labels
/// `smt` and `copies`; the policies are the programs.
pub(super) fn of_places(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let number = |case: &CaseSpec, label: &str| case.labels.get(label)?.parse().ok();
    let alone = |case: &CaseSpec, program: &String| ProgramCopies {
        machine: case.machine.clone().unwrap_or_else(|| spec.machine.clone()),
        smt: number(case, "smt"),
        program: program.clone(),
        copies: number(case, "copies").unwrap_or(1),
        at_most_ginstr: None,
    };
    frame(context, spec, alone)
}

/// Each of the experiment's programs by itself; the policies are the machines.
pub(super) fn of_programs(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let most = context.by_scale(Some(QUICK_GINSTR), None);
    let alone = |case: &CaseSpec, machine: &String| {
        let (machine, smt) = machine.split_once(":smt=").unwrap_or((machine, ""));
        ProgramCopies {
            machine: machine.to_owned(),
            smt: smt.parse().ok(),
            program: case.workload.clone().unwrap_or_default(),
            copies: 1,
            at_most_ginstr: most,
        }
    };
    frame(context, spec, alone)
}

/// Runs every case with every policy, so many times.
fn frame(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    alone: impl Fn(&CaseSpec, &String) -> ProgramCopies + Sync,
) -> Result<Frame, StudyError> {
    let runs = spec.runs(context);
    let run = |case: &CaseSpec, policy: &String, seed| alone(case, policy).run(seed);
    let reported = run_every_case(context, (&spec.cases, &spec.policies, runs), run)?;
    let case = |case: &CaseSpec| Case {
        key: case
            .key
            .clone()
            .or_else(|| case.workload.clone())
            .unwrap_or_default(),
        labels: case.labels.clone(),
        programs: Vec::new(),
    };
    let cases = spec.cases.iter().map(case).collect();
    let mut frame = Frame::new(cases, spec.policies.clone(), runs);
    for (measure, value) in VALUES {
        frame.set_run_values(measure, reported.iter().map(value).collect());
    }
    Ok(frame)
}

/// A value of a run.
type CounterValue = fn(&CounterMeans) -> f64;

/// Values of a run by the key of the measure.
const VALUES: &[(&str, CounterValue)] = &[
    ("fpu_usage", |t| t.fpu_usage),
    ("l2_per_100_cycles", |t| t.l2_misses),
    ("cycles_g", |t| t.gcycles),
    ("instructions_g", |t| t.ginstr),
    ("ipc", |t| t.ginstr / t.gcycles),
];

/// Figures of the counters for one run, of a copy: means over the copies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CounterMeans {
    /// FPU usage as the chip's event gives it, over all cycles of the run.
    pub fpu_usage: f64,
    /// L2 misses per 100 cycles.
    pub l2_misses: f64,
    /// Cycles, 10⁹.
    pub gcycles: f64,
    /// Instructions, 10⁹.
    pub ginstr: f64,
}

impl ProgramCopies {
    /// Runs the copies to their end; the seed is that of the read noise and of the program's
    /// variation.
    ///
    /// # Errors
    /// A machine or a program that is not there, counters that the machine lacks.
    pub fn run(&self, seed: u64) -> Result<CounterMeans, StudyError> {
        let totals = Rc::default();
        let mut machine = self.machine(seed, &totals)?;
        let placed = self.placed(&machine);
        machine.enact(&placed).map_err(|e| self.failed(e))?;
        while machine.observe().map_err(|e| self.failed(e))?.is_some() {}
        let totals: CounterTotals = *totals.borrow();
        Ok(totals.per_copy(f64::from(self.copies)))
    }

    fn machine(
        &self,
        seed: u64,
        totals: &Rc<RefCell<CounterTotals>>,
    ) -> Result<SimMachine, StudyError> {
        let spec = machine::presets::find(&self.machine).map_err(|e| self.failed(e))?;
        let chip = Arc::new(Chip::new(&spec, self.smt).map_err(|e| self.failed(e))?);
        let empty = spec
            .pmu
            .events
            .iter()
            .any(|e| e.counts == Quantity::FpuEmptyCycles);
        let request = request(empty).map_err(|e| self.failed(e))?;
        let pmu = SimulatedPmu::new(&spec, &request, seed).map_err(|e| self.failed(e))?;
        let totals = Rc::clone(totals);
        let (instances, settings) = (self.instances()?, settings(seed));
        let meter = Box::new(EnergyModel::new(&chip));
        let source = Box::new(SummingPmu { pmu, empty, totals });
        SimMachine::new(chip, &instances, &settings, READ_EVERY_NS, meter, source)
            .map_err(|e| self.failed(e))
    }

    fn instances(&self) -> Result<Vec<SimulatedProgram>, StudyError> {
        let program = Arc::new(presets::find(&self.program).map_err(|e| self.failed(e))?);
        let most = self.at_most_ginstr.unwrap_or(f64::INFINITY);
        let instance = SimulatedProgram {
            instructions: length_ginstr(&program).min(most) * GIGA,
            program,
            threads: 1,
            start_ms: 0.0,
        };
        Ok(vec![instance; self.copies as usize])
    }

    /// Places each thread on the next PU of the first core.
    fn placed(&self, machine: &SimMachine) -> Plan {
        let pus = first_core(machine.topology());
        let threads = machine.oracle().threads().collect::<Vec<_>>();
        let placements = threads.into_iter().zip(pus.into_iter().cycle());
        Plan {
            generation: 1,
            placements: placements.collect(),
            report: PlanReport::default(),
            quantum_ns: None,
            ..Plan::default()
        }
    }

    fn failed(&self, cause: impl std::error::Error + Send + Sync + 'static) -> StudyError {
        StudyError::part(format!("{} on {}", self.program, self.machine), cause)
    }
}

fn settings(seed: u64) -> SimulationSettings {
    SimulationSettings {
        seed,
        mode: RunMode::Once,
        os: "pinned".to_owned(),
        logical_cores: false,
        free_migration: false,
    }
}

/// Request for counts of FPU and L2, which fit the counters of both chips at once.
fn request(empty: bool) -> Result<PmuRequest, PmuError> {
    let fpu = if empty { FPU_EMPTY } else { FP_OPERATIONS };
    let readouts = [fpu, L2_MISSES].map(str::parse::<Readout>);
    Ok(PmuRequest {
        signals: Some(Vec::new()),
        readouts: readouts.into_iter().collect::<Result<_, _>>()?,
    })
}

fn length_ginstr(program: &ProgramSpec) -> f64 {
    program.phases.iter().map(|p| p.length_ginstr).sum()
}

fn first_core(topology: &Topology) -> Vec<Placement> {
    let pus = topology.cores().first().map(|core| core.pus.as_slice());
    let alone = |&pu| Placement::Restricted(PuSet::from(pu));
    pus.unwrap_or_default().iter().map(alone).collect()
}

/// Sums over all copies and readings. A ratio of a reading counts by its cycles, so that
/// the quotients of the sums are those of the events over the whole run.
#[derive(Clone, Copy, Debug, Default)]
struct CounterTotals {
    cycles: f64,
    instructions: f64,
    fpu_cycles: f64,
    l2_misses: f64,
}

impl CounterTotals {
    fn add(&mut self, sample: &Sample, fpu_usage: f64, l2_per_100: f64) {
        let reported = |signal| sample.get(signal).unwrap_or(0.0);
        let cycles = reported(Signal::Cycles);
        self.cycles += cycles;
        self.instructions += reported(Signal::Instructions);
        self.fpu_cycles += fpu_usage * cycles;
        self.l2_misses += l2_per_100 / 100.0 * cycles;
    }

    fn per_copy(self, copies: f64) -> CounterMeans {
        CounterMeans {
            // Read noise may take a counter of empty cycles beyond the cycles.
            fpu_usage: (self.fpu_cycles / self.cycles).clamp(0.0, 1.0),
            l2_misses: 100.0 * self.l2_misses / self.cycles,
            gcycles: self.cycles / copies / GIGA,
            ginstr: self.instructions / copies / GIGA,
        }
    }
}

/// A PMU whose readings are added up.
struct SummingPmu {
    pmu: SimulatedPmu,
    /// True where the chip counts empty cycles of the FPU instead of operations.
    empty: bool,
    totals: Rc<RefCell<CounterTotals>>,
}

impl SampleSource for SummingPmu {
    fn offers(&self) -> &SignalOffers {
        self.pmu.offers()
    }

    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample {
        let sample = self.pmu.sample(thread, counts, interval_ns);
        let reported = [0, 1].map(|i| self.pmu.readout(thread, i).map(|read| read.value));
        if let [Some(fpu), Some(l2)] = reported {
            let usage = if self.empty { 1.0 - fpu } else { fpu };
            self.totals.borrow_mut().add(&sample, usage, l2);
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(program: &str, machine: &str, copies: u32) -> CounterMeans {
        let alone = ProgramCopies {
            machine: machine.to_owned(),
            smt: None,
            program: program.to_owned(),
            copies,
            at_most_ginstr: Some(20.0),
        };
        alone.run(7).unwrap()
    }

    /// Asserts that a value is near: over ten readings the noise of 0.5 percent is below 1 percent.
    fn near(value: f64, expect: f64) {
        assert!(
            (value / expect - 1.0).abs() < 0.01,
            "{value} is not {expect}"
        );
    }

    #[test]
    fn every_copy_does_its_work() {
        for copies in [1, 2, 4] {
            near(alone("matmul-fp", "power7", copies).ginstr, 20.0);
        }
    }

    #[test]
    fn power7_tells_operations_per_cycle() {
        let reported = alone("matmul-fp", "power7", 2);
        let fp_share = presets::find("matmul-fp").unwrap().phases[0].mix.fp;
        near(
            reported.fpu_usage,
            fp_share * reported.ginstr / reported.gcycles,
        );
    }

    #[test]
    fn copies_on_one_core_are_slower_than_one() {
        let [one, two] = [1, 2].map(|copies| alone("matmul-fp", "bulldozer-6282se", copies));
        assert!(two.gcycles > 1.05 * one.gcycles, "{one:?} {two:?}");
    }

    #[test]
    fn l2_misses_are_those_of_the_program() {
        assert_eq!(alone("pure-int", "power7", 1).l2_misses, 0.0);
        assert!(alone("mcf", "bulldozer-6282se", 1).l2_misses > 0.1);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let alone = ProgramCopies {
            machine: "power7".to_owned(),
            smt: None,
            program: "mfc".to_owned(),
            copies: 1,
            at_most_ginstr: None,
        };
        let error = alone.run(7).unwrap_err().to_string();
        assert!(error.starts_with("mfc on power7: "), "{error}");
    }
}
