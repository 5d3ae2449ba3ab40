//! The best round of a suite, by trying all.
//!
//! Every slot is estimated ([`Steady`]), with the mean error taken out that estimates have on some
//! slots of as many programs, which are simulated. Then the slots of the best round by what is known
//! are simulated, what they really do takes the place of the estimates, and so on until the best
//! round of simulated slots is within [`NEAR`] of the best of all. A slot whose estimate is too bad
//! to be in any best round is never looked at, so the round is the best as far as estimates tell;
//! [`BestRound::sampled`] says how far that is.

use super::steady::Steady;
use super::suite::Suite;
use super::trials::{Quantum, Trials};
use crate::Context;
use crate::error::ExperimentError;
use consort_core::ProgramId;
use consort_core::coscheduling::{Exhaustive, Measure, Objective, Round, Slot, Trial};
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
    pub round: Round,
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
pub struct Quest {
    /// By what rounds are compared.
    pub objective: Objective,
    /// Programs that may share a slot.
    pub members: Members,
}

/// Programs that may share a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Members {
    /// Programs that do not scale nearly linearly, in slots in which nobody is worse off than in the
    /// gang: the oracle of the source.
    #[default]
    Gaining,
    /// All, whoever loses by it: a bound.
    All,
}

impl Members {
    /// The names that options know.
    pub const NAMES: &'static str = "gaining or all";

    /// Finds the members of that name.
    pub fn named(name: &str) -> Option<Self> {
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
    quests: &[Quest],
    quantum: Quantum,
    context: &Context<'_>,
) -> Result<Vec<BestRound>, ExperimentError> {
    let none = suite.ids().map(|id| (id, Measure::default()));
    let none: Vec<(ProgramId, Measure)> = none.collect();
    let all = Exhaustive::new(suite.cores(), &none, Objective::default())?;
    let slots: Vec<Slot> = all.slots().collect();
    let trials = Trials::new(suite, quantum, context.seed());
    let mut steady = Steady::new(trials, context)?;
    let samples = simulated(&even(&slots), trials, context)?;
    let sampled = samples.iter().flat_map(|trial| errors(&steady, trial));
    let sampled: Vec<f64> = sampled.collect();
    steady.correct(&samples);
    let batches: Vec<&[Slot]> = slots.chunks(BATCH).collect();
    let estimates = context.map(&batches, |batch| {
        let each = batch.iter().map(|slot| steady.estimate(slot));
        each.collect::<Vec<Trial>>()
    })?;
    let mut known = Known::default();
    steady
        .simulated()
        .chain(&samples)
        .for_each(|trial| known.take(trial));
    let search = |&quest: &Quest| {
        let mut search = Search::new(&steady, quest, suite.cores())?;
        estimates
            .iter()
            .flatten()
            .for_each(|trial| search.all.note(trial));
        let (round, settled) = search.settle(&mut known, trials, context)?;
        Ok(BestRound {
            round,
            estimated: slots.len(),
            simulated: known.shared(),
            samples: samples.len(),
            settled,
            sampled: sampled.clone(),
        })
    };
    quests.iter().map(search).collect()
}

/// Some slots of each number of programs from two on, at even distances.
fn even(slots: &[Slot]) -> Vec<Slot> {
    let mut by_number: BTreeMap<usize, Vec<&Slot>> = BTreeMap::new();
    for slot in slots.iter().filter(|slot| slot.teams.len() > 1) {
        by_number.entry(slot.teams.len()).or_default().push(slot);
    }
    let some = |slots: &Vec<&Slot>| {
        let step = slots.len().div_ceil(SAMPLES).max(1);
        // From the middle of a step: the first of all is as far from the mean as any can be.
        let chosen = slots.iter().skip(step / 2).step_by(step);
        chosen.map(|slot| (*slot).clone()).collect::<Vec<_>>()
    };
    by_number.values().flat_map(some).collect()
}

fn simulated(
    slots: &[Slot],
    trials: Trials<'_>,
    context: &Context<'_>,
) -> Result<Vec<Trial>, ExperimentError> {
    let told = context.map(slots, |slot| trials.run(slot))?;
    told.into_iter().collect()
}

/// Estimated over simulated throughput, less 1.
fn errors(steady: &Steady<'_>, trial: &Trial) -> Vec<f64> {
    let estimate = steady.estimate(&trial.slot);
    let pairs = estimate.measures.iter().zip(&trial.measures);
    let error = |(a, b): (&Measure, &Measure)| a.throughput() / b.throughput() - 1.0;
    pairs.map(error).collect()
}

/// Trials simulated so far, whatever the objective.
#[derive(Default)]
struct Known(BTreeMap<Vec<(u32, u32)>, Trial>);

impl Known {
    fn take(&mut self, trial: &Trial) {
        self.0.insert(key(&trial.slot), trial.clone());
    }

