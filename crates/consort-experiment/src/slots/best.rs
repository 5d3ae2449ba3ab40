//! The best round of a suite, by trying all.
//!
//! Every slot is estimated ([`SlotEstimator`]), corrected by the mean error of estimates on some
//! simulated slots of as many programs. Then the slots of the best round are simulated, and their
//! results replace the estimates, until the best round of simulated slots is within [`NEAR`] of the
//! best of all. A slot with too bad an estimate for any best round is never simulated, so the round is
//! the best only as far as estimates are right; [`BestRound::sampled`] has their errors.

use super::Suite;
use super::slot_estimator::SlotEstimator;
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
    /// True if the search ended by itself, not by its bound.
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
    /// Programs that do not scale nearly linearly, in slots in which no program's energy-delay is
    /// above that in the gang, whatever the objective: the rounds of the source's oracle, and those
    /// that fair schedulers accept.
    #[default]
    Gaining,
    /// All, also programs that lose by it: a bound.
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

/// Searches for several things; any number of workers finds the same. Slots that are `met` in rounds of
/// others are simulated in any case, so that by these trials no round of them is better than what is
/// found, if it is one that the goal allows.
///
/// # Errors
/// More programs or slots than are searched, before anything is simulated; programs that cannot be
/// simulated.
pub fn best_rounds(
    suite: &Suite,
    goals: &[SearchGoal],
    met: &[CoscheduleSlot],
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
    let mut sampled = Vec::new();
    for trial in &samples {
        let estimate = steady.estimate(&trial.slot);
        for (guess, real) in estimate.measures.iter().zip(&trial.measures) {
            sampled.push(guess.throughput() / real.throughput() - 1.0);
        }
    }
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
    let mut open: Vec<CoscheduleSlot> = Vec::new();
    for slot in met {
        if !known.contains(slot) && !open.contains(slot) {
            open.push(slot.clone());
        }
    }
    let trials_of_met = simulate_slots(&open, trials, context)?;
    trials_of_met.iter().for_each(|trial| known.insert(trial));
    let search = |&goal: &SearchGoal| {
        let mut search = RoundSearch::new(&steady, goal, suite.cores())?;
        estimates
            .iter()
            .flatten()
            .for_each(|trial| search.all.record_trial(trial));
        let (round, settled) = search.settle(&mut known, trials, context)?;
        Ok(BestRound {
            round,
            estimated: slots.len(),
            simulated: known.0.keys().filter(|key| key.len() > 1).count(),
            samples: samples.len(),
            settled,
            sampled: sampled.clone(),
        })
    };
    goals.iter().map(search).collect()
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
}

struct RoundSearch {
    objective: RoundObjective,
    /// Trials as far as they are simulated, else estimates.
    all: ExhaustiveSlots,
    /// Simulated trials only.
    real: ExhaustiveSlots,
    /// Slots of programs that are not searched.
    apart: Vec<CoscheduleSlot>,
    searched: usize,
}

