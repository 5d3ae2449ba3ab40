//! The best round of a suite, by trying all.
//!
//! Every slot is estimated ([`SlotEstimator`]), with the mean error taken out that estimates have on some
//! slots of as many programs, which are simulated. Then the slots of the best round by what is known
//! are simulated, what they really do takes the place of the estimates, and so on until the best
//! round of simulated slots is within [`NEAR`] of the best of all. A slot whose estimate is too bad
//! to be in any best round is never looked at, so the round is the best as far as estimates tell;
//! [`BestRound::sampled`] says how far that is.

use super::slot_estimator::SlotEstimator;
use super::suite::Suite;
use super::trials::{SlotTrials, TrialLengths};
use crate::ExperimentContext;
use crate::error::ExperimentError;
use consort_core::ProgramId;
use consort_core::coscheduling::{
    CoscheduleSlot, ExhaustiveSlots, ProgramMeasure, RoundObjective, ScheduleRound, SlotTrial,
};
use std::collections::BTreeMap;

/// Largest distance of the best simulated from the best by estimates at the end, relative.
const NEAR: f64 = 0.01;
/// Rounds that are simulated at most; after that the best of what has been simulated counts.
const MOST_ROUNDS: usize = 60;
/// Slots that are estimated as one job.
const BATCH: usize = 500;
/// Slots of each number of programs on which estimates are compared with simulations.
const SAMPLES: usize = 12;

/// Result of a search.
#[derive(Clone, Debug)]
pub struct BestRound {
    /// The slots, all of them simulated, and what they are worth.
    pub round: ScheduleRound,
    /// Slots that were estimated.
    pub estimated: usize,
    /// Slots of several programs that were simulated.
    pub simulated: usize,
    /// Of these, slots that were taken at even distances from all, whatever they are worth.
    pub samples: usize,
    /// True where the search ended by itself, not by its bound.
    pub settled: bool,
    /// Estimated over simulated throughput, less 1, of each program in these.
    pub sampled: Vec<f64>,
}

/// Aim of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchGoal {
    /// By what rounds are compared.
    pub objective: RoundObjective,
    /// Programs that may share a slot.
    pub members: SlotMembers,
}

/// Programs that may share a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotMembers {
    /// Programs that do not scale nearly linearly, in slots in which nobody is worse off than in the
    /// gang: the oracle of the source.
    #[default]
    Gaining,
    /// All, whoever loses by it: a bound.
    All,
}

impl SlotMembers {
    /// The names that options know.
    pub const NAMES: &'static str = "gaining or all";

    /// Finds the members of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "gaining" => Some(Self::Gaining),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// Searches for several things; any number of workers finds the same.
///
/// # Errors
/// More programs or slots than are searched, before anything is simulated; programs that cannot be
/// simulated.
pub fn best_rounds(
    suite: &Suite,
    quests: &[SearchGoal],
    quantum: TrialLengths,
    context: &ExperimentContext<'_>,
) -> Result<Vec<BestRound>, ExperimentError> {
    let none = suite.ids().map(|id| (id, ProgramMeasure::default()));
    let none: Vec<(ProgramId, ProgramMeasure)> = none.collect();
    let all = ExhaustiveSlots::new(suite.cores(), &none, RoundObjective::default())?;
    let slots: Vec<CoscheduleSlot> = all.slots().collect();
    let trials = SlotTrials::new(suite, quantum, context.seed());
    let mut steady = SlotEstimator::new(trials, context)?;
    let samples = simulate_slots(&sample_evenly(&slots), trials, context)?;
    let sampled = samples.iter().flat_map(|trial| errors(&steady, trial));
    let sampled: Vec<f64> = sampled.collect();
    steady.correct_estimates(&samples);
    let batches: Vec<&[CoscheduleSlot]> = slots.chunks(BATCH).collect();
    let estimates = context.map(&batches, |batch| {
        let each = batch.iter().map(|slot| steady.estimate(slot));
        each.collect::<Vec<SlotTrial>>()
    })?;
    let mut known = SimulatedTrials::default();
    steady
        .alone_trials()
        .chain(&samples)
        .for_each(|trial| known.insert(trial));
    let search = |&quest: &SearchGoal| {
        let mut search = RoundSearch::new(&steady, quest, suite.cores())?;
        estimates
            .iter()
            .flatten()
            .for_each(|trial| search.all.record_trial(trial));
        let (round, settled) = search.settle(&mut known, trials, context)?;
        Ok(BestRound {
            round,
            estimated: slots.len(),
            simulated: known.count_shared(),
            samples: samples.len(),
            settled,
            sampled: sampled.clone(),
        })
    };
    quests.iter().map(search).collect()
}

/// Some slots of each number of programs from two on, at even distances.
fn sample_evenly(slots: &[CoscheduleSlot]) -> Vec<CoscheduleSlot> {
    let mut by_number: BTreeMap<usize, Vec<&CoscheduleSlot>> = BTreeMap::new();
    for slot in slots.iter().filter(|slot| slot.teams.len() > 1) {
        by_number.entry(slot.teams.len()).or_default().push(slot);
    }
    let some = |slots: &Vec<&CoscheduleSlot>| {
        let step = slots.len().div_ceil(SAMPLES).max(1);
        // From the middle of a step: the first of all is as far from the mean as any can be.
        let chosen = slots.iter().skip(step / 2).step_by(step);
        chosen.map(|slot| (*slot).clone()).collect::<Vec<_>>()
    };
    by_number.values().flat_map(some).collect()
}

fn simulate_slots(
    slots: &[CoscheduleSlot],
    trials: SlotTrials<'_>,
    context: &ExperimentContext<'_>,
) -> Result<Vec<SlotTrial>, ExperimentError> {
    let reported = context.map(slots, |slot| trials.run(slot))?;
    reported.into_iter().collect()
}

/// Estimated over simulated throughput, less 1.
fn errors(steady: &SlotEstimator<'_>, trial: &SlotTrial) -> Vec<f64> {
    let estimate = steady.estimate(&trial.slot);
    let pairs = estimate.measures.iter().zip(&trial.measures);
    let error = |(a, b): (&ProgramMeasure, &ProgramMeasure)| a.throughput() / b.throughput() - 1.0;
    pairs.map(error).collect()
}

/// Trials simulated so far, whatever the objective.
#[derive(Default)]
struct SimulatedTrials(BTreeMap<Vec<(u32, u32)>, SlotTrial>);

impl SimulatedTrials {
    fn insert(&mut self, trial: &SlotTrial) {
        self.0.insert(slot_key(&trial.slot), trial.clone());
    }

