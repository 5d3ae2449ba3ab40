//! The rounds that every scheduler finds, and their measures, on which H2 to H6 stand.

use super::alone::{CoschedulingAloneRuns, seeds};
use super::choose::{ChosenRound, TrialCache};
use super::entrants::{ENTRANTS, GANG, READINGS, RoundMethod};
use super::{part_error, quantum};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, ProgramMeasure, RoundObjective, SlotTrial};
use consort_experiment::ExperimentContext;
use consort_experiment::ExperimentError;
use consort_experiment::slots::{BestRound, SearchGoal, SlotTrials, Suite, best_rounds};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Distance of the seeds of the last measurements from those of trials.
const MEASURED: u64 = 1 << 32;

/// Outcome of a scheduler's round in one run.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct RoundOutcome {
    /// Every slot, measured.
    pub trials: Vec<SlotTrial>,
    /// Quanta until the round was found.
    pub quanta: usize,
    /// Overall energy-delay of the round that was found, over the gang's.
    pub overall: f64,
    /// True where that round was given up for the gang.
    pub reverted: bool,
}

/// A slot and the measures of a program in it.
#[derive(Clone, Copy, Debug)]
pub(in crate::studies) struct SlotMeasures<'a> {
    pub slot: &'a CoscheduleSlot,
    pub measure: &'a ProgramMeasure,
    /// The program alone on all cores, measured in the same run.
    pub gang: &'a ProgramMeasure,
}

/// All runs.
pub(in crate::studies) struct CoscheduleGrid {
    pub alone: Arc<CoschedulingAloneRuns>,
    /// Rounds that the exhaustive searches found, in the order of the schedulers.
    pub searches: Vec<BestRound>,
    /// Outcomes by run, then scheduler.
    outcomes: Vec<Vec<RoundOutcome>>,
    /// Every program alone on all cores, by run.
    gang: Vec<BTreeMap<ProgramId, ProgramMeasure>>,
}

impl CoscheduleGrid {
    /// Returns the runs of this context, made once.
    pub fn get_or_run(context: &ExperimentContext<'_>) -> Result<Arc<Self>, StudyError> {
        context.get_or_compute("rounds of co-schedules", || Self::make(context))
    }

    fn make(context: &ExperimentContext<'_>) -> Result<Self, StudyError> {
        let alone = CoschedulingAloneRuns::get_or_run(context)?;
        let searches = searches(&alone.suite, context)?;
        let chosen = chosen(&alone, context).map_err(part_error("trials"))?;
        let rounds = chosen.into_iter().map(|run| with_searches(run, &searches));
        let rounds: Vec<Vec<ChosenRound>> = rounds.collect();
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
    pub fn outcome(&self, run: usize, entrant: usize) -> &RoundOutcome {
        &self.outcomes[run][entrant]
    }

    /// Slot and measures of a program under a scheduler in a run.
    pub fn place(&self, run: usize, entrant: usize, id: ProgramId) -> Option<SlotMeasures<'_>> {
        let gang = self.gang[run].get(&id)?;
        let mut trials = self.outcome(run, entrant).trials.iter();
        trials.find_map(|trial| {
            let measure = trial.measure(id)?;
            let slot = &trial.slot;
            Some(SlotMeasures {
                slot,
                measure,
                gang,
            })
        })
    }
}

fn searches(suite: &Suite, context: &ExperimentContext<'_>) -> Result<Vec<BestRound>, StudyError> {
    let quests = ENTRANTS.iter().filter_map(|entrant| match entrant.how {
        RoundMethod::Exhaustive(quest) => Some(quest),
        _ => None,
    });
    let quests: Vec<SearchGoal> = quests.collect();
    best_rounds(suite, &quests, quantum(context), context).map_err(part_error("exhaustive search"))
}

/// Lets every scheduler choose, by run and scheduler; searches have no choice.
fn chosen(
    alone: &CoschedulingAloneRuns,
    context: &ExperimentContext<'_>,
) -> Result<Vec<Vec<Option<ChosenRound>>>, ExperimentError> {
    let runs: Vec<(u64, usize)> = seeds(context).zip(0..).collect();
    // Readings of one order begin with the same trials, so one job has them all.
    let is_reading = |i: &usize| READINGS.as_flattened().contains(i);
    let others = (0..ENTRANTS.len()).filter(|i| !is_reading(i));
    let groups: [Vec<usize>; 3] = [READINGS[0].to_vec(), READINGS[1].to_vec(), others.collect()];
    let jobs: Vec<(u64, usize, &Vec<usize>)> = { runs.iter() }
        .flat_map(|&(seed, run)| groups.iter().map(move |group| (seed, run, group)))
        .collect();
    let reported = context.map(&jobs, |&(seed, run, group)| {
        let trials = SlotTrials::new(&alone.suite, quantum(context), seed);
        let mut known = TrialCache::new(trials, &alone.runs[run]);
        let each = group.iter().map(|&i| Ok((i, known.choose(&ENTRANTS[i])?)));
        each.collect::<Result<Vec<_>, ExperimentError>>()
    })?;
    let mut chosen = vec![vec![None; ENTRANTS.len()]; runs.len()];
    for ((_, run, _), reported) in jobs.iter().zip(reported) {
        for (entrant, round) in reported? {
            chosen[*run][entrant] = round;
        }
    }
    Ok(chosen)
}

