//! The rounds that every scheduler finds, and their measures, on which H2 to H6 stand.

use super::alone::{Alone, seeds};
use super::choose::{Chosen, Known};
use super::entrants::{ENTRANTS, GANG, How, READINGS};
use super::{failed, quantum};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::{Measure, Objective, Slot, Trial};
use consort_experiment::Context;
use consort_experiment::ExperimentError;
use consort_experiment::slots::{BestRound, Quest, Suite, Trials, best_rounds};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Distance of the seeds of the last measurements from those of trials.
const MEASURED: u64 = 1 << 32;

/// Outcome of a scheduler's round in one run.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct Outcome {
    /// Every slot, measured.
    pub trials: Vec<Trial>,
    /// Quanta until the round was found.
    pub quanta: usize,
    /// Overall energy-delay of the round that was found, over the gang's.
    pub overall: f64,
    /// True where that round was given up for the gang.
    pub reverted: bool,
}

/// A slot and the measures of a program in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::studies) struct Place<'a> {
    pub slot: &'a Slot,
    pub measure: &'a Measure,
    /// The program alone on all cores, measured in the same run.
    pub gang: &'a Measure,
}

/// All runs.
pub(in crate::studies) struct Grid {
    pub alone: Arc<Alone>,
    /// Rounds that the exhaustive searches found, in the order of the schedulers.
    pub searches: Vec<BestRound>,
    /// Outcomes by run, then scheduler.
    outcomes: Vec<Vec<Outcome>>,
    /// Every program alone on all cores, by run.
    gang: Vec<BTreeMap<ProgramId, Measure>>,
}

impl Grid {
    /// Returns the runs of this context, made once.
    pub fn of(context: &Context<'_>) -> Result<Arc<Self>, StudyError> {
        context.made("rounds of co-schedules", || Self::make(context))
    }

    fn make(context: &Context<'_>) -> Result<Self, StudyError> {
        let alone = Alone::of(context)?;
        let searches = searches(&alone.suite, context)?;
        let chosen = chosen(&alone, context).map_err(failed("trials"))?;
        let rounds = chosen.into_iter().map(|run| with_searches(run, &searches));
        let rounds: Vec<Vec<Chosen>> = rounds.collect();
        let (gang, outcomes) = measured(&alone.suite, &rounds, context)?;
        Ok(Self {
            alone,
            searches,
            outcomes,
            gang,
        })
    }

    /// The programs and the machine.
    pub fn suite(&self) -> &Suite {
        &self.alone.suite
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.outcomes.len()
    }

    /// Outcome of a scheduler in a run.
    pub fn outcome(&self, run: usize, entrant: usize) -> &Outcome {
        &self.outcomes[run][entrant]
    }

    /// Slot and measures of a program under a scheduler in a run.
    pub fn place(&self, run: usize, entrant: usize, id: ProgramId) -> Option<Place<'_>> {
        let gang = self.gang[run].get(&id)?;
        let mut trials = self.outcome(run, entrant).trials.iter();
        trials.find_map(|trial| {
            let measure = trial.of(id)?;
            let slot = &trial.slot;
            Some(Place {
                slot,
                measure,
                gang,
            })
        })
    }
}

fn searches(suite: &Suite, context: &Context<'_>) -> Result<Vec<BestRound>, StudyError> {
    let quests = ENTRANTS.iter().filter_map(|entrant| match entrant.how {
        How::Exhaustive(quest) => Some(quest),
        _ => None,
    });
    let quests: Vec<Quest> = quests.collect();
    best_rounds(suite, &quests, quantum(context), context).map_err(failed("exhaustive search"))
}

/// Lets every scheduler choose, by run and scheduler; searches have no choice.
fn chosen(
    alone: &Alone,
    context: &Context<'_>,
) -> Result<Vec<Vec<Option<Chosen>>>, ExperimentError> {
    let runs: Vec<(u64, usize)> = seeds(context).zip(0..).collect();
    // Readings of one order begin with the same trials, so one job has them all.
    let is_reading = |i: &usize| READINGS.as_flattened().contains(i);
    let others = (0..ENTRANTS.len()).filter(|i| !is_reading(i));
    let groups: [Vec<usize>; 3] = [READINGS[0].to_vec(), READINGS[1].to_vec(), others.collect()];
    let jobs: Vec<(u64, usize, &Vec<usize>)> = { runs.iter() }
        .flat_map(|&(seed, run)| groups.iter().map(move |group| (seed, run, group)))
        .collect();
    let told = context.map(&jobs, |&(seed, run, group)| {
        let trials = Trials::new(&alone.suite, quantum(context), seed);
        let mut known = Known::new(trials, &alone.runs[run]);
        let each = group.iter().map(|&i| Ok((i, known.choose(&ENTRANTS[i])?)));
        each.collect::<Result<Vec<_>, ExperimentError>>()
    })?;
    let mut chosen = vec![vec![None; ENTRANTS.len()]; runs.len()];
    for ((_, run, _), told) in jobs.iter().zip(told) {
        for (entrant, round) in told? {
            chosen[*run][entrant] = round;
        }
    }
    Ok(chosen)
}

