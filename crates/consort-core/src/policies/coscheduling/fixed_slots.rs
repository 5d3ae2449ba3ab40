//! Slots that are given from outside, run in turn.

use super::driver::{CoschedulingSettings, Rotations};
use crate::coscheduling::{
    Chooser, ChooserStep, CoscheduleSlot, ProgramMeasure, ProgramTeam, SlotTrial,
};
use crate::ids::ProgramId;
use crate::policy::Policy;

/// Opens a policy that runs these slots in turn, for a quantum of so many ms per program. Their
/// programs are numbered from 0 in the order of program ids. While there is another number of
/// programs, each runs alone.
///
/// Not in the registry, because the slots come from a source that no policy observes: a search
/// through all slots is possible only on a simulated machine.
pub fn fixed_slot_policy(slots: &[CoscheduleSlot], quantum_ms: u64) -> Box<dyn Policy> {
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ms.saturating_mul(1_000_000),
        metered: false,
        sampled: false,
        alpha: None,
        phase: None,
        revert: false,
    };
    let chooser = FixedSlots {
        slots: slots.to_vec(),
        now: Vec::new(),
    };
    Box::new(Rotations::new(settings, chooser))
}

/// A chooser without a choice.
#[derive(Clone, Debug)]
struct FixedSlots {
    slots: Vec<CoscheduleSlot>,
    /// The slots with the present programs.
    now: Vec<CoscheduleSlot>,
}

impl Chooser for FixedSlots {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]) {
        let mut ids: Vec<ProgramId> = alone.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        let teams: usize = self.slots.iter().map(|slot| slot.teams.len()).sum();
        let assign = |slot: &CoscheduleSlot| {
            let teams = slot.teams.iter().map(|team| {
                let program = *ids.get(team.program.0 as usize)?;
                Some(ProgramTeam { program, ..*team })
            });
            let teams = teams.collect::<Option<_>>()?;
            Some(CoscheduleSlot { teams })
        };
        let assigned: Option<Vec<CoscheduleSlot>> = self.slots.iter().map(assign).collect();
        self.now = match assigned {
            Some(assigned) if teams == ids.len() => assigned,
            _ => {
                let ids = ids.iter();
                ids.map(|&id| CoscheduleSlot::alone(id, cores)).collect()
            }
        };
    }

    fn next(&mut self, _: Option<&SlotTrial>) -> ChooserStep {
        ChooserStep::Done(self.now.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots for programs of these ids.
    fn named(ids: &[u32]) -> Vec<Vec<(u32, u32)>> {
        let team = |&(n, cores): &(u32, u32)| ProgramTeam {
            program: ProgramId(n),
            cores,
        };
        let slot = |teams: &[(u32, u32)]| CoscheduleSlot {
            teams: teams.iter().map(team).collect(),
        };
        let mut given = FixedSlots {
            slots: vec![slot(&[(2, 5), (0, 3)]), slot(&[(1, 8)])],
            now: Vec::new(),
        };
        let alone = ids
            .iter()
            .map(|&id| (ProgramId(id), ProgramMeasure::default()));
        given.begin(8, &alone.collect::<Vec<_>>());
        let ChooserStep::Done(slots) = given.next(None) else {
            panic!("nothing is to be tried")
        };
        let names = |s: &CoscheduleSlot| s.teams.iter().map(|t| (t.program.0, t.cores)).collect();
        slots.iter().map(names).collect()
    }

    #[test]
    fn programs_are_numbered_by_id() {
        let slots = [vec![(30, 5), (10, 3)], vec![(20, 8)]];
        assert_eq!(named(&[30, 10, 20]), slots);
    }

    #[test]
    fn other_numbers_of_programs_run_on_their_own() {
        assert_eq!(named(&[7, 9]), [[(7, 8)], [(9, 8)]]);
        assert_eq!(named(&[1, 2, 3, 4]).len(), 4);
    }
}

#[cfg(test)]
mod core_tests {
    use super::super::divide_cores;
    use super::super::testing::pairs;
    use super::*;
    use crate::coscheduling::ProgramTeam;

    fn seated(cores: &[u32]) -> Vec<String> {
        let team = |(n, &cores): (usize, &u32)| ProgramTeam {
            program: ProgramId(n as u32),
            cores,
        };
        let slot = CoscheduleSlot {
            teams: cores.iter().enumerate().map(team).collect(),
        };
        let seats = divide_cores(&pairs(4), &slot);
        seats.values().map(ToString::to_string).collect()
    }

    #[test]
    fn programs_get_whole_cache_domains_where_they_can() {
        // Four domains of two cores; CPUs of a domain are n and n + 4.
        assert_eq!(seated(&[4, 4]), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(seated(&[1, 4, 1, 2]), ["3", "0-1,4-5", "7", "2,6"]);
    }

    #[test]
    fn cores_that_are_not_there_are_not_given() {
        assert_eq!(seated(&[6, 6]), ["0-2,4-6", "3,7"]);
    }
}
