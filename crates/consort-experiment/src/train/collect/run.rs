//! One run: programs pinned to the CPUs of one core of a simulated machine, observed through its
//! PMU.

use super::align::TrainingQuantum;
use super::{CollectError, Training};
use crate::{ExperimentError, build_machine};
use consort_core::plan::PlanReport;
use consort_core::{Machine, Observation, Placement, Plan, PuId, Signal};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::program::ProgramSpec;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::sync::Arc;

/// Instructions that no program does within a run.
const ENDLESS: f64 = 1e18;

/// A start that no run reaches, ms: 11 days.
const NEVER_MS: f64 = 1e9;

const NEEDS: [Signal; 3] = [Signal::Cycles, Signal::Instructions, Signal::CycleStack];

/// The core on which everything runs.
pub(super) struct TrainingCore<'a> {
    training: &'a Training,
    seed: u64,
    pus: Vec<PuId>,
    components: Vec<String>,
    /// Quanta until every event has counted once.
    turn: usize,
}

impl<'a> TrainingCore<'a> {
    /// Picks the first of the cores with most CPUs.
    pub(super) fn new(training: &'a Training, seed: u64) -> Result<Self, CollectError> {
        let pus = core(&training.chip);
        let pmu = pmu(&training.chip, seed)?;
        let bench = Self {
            training,
            seed,
            pus,
            components: pmu
                .offers()
                .stack()
                .iter()
                .map(ToString::to_string)
                .collect(),
            turn: pmu.quanta(),
        };
        bench.check(&pmu)?;
        Ok(bench)
    }

    /// Threads in the largest group; also the number of slots.
    pub(super) fn slots(&self) -> usize {
        let most = self.training.ways.iter().max();
        most.map_or(0, |&ways| ways as usize)
    }

    /// The stack's components, in the machine's order.
    pub(super) fn components(&self) -> &[String] {
        &self.components
    }

    /// Quanta at the start of a run that are left out: one in which threads are where the system
    /// put them, and those until every event has been counted since.
    pub(super) fn lead_in(&self) -> usize {
        1 + self.turn
    }

    /// Runs a program in its slot, with all other slots empty.
    pub(super) fn run_alone(
        &self,
        program: &Arc<ProgramSpec>,
        slot: usize,
    ) -> Result<Vec<TrainingQuantum>, CollectError> {
        let instances =
            (0..=slot).map(|s| instance(program, if s == slot { 0.0 } else { NEVER_MS }));
        let seed = noise_seed(self.seed, [program.name.as_str(), &slot.to_string()]);
        let mut quanta = self.run(&instances.collect::<Vec<_>>(), seed)?;
        Ok(quanta.pop().unwrap_or_default())
    }

    /// Runs programs in the slots of their numbers. Returns quanta by slot.
    pub(super) fn run_together(
        &self,
        programs: &[&Arc<ProgramSpec>],
    ) -> Result<Vec<Vec<TrainingQuantum>>, CollectError> {
        let instances: Vec<SimulatedProgram> = programs.iter().map(|p| instance(p, 0.0)).collect();
        let seed = noise_seed(self.seed, programs.iter().map(|p| p.name.as_str()));
        self.run(&instances, seed)
    }

    fn run(
        &self,
        instances: &[SimulatedProgram],
        seed: u64,
    ) -> Result<Vec<Vec<TrainingQuantum>>, CollectError> {
        let mut machine = self.machine(instances, seed)?;
        let mut quanta: Vec<Vec<TrainingQuantum>> = Vec::new();
        for n in 0..self.training.quanta {
            let Some(seen) = machine.observe().map_err(ExperimentError::from)? else {
                break;
            };
            // Threads can be pinned only after they have been seen once.
            if n == 0 {
                machine
                    .enact(&self.pinned_plan(&seen))
                    .map_err(ExperimentError::from)?;
                quanta.resize(seen.threads.len(), Vec::new());
            }
            for (series, thread) in quanta.iter_mut().zip(&seen.threads) {
                series.push(TrainingQuantum::from_sample(
                    &thread.sample,
                    &self.components,
                ));
            }
        }
        Ok(quanta)
    }

    fn machine(
        &self,
        instances: &[SimulatedProgram],
        seed: u64,
    ) -> Result<SimMachine, CollectError> {
        let settings = SimulationSettings {
            seed: self.seed,
            mode: RunMode::Once,
            os: "linux".to_owned(),
            logical_cores: false,
            free_migration: false,
        };
        let chip = &self.training.chip;
        let pmu = Box::new(pmu(chip, seed)?);
        let quantum_ns = self.training.quantum_ns;
        Ok(build_machine(chip, instances, &settings, quantum_ns, pmu)?)
    }