    fn contains(&self, slot: &CoscheduleSlot) -> bool {
        self.0.contains_key(&slot_key(slot))
    }

    /// Slots of several programs.
    fn count_shared(&self) -> usize {
        self.0.keys().filter(|key| key.len() > 1).count()
    }
}

struct RoundSearch {
    /// With estimates where nothing else is known.
    all: ExhaustiveSlots,
    /// With what has been simulated alone.
    real: ExhaustiveSlots,
    /// Slots of programs that are not searched.
    apart: Vec<CoscheduleSlot>,
    /// Number of programs.
    searched: usize,
}

impl RoundSearch {
    fn new(
        steady: &SlotEstimator<'_>,
        quest: SearchGoal,
        cores: u32,
    ) -> Result<Self, ExperimentError> {
        let sparing = quest.members == SlotMembers::Gaining;
        let is_apart =
            |(id, _): &(ProgramId, ProgramMeasure)| sparing && steady.is_near_linear(*id, cores);
        let (apart, gang): (Vec<_>, Vec<_>) =
            steady.gang_measures().into_iter().partition(is_apart);
        let new = || {
            let search = ExhaustiveSlots::new(cores, &gang, quest.objective)?;
            Ok::<_, ExperimentError>(if sparing {
                search.exclude_harmful_slots()
            } else {
                search
            })
        };
        Ok(Self {
            all: new()?,
            real: new()?,
            apart: apart
                .iter()
                .map(|(id, _)| CoscheduleSlot::alone(*id, cores))
                .collect(),
            searched: gang.len(),
        })
    }

    /// Simulates what the best round needs until nothing better is to be expected; the round, and
    /// whether that was reached.
    fn settle(
        &mut self,
        known: &mut SimulatedTrials,
        trials: SlotTrials<'_>,
        context: &ExperimentContext<'_>,
    ) -> Result<(ScheduleRound, bool), ExperimentError> {
        known.0.values().for_each(|trial| self.note(trial));
        for _ in 0..MOST_ROUNDS {
            let (all, real) = self.best();
            let open: Vec<CoscheduleSlot> = all
                .slots
                .into_iter()
                .filter(|slot| !known.contains(slot))
                .collect();
            if open.is_empty() || (real.value / all.value - 1.0).abs() < NEAR {
                return Ok((real, true));
            }
            for trial in simulate_slots(&open, trials, context)? {
                known.insert(&trial);
                self.note(&trial);
            }
        }
        Ok((self.best().1, false))
    }

    fn note(&mut self, trial: &SlotTrial) {
        self.all.record_trial(trial);
        self.real.record_trial(trial);
    }

    /// The best of all and the best of what has been simulated. Every program has been simulated
    /// alone, so there is one.
    fn best(&self) -> (ScheduleRound, ScheduleRound) {
        let none = || ScheduleRound {
            slots: Vec::new(),
            value: f64::NAN,
        };
        let best =
            |search: &ExhaustiveSlots| self.add_unsearched(search.best().unwrap_or_else(none));
        (best(&self.all), best(&self.real))
    }

    /// The round with the programs that are not searched, each of which is worth 1 as in the gang.
    fn add_unsearched(&self, mut round: ScheduleRound) -> ScheduleRound {
        let (searched, apart) = (self.searched as f64, self.apart.len() as f64);
        if apart > 0.0 {
            let sum = if searched > 0.0 {
                searched * round.value
            } else {
                0.0
            };
            round.value = (sum + apart) / (searched + apart);
            round.slots.extend(self.apart.iter().cloned());
        }
        round
    }
}

fn slot_key(slot: &CoscheduleSlot) -> Vec<(u32, u32)> {
    let teams = slot.teams.iter();
    let mut key: Vec<_> = teams.map(|team| (team.program.0, team.cores)).collect();
    key.sort_unstable();
    key
}

#[cfg(test)]
mod tests;
