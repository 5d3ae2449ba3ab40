//! Every slot of a suite, simulated: the rounds of any scheduler and the best round, by the same
//! trials.

use crate::studies::coscheduling::AloneMeasures;
use crate::studies::coscheduling::entrants::{ENTRANTS, GANG, RoundScheduler, choose};
use consort_core::ProgramId;
use consort_core::coscheduling::{
    CoscheduleSlot, ExhaustiveError, ExhaustiveSlots, ProgramMeasure, ProgramTeam, RoundObjective,
    ScheduleRound, SlotTrial,
};
use std::collections::BTreeMap;

/// Reason why trials do not give a round or its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SlotsError {
    #[error("there is no trial of {0:?}; simulate all slots")]
    NoTrial(CoscheduleSlot),
    #[error("no program was tried alone on all cores; simulate all slots")]
    NoRound,
    #[error(transparent)]
    Exhaustive(#[from] ExhaustiveError),
}

/// Trials of all slots.
pub(super) struct SuiteSlotTrials {
    cores: u32,
    trials: BTreeMap<Vec<(ProgramId, u32)>, SlotTrial>,
}

impl SuiteSlotTrials {
    /// Trials of all slots of a machine with so many cores.
    pub fn new(cores: u32, trials: impl IntoIterator<Item = SlotTrial>) -> Self {
        let trials = trials.into_iter();
        Self {
            cores,
            trials: trials.map(|trial| (key(&trial.slot), trial)).collect(),
        }
    }

    /// Trial of a slot, its programs in the order of the slot.
    ///
    /// # Errors
    /// A slot that was not simulated.
    pub fn trial(&self, slot: &CoscheduleSlot) -> Result<SlotTrial, SlotsError> {
        let known = self.trials.get(&key(slot));
        let measure = |team: &ProgramTeam| known?.measure(team.program).copied();
        let measures: Option<Vec<ProgramMeasure>> = slot.teams.iter().map(measure).collect();
        Ok(SlotTrial {
            measures: measures.ok_or_else(|| SlotsError::NoTrial(slot.clone()))?,
            slot: slot.clone(),
        })
    }

    /// Every program alone on every number of cores.
    fn alone(&self) -> AloneMeasures {
        let alone = |trial: &SlotTrial| match (&trial.slot.teams[..], &trial.measures[..]) {
            ([team], [measure]) => Some(((team.program, team.cores), *measure)),
            _ => None,
        };
        self.trials.values().filter_map(alone).collect()
    }

    /// Every program alone on all cores.
    pub fn gang(&self) -> BTreeMap<ProgramId, ProgramMeasure> {
        let all = self.alone().into_iter();
        let with_all = all.filter(|((_, cores), _)| *cores == self.cores);
        with_all.map(|((id, _), measure)| (id, measure)).collect()
    }

    /// Value of a round by an objective.
    ///
    /// # Errors
    /// A slot that was not simulated.
    pub fn value(
        &self,
        round: &[CoscheduleSlot],
        objective: RoundObjective,
    ) -> Result<f64, SlotsError> {
        let trials = round.iter().map(|slot| self.trial(slot));
        let trials: Vec<SlotTrial> = trials.collect::<Result<_, _>>()?;
        Ok(objective.round_value(&trials, &self.gang()))
    }

    /// The best round of all for the programs that were tried alone on all cores.
    ///
    /// # Errors
    /// More programs than are searched; no program.
    pub fn best(&self, objective: RoundObjective) -> Result<ScheduleRound, SlotsError> {
        let gang: Vec<(ProgramId, ProgramMeasure)> = self.gang().into_iter().collect();
        let mut all = ExhaustiveSlots::new(self.cores, &gang, objective)?;
        for trial in self.trials.values() {
            all.record_trial(trial);
        }
        let round = all.best().filter(|round| !round.slots.is_empty());
        round.ok_or(SlotsError::NoRound)
    }

    /// The round that a scheduler ends with by these trials: the gang's if a fair one proves worse
    /// than that.
    ///
    /// # Errors
    /// Slots that were not simulated.
    pub fn choose(&self, entrant: &RoundScheduler) -> Result<Vec<CoscheduleSlot>, SlotsError> {
        let alone = self.alone();
        let chosen = choose(entrant, self.cores, &alone, |slot| self.trial(slot))?;
        let round = chosen.map_or_else(Vec::new, |chosen| chosen.slots);
        // As in the studies of co-scheduling, where a fair round that is worse is given up.
        if entrant.is_fair() && self.value(&round, RoundObjective::EnergyDelay)? > 1.0 {
            return self.choose(&ENTRANTS[GANG]);
        }
        Ok(round)
    }
}

