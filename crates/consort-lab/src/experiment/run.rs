//! One run.

use super::alone::{Work, measure_alone};
use super::contender::Contender;
use super::decision_time::{DecisionTime, Timed};
use super::error::ExperimentError;
use consort_core::metrics::{Slowdowns, energy_delay_js};
use consort_core::{Backoff, ControlLoop, Offers, Sample, ThreadId};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{
    Counts, Instance, InstanceResult, Observer, RunMode, SampleSource, Settings,
};
use consort_sim::pmu::{Request, SimulatedPmu};
use consort_sim::workload::Workload;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run is given up when it takes this many times what its programs take alone, one after the
/// other.
const PATIENCE: f64 = 20.0;

/// A workload on a machine.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub chip: Arc<Chip>,
    /// The programs.
    pub workload: Workload,
    /// Time that each program's work takes alone, s.
    pub alone_s: f64,
    /// Quantum; the policy's own when none.
    pub quantum: Option<Duration>,
}

/// What one program did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramResult {
    /// Its name, with a number where there are several of that name.
    pub name: String,
    /// Time of its work alone, s.
    pub alone_s: f64,
    /// Time of the same work together with the others, s.
    pub together_s: f64,
    /// `together_s / alone_s`.
    pub slowdown: f64,
    /// Instructions of that work, all threads.
    pub instructions: f64,
    /// Instructions per cycle of its threads while they were on PUs, over the whole run.
    pub ipc: f64,
    /// Energy of that work, J: its instructions and its share of static core power.
    pub energy_j: f64,
}

/// What one run gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Name of the machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// The contender.
    pub policy: String,
    /// Model of the operating system.
    pub os: String,
    /// The seed.
    pub seed: u64,
    /// Per program.
    pub programs: Vec<ProgramResult>,
    /// System throughput, Σ 1/slowdown.
    pub stp: f64,
    /// Average normalised turnaround time.
    pub antt: f64,
    /// Largest over smallest slowdown.
    pub unfairness: f64,
    /// Time until the last program had done its work once, s.
    pub makespan_s: f64,
    /// Energy of the whole machine over the run, J.
    pub energy_j: f64,
    /// `energy_j · makespan_s`, J·s.
    pub ed: f64,
    /// Masks that the policy changed.
    pub moves: u64,
    /// Times that a thread came onto another PU, the policy's doing or the system's.
    pub migrations: u64,
    /// Host time per decision, µs.
    pub decision_us: DecisionTime,
    /// Simulated time, s.
    pub simulated_s: f64,
    /// Host time, s.
    pub host_s: f64,
    /// Simulated instructions per second of host time, 10⁶.
    pub simulated_minstr_per_host_s: f64,
}

impl Experiment {
    /// The work of every instance.
    ///
    /// # Errors
    /// A program that makes no progress alone.
    pub fn work(&self, seed: u64) -> Result<Vec<Work>, ExperimentError> {
        let mut known: Vec<Work> = Vec::new();
        let entries = &self.workload.entries;
        for (i, entry) in entries.iter().enumerate() {
            // Copies of a program have the same work.
            let like = |other: &consort_sim::workload::Instance| {
                Arc::ptr_eq(&other.program, &entry.program) && other.threads == entry.threads
            };
            let work = match entries[..i].iter().position(like) {
                Some(same) => known[same],
                None => measure_alone(&self.chip, entry, self.alone_s, seed)?,
            };
            known.push(work);
        }
        Ok(known)
    }