/// A run's rounds, with those of the searches in the places of schedulers that have none.
fn with_searches(run: Vec<Option<Chosen>>, searches: &[BestRound]) -> Vec<Chosen> {
    let mut searches = searches.iter();
    let found = |chosen: Option<Chosen>| {
        chosen.or_else(|| {
            let search = searches.next()?;
            Some(Chosen {
                slots: search.round.slots.clone(),
                quanta: 0,
            })
        })
    };
    run.into_iter().filter_map(found).collect()
}

type Gangs = Vec<BTreeMap<ProgramId, Measure>>;

/// Measures every round.
fn measured(
    suite: &Suite,
    rounds: &[Vec<Chosen>],
    context: &Context<'_>,
) -> Result<(Gangs, Vec<Vec<Outcome>>), StudyError> {
    let seeds: Vec<u64> = seeds(context).collect();
    let slots = |(run, chosen): (usize, &Vec<Chosen>)| {
        let all = chosen.iter().flat_map(|chosen| chosen.slots.clone());
        all.map(move |slot| (run, slot)).collect::<Vec<_>>()
    };
    let jobs: Vec<(usize, Slot)> = rounds.iter().enumerate().flat_map(slots).collect();
    let told = context.map(&jobs, |(run, slot)| {
        let seed = seeds[*run].wrapping_add(MEASURED);
        Trials::new(suite, quantum(context), seed).run(slot)
    })?;
    let told: Result<Vec<Trial>, ExperimentError> = told.into_iter().collect();
    let mut told = told.map_err(failed("rounds"))?.into_iter();
    let of_run = rounds.iter().map(|chosen| of_run(chosen, &mut told));
    Ok(of_run.unzip())
}

/// Outcomes of a run's rounds, whose trials are the next.
fn of_run(
    chosen: &[Chosen],
    told: &mut impl Iterator<Item = Trial>,
) -> (BTreeMap<ProgramId, Measure>, Vec<Outcome>) {
    let own = |one: &Chosen| told.by_ref().take(one.slots.len()).collect();
    let trials: Vec<Vec<Trial>> = chosen.iter().map(own).collect();
    let gang = of_gang(&trials[GANG]);
    let outcome = |(entrant, one): (usize, &Chosen)| {
        let overall = Objective::EnergyDelay.of(&trials[entrant], &gang);
        let reverted = ENTRANTS[entrant].is_fair() && overall > 1.0;
        Outcome {
            trials: trials[if reverted { GANG } else { entrant }].clone(),
            quanta: one.quanta,
            overall,
            reverted,
        }
    };
    let outcomes = chosen.iter().enumerate().map(outcome).collect();
    (gang, outcomes)
}

fn of_gang(trials: &[Trial]) -> BTreeMap<ProgramId, Measure> {
    let entry = |trial: &Trial| Some((trial.slot.teams.first()?.program, *trial.measures.first()?));
    trials.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::SEED;
    use super::super::entrants::{BOUND, FAIR, ORACLE};
    use super::*;
    use crate::testing::{made, workers};
    use consort_experiment::Scale;

    /// A search of all rounds is made with other seeds than its round is measured with, so that
    /// others may come near it; they do not pass it by more than that.
    #[test]
    fn no_scheduler_beats_the_search_by_its_own_objective_but_by_chance() {
        let context = Context::new(SEED, Scale::Quick, workers(2), &|_| ()).sharing(&made());
        let grid = Grid::of(&context).unwrap();
        for run in 0..grid.runs() {
            let overall = |entrant: usize| grid.outcome(run, entrant).overall;
            for (entrant, who) in ENTRANTS.iter().enumerate() {
                assert!(overall(BOUND) <= 1.05 * overall(entrant), "{}", who.name);
            }
            assert_eq!(overall(GANG), 1.0);
            assert!(overall(BOUND) <= 1.0 && overall(ORACLE) <= 1.0);
        }
    }

    /// The oracle's programs lose nothing but by the difference of seeds.
    #[test]
    fn nobody_loses_by_the_oracle() {
        let context = Context::new(SEED, Scale::Quick, workers(2), &|_| ()).sharing(&made());
        let grid = Grid::of(&context).unwrap();
        for id in grid.suite().ids() {
            let place = grid.place(0, ORACLE, id).unwrap();
            let quanta = place.slot.quanta();
            let relative = place.measure.energy_delay(quanta) / place.gang.energy_delay(1);
            assert!(relative < 1.05, "{id}: {relative}");
        }
    }

    #[test]
    fn every_program_has_a_place_and_a_fair_round_is_no_worse_than_the_gang() {
        let context = Context::new(SEED, Scale::Quick, workers(2), &|_| ()).sharing(&made());
        let grid = Grid::of(&context).unwrap();
        for run in 0..grid.runs() {
            for (entrant, _) in ENTRANTS.iter().enumerate() {
                let mut ids = grid.suite().ids();
                assert!(ids.all(|id| grid.place(run, entrant, id).is_some()));
            }
            for entrant in FAIR {
                let outcome = grid.outcome(run, entrant);
                assert!(outcome.reverted || outcome.overall <= 1.0);
            }
        }
    }
}