impl RoundSearch {
    fn new(
        steady: &SlotEstimator<'_>,
        goal: SearchGoal,
        cores: u32,
    ) -> Result<Self, ExperimentError> {
        let sparing = goal.members == SlotMembers::Gaining;
        let is_apart =
            |(id, _): &(ProgramId, ProgramMeasure)| sparing && steady.is_near_linear(*id, cores);
        let (apart, gang): (Vec<_>, Vec<_>) =
            steady.gang_measures().into_iter().partition(is_apart);
        let new = || {
            let search = ExhaustiveSlots::new(cores, &gang, goal.objective)?;
            Ok::<_, ExperimentError>(if sparing {
                search.exclude_harmful_slots(RoundObjective::EnergyDelay)
            } else {
                search
            })
        };
        Ok(Self {
            objective: goal.objective,
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
    /// true if that was reached.
    fn settle(
        &mut self,
        known: &mut SimulatedTrials,
        trials: SlotTrials<'_>,
        context: &ExperimentContext<'_>,
    ) -> Result<(ScheduleRound, bool), ExperimentError> {
        known.0.values().for_each(|trial| self.note(trial));
        // Each simulated slot replaces its estimate, so the best round by estimates may change.
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
            let shared = searched / (searched + apart);
            round.value = match self.objective {
                _ if searched == 0.0 => 1.0,
                RoundObjective::Speedup => libm::pow(round.value, shared),
                _ => shared * round.value + 1.0 - shared,
            };
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
mod tests {
    use super::*;
    use crate::Scale;
    use crate::testing::{suite, workers};

    const QUANTUM: TrialLengths = TrialLengths {
        warm_s: 0.1,
        length_s: 0.3,
    };

    fn search(suite: &Suite, objective: RoundObjective, count: usize) -> BestRound {
        let goal = SearchGoal {
            objective,
            members: SlotMembers::All,
        };
        found(suite, goal, count)
    }

    fn found(suite: &Suite, goal: SearchGoal, count: usize) -> BestRound {
        let context = ExperimentContext::new(1, Scale::Quick, workers(count), &|_| ());
        best_rounds(suite, &[goal], &[], QUANTUM, &context)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn round_has_every_program_and_beats_gang() {
        let suite = suite(&["canneal", "streamcluster", "swaptions"]);
        for objective in [
            RoundObjective::EnergyDelay,
            RoundObjective::Throughput,
            RoundObjective::Speedup,
        ] {
            let found = search(&suite, objective, 2);
            let mut all: Vec<u32> = { found.round.slots.iter().flat_map(|slot| &slot.teams) }
                .map(|team| team.program.0)
                .collect();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2]);
            assert_eq!(found.estimated, 164);
            assert!(found.settled);
            match objective {
                RoundObjective::EnergyDelay => assert!(found.round.value <= 1.0),
                _ => assert!(found.round.value >= 1.0),
            }
        }
    }

    /// swaptions scales linearly; what the others gain is measured against one for it.
    #[test]
    fn near_linear_programs_run_alone_without_losers() {
        let suite = suite(&["canneal", "streamcluster", "swaptions"]);
        let goal = SearchGoal::default();
        assert_eq!(goal.members, SlotMembers::Gaining);
        let found = found(&suite, goal, 2);
        let linear = ProgramId(2);
        assert!(
            found
                .round
                .slots
                .contains(&CoscheduleSlot::alone(linear, 8))
        );
        let trials = SlotTrials::new(&suite, QUANTUM, 1);
        let gang: BTreeMap<ProgramId, ProgramMeasure> = { suite.ids() }
            .map(|id| {
                (
                    id,
                    trials.run(&CoscheduleSlot::alone(id, 8)).unwrap().measures[0],
                )
            })
            .collect();
        let slots = found.round.slots.iter();
        let slots: Vec<SlotTrial> = slots.map(|slot| trials.run(slot).unwrap()).collect();
        for (id, alone) in &gang {
            let trial = slots
                .iter()
                .find(|trial| trial.measure(*id).is_some())
                .unwrap();
            let own = trial
                .measure(*id)
                .unwrap()
                .energy_delay(trial.slot.quanta());
            assert!(own <= alone.energy_delay(1) * (1.0 + 1e-12), "{id}");
        }
        let value = RoundObjective::EnergyDelay.round_value(&slots, &gang);
        assert!((found.round.value - value).abs() < 1e-9);
    }

    #[test]
    fn any_number_of_workers_finds_the_same() {
        let suite = suite(&["canneal", "vips"]);
        let [one, two] = [1, 2].map(|count| search(&suite, RoundObjective::EnergyDelay, count));
        assert_eq!(one.round, two.round);
        assert_eq!(one.sampled, two.sampled);
    }

    /// Of pairs, all slots can be simulated.
    #[test]
    fn round_of_two_programs_is_near_best() {
        let suite = suite(&["canneal", "dedup"]);
        let found = search(&suite, RoundObjective::EnergyDelay, 2);
        let trials = SlotTrials::new(&suite, QUANTUM, 1);
        let gang: BTreeMap<ProgramId, ProgramMeasure> = { suite.ids() }
            .map(|id| {
                (
                    id,
                    trials.run(&CoscheduleSlot::alone(id, 8)).unwrap().measures[0],
                )
            })
            .collect();
        let gang: Vec<(ProgramId, ProgramMeasure)> = gang.into_iter().collect();
        let mut whole = ExhaustiveSlots::new(8, &gang, RoundObjective::EnergyDelay).unwrap();
        for slot in whole.slots().collect::<Vec<_>>() {
            whole.record_trial(&trials.run(&slot).unwrap());
        }
        let best = whole.best().unwrap().value;
        assert!(best <= found.round.value);
        assert!(
            found.round.value <= 1.1 * best,
            "{} {best}",
            found.round.value
        );
    }

    #[test]
    fn too_much_is_refused_before_anything_is_simulated() {
        let suite = suite(&["swaptions"; 17]);
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let refused = best_rounds(&suite, &[SearchGoal::default()], &[], QUANTUM, &context);
        let text = refused.unwrap_err().to_string();
        assert_eq!(
            text,
            "17 programs, where an exhaustive search takes at most 16"
        );
    }
}