/// A run's rounds, with those of the searches in the places of schedulers that have none.
fn with_searches(run: Vec<Option<ChosenRound>>, searches: &[BestRound]) -> Vec<ChosenRound> {
    let mut searches = searches.iter();
    let found = |chosen: Option<ChosenRound>| {
        chosen.or_else(|| {
            let search = searches.next()?;
            Some(ChosenRound {
                slots: search.round.slots.clone(),
                quanta: 0,
            })
        })
    };
    run.into_iter().filter_map(found).collect()
}

type GangMeasures = Vec<BTreeMap<ProgramId, ProgramMeasure>>;

/// Measures every round.
fn measured(
    suite: &Suite,
    rounds: &[Vec<ChosenRound>],
    context: &ExperimentContext<'_>,
) -> Result<(GangMeasures, Vec<Vec<RoundOutcome>>), StudyError> {
    let seeds: Vec<u64> = seeds(context).collect();
    let slots = |(run, chosen): (usize, &Vec<ChosenRound>)| {
        let all = chosen.iter().flat_map(|chosen| chosen.slots.clone());
        all.map(move |slot| (run, slot)).collect::<Vec<_>>()
    };
    let jobs: Vec<(usize, CoscheduleSlot)> = rounds.iter().enumerate().flat_map(slots).collect();
    let reported = context.map(&jobs, |(run, slot)| {
        let seed = seeds[*run].wrapping_add(MEASURED);
        SlotTrials::new(suite, quantum(context), seed).run(slot)
    })?;
    let reported: Result<Vec<SlotTrial>, ExperimentError> = reported.into_iter().collect();
    let mut reported = reported.map_err(part_error("rounds"))?.into_iter();
    let of_run = rounds.iter().map(|chosen| of_run(chosen, &mut reported));
    Ok(of_run.unzip())
}

/// Outcomes of a run's rounds, whose trials are the next.
fn of_run(
    chosen: &[ChosenRound],
    reported: &mut impl Iterator<Item = SlotTrial>,
) -> (BTreeMap<ProgramId, ProgramMeasure>, Vec<RoundOutcome>) {
    let own = |one: &ChosenRound| reported.by_ref().take(one.slots.len()).collect();
    let trials: Vec<Vec<SlotTrial>> = chosen.iter().map(own).collect();
    let gang = of_gang(&trials[GANG]);
    let outcome = |(entrant, one): (usize, &ChosenRound)| {
        let overall = RoundObjective::EnergyDelay.round_value(&trials[entrant], &gang);
        let reverted = ENTRANTS[entrant].is_fair() && overall > 1.0;
        RoundOutcome {
            trials: trials[if reverted { GANG } else { entrant }].clone(),
            quanta: one.quanta,
            overall,
            reverted,
        }
    };
    let outcomes = chosen.iter().enumerate().map(outcome).collect();
    (gang, outcomes)
}

fn of_gang(trials: &[SlotTrial]) -> BTreeMap<ProgramId, ProgramMeasure> {
    let entry =
        |trial: &SlotTrial| Some((trial.slot.teams.first()?.program, *trial.measures.first()?));
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
        let context = ExperimentContext::new(SEED, Scale::Quick, workers(2), &|_| ())
            .with_shared_results(&made());
        let grid = CoscheduleGrid::get_or_run(&context).unwrap();
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
        let context = ExperimentContext::new(SEED, Scale::Quick, workers(2), &|_| ())
            .with_shared_results(&made());
        let grid = CoscheduleGrid::get_or_run(&context).unwrap();
        for id in grid.suite().ids() {
            let place = grid.place(0, ORACLE, id).unwrap();
            let quanta = place.slot.quanta();
            let relative = place.measure.energy_delay(quanta) / place.gang.energy_delay(1);
            assert!(relative < 1.05, "{id}: {relative}");
        }
    }

    #[test]
    fn every_program_has_a_place_and_a_fair_round_is_no_worse_than_the_gang() {
        let context = ExperimentContext::new(SEED, Scale::Quick, workers(2), &|_| ())
            .with_shared_results(&made());
        let grid = CoscheduleGrid::get_or_run(&context).unwrap();
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