    /// A plan with every thread on its own CPU of the core.
    fn pinned_plan(&self, seen: &Observation) -> Plan {
        let threads = seen.threads.iter().zip(&self.pus);
        let placed = threads.map(|(thread, &pu)| {
            let placement = Placement::Restricted(std::iter::once(pu).collect());
            (thread.id, placement)
        });
        Plan {
            generation: 1,
            quantum_ns: None,
            placements: placed.collect(),
            report: PlanReport::default(),
            ..Plan::default()
        }
    }

    fn check(&self, pmu: &SimulatedPmu) -> Result<(), CollectError> {
        let machine = || self.training.chip.spec().name.clone();
        let (pus, needed) = (self.pus.len(), self.lead_in() + 1);
        if pus < 2 {
            return Err(CollectError::NoCoRunners { machine: machine() });
        }
        let fits = |ways: u32| (2..=pus).contains(&(ways as usize));
        if let Some(&ways) = self.training.ways.iter().find(|&&ways| !fits(ways)) {
            let machine = machine();
            return Err(CollectError::Ways { machine, pus, ways });
        }
        let missing = pmu.offers().missing_signals(&NEEDS);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|signal| signal.name()).collect();
            return Err(CollectError::NotCounted {
                machine: machine(),
                missing: names.join(", "),
            });
        }
        let quanta = self.training.quanta;
        (quanta >= needed)
            .then_some(())
            .ok_or_else(|| CollectError::TooShort {
                machine: machine(),
                quanta,
                needed,
            })
    }
}

/// CPUs of the first of the cores that have most.
fn core(chip: &Chip) -> Vec<PuId> {
    let smt = chip.topology().smt();
    let mut cores = chip.topology().cores().iter();
    let core = cores.find(|core| core.pus.len() == smt);
    core.map_or_else(Vec::new, |core| core.pus.clone())
}

/// Counts only what a model needs, so that the events take the fewest turns.
fn pmu(chip: &Chip, seed: u64) -> Result<SimulatedPmu, CollectError> {
    let request = PmuRequest {
        signals: Some(vec![Signal::CycleStack]),
        readouts: Vec::new(),
    };
    let pmu = SimulatedPmu::new(chip.spec(), &request, seed);
    Ok(pmu.map_err(ExperimentError::from)?)
}

fn instance(program: &Arc<ProgramSpec>, start_ms: f64) -> SimulatedProgram {
    SimulatedProgram {
        program: Arc::clone(program),
        threads: 1,
        instructions: ENDLESS,
        start_ms,
    }
}

/// Seed that gives every run its own read noise: FNV-1a (Fowler, Noll, Vo) over its programs.
fn noise_seed<'n>(seed: u64, names: impl IntoIterator<Item = &'n str>) -> u64 {
    let bytes = names.into_iter().flat_map(|name| name.bytes().chain([0]));
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Groups of `ways` programs out of `programs`, by number. For pairs, all of them, including each
/// program with itself; for larger groups a seeded draw of `draws`, each program drawn
/// independently.
pub(super) fn groups(programs: usize, ways: u32, draws: usize, seed: u64) -> Vec<Vec<usize>> {
    if ways == 2 {
        let pairs = (0..programs).flat_map(|a| (a..programs).map(move |b| vec![a, b]));
        return pairs.collect();
    }
    // The number of threads is part of the seed, so that levels are drawn independently.
    let mut rng = Pcg64::seed_from_u64(seed ^ (u64::from(ways) << 32));
    let mut group = || (0..ways).map(|_| rng.random_range(0..programs)).collect();
    (0..draws).map(|_| group()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_complete_and_larger_groups_drawn() {
        let pairs = groups(3, 2, 1, 7);
        assert_eq!(pairs, [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]);
        let drawn = groups(5, 4, 100, 7);
        assert_eq!(drawn, groups(5, 4, 100, 7));
        assert_ne!(drawn, groups(5, 4, 100, 8));
        assert_eq!(drawn.len(), 100);
        let every = |p| drawn.iter().flatten().any(|&q| q == p);
        assert!((0..5).all(every) && drawn.iter().all(|group| group.len() == 4));
    }
}
