//! The round that a co-scheduler ends with when it is told trials of slots that are all known.

use super::slots::{Slots, SlotsError};
use crate::studies::coscheduling::choose::choose;
use crate::studies::coscheduling::entrants::{ENTRANTS, Entrant, GANG};
use consort_core::coscheduling::{Objective, Slot};

/// The round that a scheduler ends with by the trials of all slots: the gang's where a fair one
/// proves worse than that.
///
/// # Errors
/// Slots that were not simulated.
pub(super) fn chosen(
    entrant: &Entrant,
    cores: u32,
    slots: &Slots,
) -> Result<Vec<Slot>, SlotsError> {
    let alone = slots.alone();
    let chosen = choose(entrant, cores, &alone, |slot| slots.trial(slot))?;
    let round = chosen.map_or_else(Vec::new, |chosen| chosen.slots);
    if entrant.is_fair() && slots.value(&round, Objective::EnergyDelay)? > 1.0 {
        return chosen_of_gang(cores, slots);
    }
    Ok(round)
}

fn chosen_of_gang(cores: u32, slots: &Slots) -> Result<Vec<Slot>, SlotsError> {
    chosen(&ENTRANTS[GANG], cores, slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::ProgramId;
    use consort_core::coscheduling::{Measure, Team, Trial};

    /// Two programs on two cores, of which the first scales and the second does not; together both
    /// crawl.
    fn foes() -> Slots {
        let trial = |teams: &[(u32, u32)], done: &[f64]| Trial {
            slot: Slot {
                teams: { teams.iter() }
                    .map(|&(program, cores)| Team {
                        program: ProgramId(program),
                        cores,
                    })
                    .collect(),
            },
            measures: { done.iter().zip(teams) }
                .map(|(&instructions, &(_, cores))| Measure {
                    instructions,
                    cores,
                    energy_j: 10.0,
                    time_ns: 1e9,
                    ..Measure::default()
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
        Slots::new(2, trials)
    }

    #[test]
    fn foes_are_kept_apart_by_who_tries_and_no_round_is_worse_than_the_gang_for_the_fair() {
        let slots = foes();
        for entrant in &ENTRANTS[..3] {
            let round = chosen(entrant, 2, &slots).unwrap();
            assert_eq!(round.len(), 2, "{}", entrant.name);
            assert!(slots.value(&round, Objective::EnergyDelay).unwrap() <= 1.0);
        }
    }
}