    fn has(&self, slot: &Slot) -> bool {
        self.0.contains_key(&key(slot))
    }

    /// Slots of several programs.
    fn shared(&self) -> usize {
        self.0.keys().filter(|key| key.len() > 1).count()
    }
}

struct Search {
    /// With estimates where nothing else is known.
    all: Exhaustive,
    /// With what has been simulated alone.
    real: Exhaustive,
    /// Slots of programs that are not searched.
    apart: Vec<Slot>,
    /// Number of programs.
    searched: usize,
}

impl Search {
    fn new(steady: &Steady<'_>, quest: Quest, cores: u32) -> Result<Self, ExperimentError> {
        let sparing = quest.members == Members::Gaining;
        let is_apart =
            |(id, _): &(ProgramId, Measure)| sparing && steady.is_near_linear(*id, cores);
        let (apart, gang): (Vec<_>, Vec<_>) = steady.gang().into_iter().partition(is_apart);
        let new = || {
            let search = Exhaustive::new(cores, &gang, quest.objective)?;
            Ok::<_, ExperimentError>(if sparing { search.sparing() } else { search })
        };
        Ok(Self {
            all: new()?,
            real: new()?,
            apart: apart
                .iter()
                .map(|(id, _)| Slot::alone(*id, cores))
                .collect(),
            searched: gang.len(),
        })
    }

    /// Simulates what the best round needs until nothing better is to be expected; the round, and
    /// whether that was reached.
    fn settle(
        &mut self,
        known: &mut Known,
        trials: Trials<'_>,
        context: &Context<'_>,
    ) -> Result<(Round, bool), ExperimentError> {
        known.0.values().for_each(|trial| self.note(trial));
        for _ in 0..MOST_ROUNDS {
            let (all, real) = self.best();
            let open: Vec<Slot> = all
                .slots
                .into_iter()
                .filter(|slot| !known.has(slot))
                .collect();
            if open.is_empty() || (real.value / all.value - 1.0).abs() < NEAR {
                return Ok((real, true));
            }
            for trial in simulated(&open, trials, context)? {
                known.take(&trial);
                self.note(&trial);
            }
        }
        Ok((self.best().1, false))
    }

    fn note(&mut self, trial: &Trial) {
        self.all.note(trial);
        self.real.note(trial);
    }

    /// The best of all and the best of what has been simulated. Every program has been simulated
    /// alone, so there is one.
    fn best(&self) -> (Round, Round) {
        let none = || Round {
            slots: Vec::new(),
            value: f64::NAN,
        };
        let best = |search: &Exhaustive| self.whole(search.best().unwrap_or_else(none));
        (best(&self.all), best(&self.real))
    }

    /// The round with the programs that are not searched, each of which is worth 1 as in the gang.
    fn whole(&self, mut round: Round) -> Round {
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

fn key(slot: &Slot) -> Vec<(u32, u32)> {
    let teams = slot.teams.iter();
    let mut key: Vec<_> = teams.map(|team| (team.program.0, team.cores)).collect();
    key.sort_unstable();
    key
}

#[cfg(test)]
mod tests;
