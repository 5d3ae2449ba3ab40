//! Estimates of slots without events, for searches through all of them.
//!
//! The behaviour of a program alone on each number of cores is simulated with all its events: serial sections,
//! barriers, locks, input and output. What others do to it is the ratio of two solutions of the
//! contention model, with and without them, each program with as many threads as work on average
//! when it is alone. Waiting so enters as its mean: that serial sections of one program meet
//! parallel ones of another is averaged away, and so is that threads that run slower wait less.
//!
//! Pitfall: static power is that of the first core; all others are taken to be copies of it.

use super::Suite;
use super::trials::{DetailedTrial, SlotTrials};
use crate::ExperimentContext;
use crate::error::ExperimentError;
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, ProgramMeasure, ProgramTeam, SlotTrial};
use consort_core::policies::divide_cores;
use consort_sim::contention::{Demand, RunningThread, Solver};
use consort_sim::energy::EnergyModel;
use consort_sim::engine::EnergyMeter;
use consort_sim::phase::Phase;
use consort_sim::program::PhaseSpec;
use consort_sim::workload::ProgramInstance;
use std::collections::BTreeMap;
use std::sync::Arc;

const NS_PER_S: f64 = 1e9;

/// Distance from linear scaling within which a program runs alone if only gaining programs share:
/// the source's 10 percent.
pub const NEAR_LINEAR: f64 = 0.1;

/// The estimator.
pub struct SlotEstimator<'a> {
    suite: &'a Suite,
    solver: Solver,
    demands: Vec<Demand>,
    /// By program and number of cores.
    alone: BTreeMap<(ProgramId, u32), AloneTrial>,
    core_w: f64,
    idle_w: f64,
    uncore_w: f64,
    /// By number of programs: mean of simulated over estimated throughput.
    corrections: BTreeMap<usize, f64>,
}

/// Behaviour of a program alone on a number of cores.
#[derive(Clone, Debug)]
struct AloneTrial {
    trial: SlotTrial,
    on_pus: f64,
    threads: usize,
    /// Instructions per s of its threads by the contention model.
    solved_ips: f64,
    /// Energy of its own work without the static power of cores, J per instruction.
    work_j: f64,
}

impl<'a> SlotEstimator<'a> {
    /// Simulates every program alone on every number of cores.
    ///
    /// # Errors
    /// Programs that cannot be simulated.
    pub fn new(
        trials: SlotTrials<'a>,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, ExperimentError> {
        let suite = trials.suite();
        let meter = EnergyModel::new(suite.chip());
        let instances = suite.ids().filter_map(|id| Some((id, suite.program(id)?)));
        let mut steady = Self {
            suite,
            solver: Solver::new(Arc::clone(suite.chip())),
            demands: instances.map(|(id, program)| demand(id, program)).collect(),
            alone: BTreeMap::new(),
            core_w: meter.core_w(0, true),
            idle_w: meter.core_w(0, false),
            uncore_w: meter.uncore_w(),
            corrections: BTreeMap::new(),
        };
        let slots = suite.alone_slots();
        let reported = context.map(&slots, |slot| trials.run_detailed(slot))?;
        for reported in reported {
            steady.learn_alone(reported?);
        }
        Ok(steady)
    }

    fn learn_alone(&mut self, reported: DetailedTrial) {
        let ([team], [measure]) = (&reported.trial.slot.teams[..], &reported.trial.measures[..])
        else {
            return;
        };
        let (team, on_pus) = (*team, measure.busy_cores());
        let threads = (libm::round(reported.working[0]) as usize).clamp(1, team.cores as usize);
        let static_w = self.core_w * on_pus + self.rest_w(on_pus);
        let work_w = (measure.power_w() - static_w).max(0.0);
        let alone = AloneTrial {
            on_pus,
            threads,
            solved_ips: self.solve(&[(team, threads)])[0],
            work_j: work_w / measure.throughput().max(1.0),
            trial: reported.trial,
        };
        self.alone.insert((team.program, team.cores), alone);
    }

    /// Power besides that of programs while `busy` cores are busy, W: of uncore and idle cores.
    fn rest_w(&self, busy: f64) -> f64 {
        let idle = (f64::from(self.suite.cores()) - busy).max(0.0);
        self.uncore_w + idle * self.idle_w
    }

    /// Measures of each program alone on all cores.
    pub fn gang_measures(&self) -> Vec<(ProgramId, ProgramMeasure)> {
        let all = self.suite.cores();
        let of = |id| Some((id, self.alone_measure(id, all)?));
        self.suite.ids().filter_map(of).collect()
    }

    /// Simulated measures of a program alone on `cores` cores.
    pub fn alone_measure(&self, program: ProgramId, cores: u32) -> Option<ProgramMeasure> {
        let alone = self.alone.get(&(program, cores))?;
        alone.trial.measures.first().copied()
    }

