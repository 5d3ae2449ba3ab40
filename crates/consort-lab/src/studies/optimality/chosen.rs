//! The round that a co-scheduler ends with when it is told trials of slots that are all known.

use super::slots::{SlotsError, SuiteSlotTrials};
use crate::studies::coscheduling::entrants::choose;
use crate::studies::coscheduling::entrants::{ENTRANTS, GANG, RoundScheduler};
use consort_core::coscheduling::{CoscheduleSlot, RoundObjective};

/// The round that a scheduler ends with by the trials of all slots: the gang's where a fair one
/// proves worse than that.
///
/// # Errors
/// Slots that were not simulated.
pub(super) fn chosen(
    entrant: &RoundScheduler,
    cores: u32,
    slots: &SuiteSlotTrials,
) -> Result<Vec<CoscheduleSlot>, SlotsError> {
    let alone = slots.alone();
    let chosen = choose(entrant, cores, &alone, |slot| slots.trial(slot))?;
    let round = chosen.map_or_else(Vec::new, |chosen| chosen.slots);
    if entrant.is_fair() && slots.value(&round, RoundObjective::EnergyDelay)? > 1.0 {
        return chosen_of_gang(cores, slots);
    }
    Ok(round)
}

fn chosen_of_gang(cores: u32, slots: &SuiteSlotTrials) -> Result<Vec<CoscheduleSlot>, SlotsError> {
    chosen(&ENTRANTS[GANG], cores, slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::ProgramId;
    use consort_core::coscheduling::{ProgramMeasure, ProgramTeam, SlotTrial};

    /// Two programs on two cores, of which the first scales and the second does not; together both
    /// crawl.
    fn foes() -> SuiteSlotTrials {
        let trial = |teams: &[(u32, u32)], done: &[f64]| SlotTrial {
            slot: CoscheduleSlot {
                teams: { teams.iter() }
                    .map(|&(program, cores)| ProgramTeam {
                        program: ProgramId(program),
                        cores,
                    })
                    .collect(),
            },
            measures: { done.iter().zip(teams) }
                .map(|(&instructions, &(_, cores))| ProgramMeasure {
                    instructions,
                    cores,
                    energy_j: 10.0,
                    time_ns: 1e9,
                    ..ProgramMeasure::default()
                })
                .collect(),
        };
        let trials = [
            trial(&[(0, 2)], &[4.0]),
            trial(&[(1, 2)], &[4.0]),
            trial(&[(0, 1)], &[2.5]),
            trial(&[(1, 1)], &[4.0]),
            trial(&[(0, 1), (1, 1)], &[0.5, 0.5]),
        ];
        SuiteSlotTrials::new(2, trials)
    }

    #[test]
    fn foes_are_kept_apart_by_who_tries_and_no_round_is_worse_than_the_gang_for_the_fair() {
        let slots = foes();
        for entrant in &ENTRANTS[..3] {
            let round = chosen(entrant, 2, &slots).unwrap();
            assert_eq!(round.len(), 2, "{}", entrant.name);
            assert!(slots.value(&round, RoundObjective::EnergyDelay).unwrap() <= 1.0);
        }
    }
}