/// Programs with equally many cores are seated in the order of the slot, but a slot is simulated in
/// one order, that of the suite, which stands for all.
fn key(slot: &CoscheduleSlot) -> Vec<(ProgramId, u32)> {
    let teams = slot.teams.iter();
    let mut key: Vec<_> = teams.map(|team| (team.program, team.cores)).collect();
    key.sort_unstable();
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(teams: &[(u32, u32)]) -> CoscheduleSlot {
        let team = |&(program, cores): &(u32, u32)| ProgramTeam {
            program: ProgramId(program),
            cores,
        };
        CoscheduleSlot {
            teams: teams.iter().map(team).collect(),
        }
    }

    fn trial(teams: &[(u32, u32)], done: &[f64]) -> SlotTrial {
        let both = done.iter().zip(teams);
        let measures = both.map(|(&instructions, &(_, cores))| ProgramMeasure {
            instructions,
            cores,
            energy_j: 10.0,
            time_ns: 1e9,
            ..ProgramMeasure::default()
        });
        SlotTrial {
            slot: slot(teams),
            measures: measures.collect(),
        }
    }

    /// Two programs on two cores. Side by side for both their quanta the first does 1.5 times, the
    /// second 1.2 times the work that it does alone in its own.
    fn two() -> SuiteSlotTrials {
        let trials = [
            trial(&[(0, 2)], &[4.0]),
            trial(&[(1, 2)], &[10.0]),
            trial(&[(0, 1)], &[2.0]),
            trial(&[(1, 1)], &[5.0]),
            trial(&[(0, 1), (1, 1)], &[3.0, 6.0]),
        ];
        SuiteSlotTrials::new(2, trials)
    }

    #[test]
    fn best_round_of_two_is_the_pair() {
        let slots = two();
        let pair = [slot(&[(0, 1), (1, 1)])];
        let best = slots.best(RoundObjective::Throughput).unwrap();
        assert_eq!(best.slots, pair);
        assert!((best.value - (1.5 + 1.2) / 2.0).abs() < 1e-12);
        assert_eq!(
            slots.value(&pair, RoundObjective::Throughput),
            Ok(best.value)
        );
        let gang = [slot(&[(0, 2)]), slot(&[(1, 2)])];
        assert_eq!(slots.value(&gang, RoundObjective::Throughput), Ok(1.0));
        // As much energy in a quantum for 3 of 4 and 6 of 10, over two quanta.
        let energy_delay = slots.best(RoundObjective::EnergyDelay).unwrap();
        let expect = (1.0 / (0.75 * 1.5) + 1.0 / (0.6 * 1.2)) / 2.0;
        let of_pair = slots.value(&pair, RoundObjective::EnergyDelay).unwrap();
        assert!((of_pair - expect).abs() < 1e-12 && energy_delay.value == 1.0);
    }

    #[test]
    fn trial_is_in_the_order_of_the_slot() {
        let slots = two();
        let reported = slots.trial(&slot(&[(1, 1), (0, 1)])).unwrap();
        let done: Vec<f64> = reported.measures.iter().map(|m| m.instructions).collect();
        assert_eq!(done, [6.0, 3.0]);
        let unknown = slot(&[(2, 1)]);
        assert_eq!(slots.trial(&unknown), Err(SlotsError::NoTrial(unknown)));
        assert_eq!(slots.alone().len(), 4);
    }

    #[test]
    fn without_program_on_all_cores_there_is_no_round() {
        let best =
            |done: SlotTrial| SuiteSlotTrials::new(2, [done]).best(RoundObjective::Throughput);
        assert_eq!(best(trial(&[(0, 2)], &[4.0])).unwrap().value, 1.0);
        assert_eq!(best(trial(&[(0, 1)], &[4.0])), Err(SlotsError::NoRound));
    }

    #[test]
    fn programs_that_crawl_together_are_kept_apart() {
        // The first scales and the second does not.
        let slots = SuiteSlotTrials::new(
            2,
            [
                trial(&[(0, 2)], &[4.0]),
                trial(&[(1, 2)], &[4.0]),
                trial(&[(0, 1)], &[2.5]),
                trial(&[(1, 1)], &[4.0]),
                trial(&[(0, 1), (1, 1)], &[0.5, 0.5]),
            ],
        );
        for entrant in &ENTRANTS[..3] {
            let round = slots.choose(entrant).unwrap();
            assert_eq!(round.len(), 2, "{}", entrant.name);
            assert!(slots.value(&round, RoundObjective::EnergyDelay).unwrap() <= 1.0);
        }
    }
}