    /// True if a program's throughput on all `cores` is within [`NEAR_LINEAR`] of as
    /// many times that on one.
    pub(super) fn is_near_linear(&self, program: ProgramId, cores: u32) -> bool {
        let throughput = |n| {
            self.alone_measure(program, n)
                .map_or(0.0, |m| m.throughput())
        };
        throughput(cores) >= (1.0 - NEAR_LINEAR) * f64::from(cores) * throughput(1)
    }

    /// Takes the mean error out of later estimates that those of slots of as many programs have
    /// had, by simulated trials.
    pub(super) fn correct_estimates(&mut self, trials: &[SlotTrial]) {
        let mut ratios: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for trial in trials {
            let estimate = self.estimate(&trial.slot);
            let pairs = trial.measures.iter().zip(&estimate.measures);
            let of_slot = pairs.map(|(real, guess)| real.throughput() / guess.throughput());
            ratios
                .entry(trial.slot.teams.len())
                .or_default()
                .extend(of_slot);
        }
        for (programs, ratios) in ratios {
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            *self.corrections.entry(programs).or_insert(1.0) *= mean;
        }
    }

    /// The simulated trials of programs on their own.
    pub fn alone_trials(&self) -> impl Iterator<Item = &SlotTrial> {
        self.alone.values().map(|alone| &alone.trial)
    }

    /// An estimate for one second of a slot; instructions and energy only.
    pub fn estimate(&self, slot: &CoscheduleSlot) -> SlotTrial {
        let known =
            |team: &ProgramTeam| Some((*team, self.alone.get(&(team.program, team.cores))?));
        let members: Vec<(ProgramTeam, &AloneTrial)> =
            slot.teams.iter().filter_map(known).collect();
        let solved: Vec<(ProgramTeam, usize)> =
            members.iter().map(|(t, a)| (*t, a.threads)).collect();
        let speeds = self.solve(&solved);
        let busy: f64 = members.iter().map(|(_, alone)| alone.on_pus).sum();
        let rest_w = self.rest_w(busy) / busy.max(f64::MIN_POSITIVE);
        let correction = self.corrections.get(&members.len()).copied().unwrap_or(1.0);
        let measure = |((team, alone), speed): (&(ProgramTeam, &AloneTrial), &f64)| {
            let before = alone
                .trial
                .measures
                .first()
                .map_or(0.0, ProgramMeasure::throughput);
            let instructions = before * correction * speed / alone.solved_ips;
            ProgramMeasure {
                instructions,
                cores: team.cores,
                time_ns: NS_PER_S,
                energy_j: alone.work_j * instructions + (self.core_w + rest_w) * alone.on_pus,
                ..ProgramMeasure::default()
            }
        };
        SlotTrial {
            measures: members.iter().zip(&speeds).map(measure).collect(),
            slot: slot.clone(),
        }
    }

    /// Instructions per s of each team, with the given number of its threads on the first of its cores.
    fn solve(&self, teams: &[(ProgramTeam, usize)]) -> Vec<f64> {
        let slot = CoscheduleSlot {
            teams: teams.iter().map(|(team, _)| *team).collect(),
        };
        let seats = divide_cores(self.suite.chip().topology(), &slot);
        let mut running = Vec::new();
        for (team, threads) in teams {
            let demand = self.demands.get(team.program.0 as usize);
            let (Some(demand), Some(seat)) = (demand, seats.get(&team.program)) else {
                continue;
            };
            let pus = seat.iter().take(*threads);
            running.extend(pus.map(|pu| RunningThread {
                pu: pu.0 as usize,
                demand,
            }));
        }
        let solution = self.solver.solve(&running);
        let of = |team: &ProgramTeam| {
            let rates = running.iter().zip(&solution.threads);
            let own = rates.filter(|(running, _)| running.demand.program == team.program.0);
            own.map(|(_, rates)| rates.ips).sum()
        };
        slot.teams.iter().map(of).collect()
    }
}

/// Demand of a thread of a program in its longest phase.
fn demand(id: ProgramId, instance: &ProgramInstance) -> Demand {
    let program = &instance.program;
    let longer = |a: &&PhaseSpec, b: &&PhaseSpec| a.length_ginstr.total_cmp(&b.length_ginstr);
    let phase = program.phases.iter().max_by(longer);
    let threads = program.threads.as_ref();
    Demand {
        phase: Arc::new(Phase::new(phase.unwrap_or(&program.phases[0]))),
        intensity: 1.0,
        program: id.0,
        text: id.0,
        shared_data: threads.map_or(0.0, |threads| threads.shared_data),
        shared_code: threads.map_or(1.0, |threads| threads.shared_code),
        lock: None,
        home_node: 0,
    }
}