    /// One run under a contender; the observer, if there is one, is told of everything.
    ///
    /// # Errors
    /// Needs of the policy that the machine does not meet; runs that do not end.
    pub fn run(
        &self,
        contender: &Contender,
        work: &[Work],
        seed: u64,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<RunResult, ExperimentError> {
        let start = Instant::now();
        let pmu = SimulatedPmu::new(self.chip.spec(), &Request::default(), seed)?;
        let info = contender.info(pmu.offers())?;
        let quantum = self
            .quantum
            .unwrap_or(Duration::from_millis(info.quantum_ms));
        let settings = Settings {
            seed,
            mode: RunMode::RestartUntilAllDone,
            os: contender.os().to_owned(),
            logical_cores: false,
        };
        let quantum_ns = quantum.as_nanos() as u64;
        let instances = self.instances(work);
        let mut machine = machine(&self.chip, &instances, &settings, quantum_ns, Box::new(pmu))?;
        if let Some(observer) = observer {
            machine.set_observer(observer);
        }
        let (policy, decisions) = Timed::new(contender.build(&machine)?);
        let mut wheel = ControlLoop::new(machine, Box::new(policy), Backoff::off(), seed);
        let moves = self.turn_until_done(&mut wheel, work)?;
        let decision_us = *decisions.borrow();
        let mut result = self.result(contender, work, seed, &wheel.into_machine());
        result.moves = moves;
        result.decision_us = decision_us;
        result.host_s = start.elapsed().as_secs_f64();
        result.simulated_minstr_per_host_s /= result.host_s.max(1e-9);
        Ok(result)
    }

    fn instances(&self, work: &[Work]) -> Vec<Instance> {
        let entries = self.workload.entries.iter().zip(work);
        entries
            .map(|(entry, work)| Instance {
                program: Arc::clone(&entry.program),
                threads: entry.threads,
                instructions: work.instructions,
                start_ms: entry.start_ms,
            })
            .collect()
    }

    /// Turns the wheel to the end; how many masks were changed.
    fn turn_until_done(
        &self,
        wheel: &mut ControlLoop<SimMachine>,
        work: &[Work],
    ) -> Result<u64, ExperimentError> {
        let alone: f64 = work.iter().map(|w| w.alone_s).sum();
        let late: f64 = self
            .workload
            .entries
            .iter()
            .map(|e| e.start_ms / 1e3)
            .fold(0.0, f64::max);
        let limit = late + PATIENCE * alone;
        let mut moves = 0;
        while let Some(turn) = wheel.turn()? {
            moves += turn.enacted.moved.len() as u64;
            if wheel.machine().time_ns() as f64 > limit * 1e9 {
                return Err(self.endless(wheel.machine(), limit));
            }
        }
        Ok(moves)
    }

    fn endless(&self, machine: &SimMachine, seconds: f64) -> ExperimentError {
        let results = machine.results();
        let waiting = results.iter().position(|r| r.completions.is_empty());
        let program = waiting.and_then(|i| self.workload.entries.get(i));
        ExperimentError::Endless {
            program: program.map_or_else(String::new, |entry| entry.name.clone()),
            seconds,
            times: PATIENCE,
        }
    }

    fn result(
        &self,
        contender: &Contender,
        work: &[Work],
        seed: u64,
        machine: &SimMachine,
    ) -> RunResult {
        let results = machine.results();
        let programs = self.programs(work, &results);
        let slowdowns = programs.iter().map(|p| p.slowdown).collect();
        // Times are positive, so there are slowdowns; without programs there is no run.
        let slowdowns = Slowdowns::new(slowdowns).ok();
        let of = |measure: fn(&Slowdowns) -> f64| slowdowns.as_ref().map_or(f64::NAN, measure);
        let ends = results
            .iter()
            .filter_map(|r| Some(r.completions.first()?.end_s));
        let makespan_s = ends.fold(0.0, f64::max);
        let energy_j = machine.energy_j();
        let instructions: f64 = results.iter().map(|r| r.instructions).sum();
        let oracle = machine.oracle();
        let counts = oracle.threads().filter_map(|id| oracle.counts(id));
        RunResult {
            machine: self.chip.spec().name.clone(),
            workload: self.workload.text.clone(),
            policy: contender.name().to_owned(),
            os: contender.os().to_owned(),
            seed,
            programs,
            stp: of(Slowdowns::stp),
            antt: of(Slowdowns::antt),
            unfairness: of(Slowdowns::unfairness),
            makespan_s,
            energy_j,
            ed: energy_delay_js(energy_j, makespan_s),
            moves: 0,
            migrations: counts.map(|c| c.migrations).sum(),
            decision_us: DecisionTime::default(),
            simulated_s: machine.time_ns() as f64 / 1e9,
            host_s: 0.0,
            simulated_minstr_per_host_s: instructions / 1e6,
        }
    }

    fn programs(&self, work: &[Work], results: &[InstanceResult]) -> Vec<ProgramResult> {
        let rows = self.workload.entries.iter().zip(work).zip(results);
        let row = |((entry, work), result): (
            (&consort_sim::workload::Instance, &Work),
            &InstanceResult,
        )| {
            let first = result.completions.first()?;
            let together_s = first.end_s - first.start_s;
            Some(ProgramResult {
                name: entry.name.clone(),
                alone_s: work.alone_s,
                together_s,
                slowdown: together_s / work.alone_s,
                instructions: first.instructions,
                ipc: result.instructions / result.cycles,
                energy_j: first.energy_j,
            })
        };
        rows.filter_map(row).collect()
    }
}

/// A simulated machine with its energy model.
pub(super) fn machine(
    chip: &Arc<Chip>,
    instances: &[Instance],
    settings: &Settings,
    quantum_ns: u64,
    source: Box<dyn SampleSource>,
) -> Result<SimMachine, ExperimentError> {
    let meter = Box::new(EnergyModel::new(chip));
    let chip = Arc::clone(chip);
    Ok(SimMachine::new(
        chip, instances, settings, quantum_ns, meter, source,
    )?)
}

/// No samples: nobody watches.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    offers: Offers,
}

impl SampleSource for Quiet {
    fn offers(&self) -> &Offers {
        &self.offers
    }

    fn sample(&mut self, _: ThreadId, _: &Counts, _: u64) -> Sample {
        Sample::default()
    }
}
