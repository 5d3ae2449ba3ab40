//! Slots that are given from outside, run in turn.
//!
//! Not in the registry, since who gives them knows what no policy observes: a search through all
//! slots can only be had on a simulated machine.

use super::{CoschedulingSettings, Rotations};
use crate::coscheduling::{
    Chooser, ChooserStep, CoscheduleSlot, ProgramMeasure, ProgramTeam, SlotTrial,
};
use crate::ids::ProgramId;
use crate::policy::Policy;

/// Runs these slots in turn, for a quantum of so many ms per program. Their programs are numbered
/// from 0 in the order of program ids; while there are not as many programs, each runs on its own.
pub fn fixed_slot_policy(slots: &[CoscheduleSlot], quantum_ms: u64) -> Box<dyn Policy> {
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ms.saturating_mul(1_000_000),
        metered: false,
        sampled: false,
        alpha: None,
        phase: None,
        revert: false,
    };
    let given = FixedSlots {
        slots: slots.to_vec(),
        now: Vec::new(),
    };
    Box::new(Rotations::new(settings, given))
}

/// The chooser that has nothing to choose.
#[derive(Clone, Debug)]
struct FixedSlots {
    slots: Vec<CoscheduleSlot>,
    /// The slots with the programs that there are.
    now: Vec<CoscheduleSlot>,
}

impl FixedSlots {
    fn assign_programs(&self, cores: u32, ids: &[ProgramId]) -> Vec<CoscheduleSlot> {
        let teams: usize = self.slots.iter().map(|slot| slot.teams.len()).sum();
        let team = |team: &ProgramTeam| {
            let program = *ids.get(team.program.0 as usize)?;
            Some(ProgramTeam { program, ..*team })
        };
        let slot = |slot: &CoscheduleSlot| {
            let teams = slot.teams.iter().map(team);
            Some(CoscheduleSlot {
                teams: teams.collect::<Option<_>>()?,
            })
        };
        let named: Option<Vec<CoscheduleSlot>> = self.slots.iter().map(slot).collect();
        let named = named.filter(|_| teams == ids.len());
        named.unwrap_or_else(|| {
            ids.iter()
                .map(|&id| CoscheduleSlot::alone(id, cores))
                .collect()
        })
    }
}

impl Chooser for FixedSlots {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]) {
        let mut ids: Vec<ProgramId> = alone.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        self.now = self.assign_programs(cores, &ids);
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
    fn programs_are_numbered_in_the_order_of_their_ids() {
        let slots = [vec![(30, 5), (10, 3)], vec![(20, 8)]];
        assert_eq!(named(&[30, 10, 20]), slots);
    }

    #[test]
    fn other_numbers_of_programs_run_on_their_own() {
        assert_eq!(named(&[7, 9]), [[(7, 8)], [(9, 8)]]);
        assert_eq!(named(&[1, 2, 3, 4]).len(), 4);
    }
}
