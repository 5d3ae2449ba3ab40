//! The application chooser: selects the programs that share a slot.
//!
//! Source: Bhadauria and McKee, ICS 2010, section on the fair schedulers. A is the list of programs
//! by rising use of the contended resource, B the same list from its other end.
//!
//! 1. The heaviest program, the head of B, begins a co-schedule.
//! 2. The lightest, the head of A, joins it. Cores are dealt round robin to the members by rising
//!    use, one at a time (for example 8 cores over three: 3, 3, 2, the heaviest having 2).
//! 3. The co-schedule is tried for a quantum. If every member's energy-delay is below its value before
//!    co-scheduling, go to 2; at the first failure go to 4; at the second to 5.
//! 4. The last member returns to the head of A, and the second of A is tried instead.
//! 5. The last member returns to its place in A. What is left is a co-schedule, and the remaining
//!    programs begin at 1.
//!
//! Before co-scheduling a member was in the gang ([`EnergyDelayBaseline::Gang`]). A stricter
//! reading of step 3 is [`EnergyDelayBaseline::Slot`]. A co-schedule has at most as many members as
//! there are cores.

use super::measure::ProgramMeasure;
use super::slot::{CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;
use std::collections::{BTreeMap, VecDeque};

/// Next request of the application chooser.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooserRequest {
    /// Try this slot.
    Try(CoscheduleSlot),
    /// This slot is a co-schedule, and its members are off the list. It comes with the last trial
    /// of exactly these members, if there was one.
    Found(CoscheduleSlot, Option<SlotTrial>),
    /// All programs have a slot.
    Nothing,
}

/// Value that every member's energy-delay must be below for a newcomer to stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergyDelayBaseline {
    /// The member's own value in the gang.
    #[default]
    Gang,
    /// The member's own value in the co-schedule without the newcomer; for the newcomer the value
    /// in the gang.
    Slot,
}

/// The application chooser.
#[doc(alias = "application chooser")]
#[derive(Clone, Debug, Default)]
pub struct ApplicationChooser {
    cores: u32,
    standard: EnergyDelayBaseline,
    /// Programs not yet chosen, the lightest first.
    rising: VecDeque<ProgramId>,
    /// Place by rising use.
    weight: BTreeMap<ProgramId, usize>,
    /// Energy-delay in the gang.
    gang: BTreeMap<ProgramId, f64>,
    /// Members, the heaviest first.
    members: Vec<ProgramId>,
    /// The trial of the members without the newcomer.
    accepted: Option<SlotTrial>,
    failures: u32,
    /// True while a trial is under way, the last member being the newcomer.
    trying: bool,
}

impl ApplicationChooser {
    /// Returns a chooser among programs by rising use, each with its measure alone on all `cores`.
    pub fn new(
        cores: u32,
        rising: &[(ProgramId, ProgramMeasure)],
        standard: EnergyDelayBaseline,
    ) -> Self {
        let gang = rising.iter().map(|(id, m)| (*id, m.energy_delay(1)));
        let weight = rising.iter().enumerate().map(|(i, (id, _))| (*id, i));
        Self {
            cores,
            standard,
            weight: weight.collect(),
            rising: rising.iter().map(|(id, _)| *id).collect(),
            gang: gang.collect(),
            ..Self::default()
        }
    }

    /// Returns the next request, given the result of the last trial.
    pub fn next(&mut self, last: Option<&SlotTrial>) -> ChooserRequest {
        if !self.trying {
            return self.begin();
        }
        match last {
            Some(trial) if self.improves(trial) => {
                self.accepted = Some(trial.clone());
                self.add(0)
            }
            _ => self.reject(),
        }
    }

    /// Step 1.
    fn begin(&mut self) -> ChooserRequest {
        let Some(heaviest) = self.rising.pop_back() else {
            return ChooserRequest::Nothing;
        };
        self.members = vec![heaviest];
        (self.accepted, self.failures) = (None, 0);
        self.add(0)
    }

    /// Step 2, with the program at `place` of A: the head, or the second if the head has failed.
    fn add(&mut self, place: usize) -> ChooserRequest {
        let full = self.members.len() as u32 >= self.cores;
        let newcomer = if full {
            None
        } else {
            self.rising.remove(place)
        };
        let Some(newcomer) = newcomer else {
            return self.finish_coschedule();
        };
        self.members.push(newcomer);
        self.trying = true;
        ChooserRequest::Try(self.even_slot())
    }

    /// Step 3: returns true if every member is better off than before.
    fn improves(&self, trial: &SlotTrial) -> bool {
        let mut members = self.members.iter();
        members.all(|&id| trial.energy_delay(id) < self.energy_delay_bound(id))
    }

    /// Upper bound of the energy-delay of a member that is better off.
    fn energy_delay_bound(&self, id: ProgramId) -> f64 {
        if let Some(trial) = &self.accepted
            && self.standard == EnergyDelayBaseline::Slot
            && trial.measure(id).is_some()
        {
            return trial.energy_delay(id);
        }
        self.gang.get(&id).copied().unwrap_or(f64::INFINITY)
    }

    /// Steps 4 and 5.
    fn reject(&mut self) -> ChooserRequest {
        self.failures += 1;
        if let Some(last) = self.members.pop() {
            self.give_back(last);
        }
        if self.failures > 1 {
            return self.finish_coschedule();
        }
        self.add(1)
    }

    /// Returns a program to its place in A.
    fn give_back(&mut self, program: ProgramId) {
        let lighter = |id: &ProgramId| self.weight.get(id) < self.weight.get(&program);
        let place = self.rising.iter().take_while(|id| lighter(id)).count();
        self.rising.insert(place, program);
    }

    fn finish_coschedule(&mut self) -> ChooserRequest {
        self.trying = false;
        ChooserRequest::Found(self.even_slot(), self.accepted.take())
    }

    /// Returns the members with the cores dealt to them in turn, the lightest first.
    fn even_slot(&self) -> CoscheduleSlot {
        let n = (self.members.len() as u32).max(1);
        let (each, rest) = (self.cores / n, self.cores % n);
        let lighter = |program: &ProgramId| {
            let own = self.weight.get(program);
            let lighter = self.members.iter().filter(|id| self.weight.get(id) < own);
            lighter.count() as u32
        };
        let team = |program: &ProgramId| ProgramTeam {
            program: *program,
            cores: each + u32::from(lighter(program) < rest),
        };
        CoscheduleSlot {
            teams: self.members.iter().map(team).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Load, World, id};
    use super::*;
    use proptest::prelude::*;

    /// Runs the chooser to its end: the slots found, and every slot tried.
    fn choose_by(
        standard: EnergyDelayBaseline,
        world: &World,
    ) -> (Vec<CoscheduleSlot>, Vec<CoscheduleSlot>) {
        let mut chooser = ApplicationChooser::new(world.cores, &world.rising(), standard);
        let (mut found, mut tried, mut last) = (Vec::new(), Vec::new(), None);
        loop {
            match chooser.next(last.take().as_ref()) {
                ChooserRequest::Try(slot) => {
                    last = Some(world.run(&slot));
                    tried.push(slot);
                }
                ChooserRequest::Found(slot, _) => found.push(slot),
                ChooserRequest::Nothing => return (found, tried),
            }
        }
    }

    fn choose(world: &World) -> (Vec<CoscheduleSlot>, Vec<CoscheduleSlot>) {
        choose_by(EnergyDelayBaseline::Gang, world)
    }

    fn names(slot: &CoscheduleSlot) -> Vec<(u32, u32)> {
        let team = |t: &ProgramTeam| (t.program.0, t.cores);
        slot.teams.iter().map(team).collect()
    }

    /// Programs 1 to n, the lightest first. Speed on c cores is that of `scaling` cores at most.
    fn world(cores: u32, loads: &[Load]) -> World {
        World {
            cores,
            loads: loads.to_vec(),
        }
    }

    const POOR: Load = Load {
        scaling: 2.0,
        weight: 0.0,
    };

    #[test]
    fn heaviest_and_lightest_share_cores_evenly() {
        let (_, tried) = choose(&world(8, &[POOR; 3]));
        assert_eq!(names(&tried[0]), [(3, 4), (1, 4)]);
    }

    #[test]
    fn remaining_cores_go_to_the_lightest() {
        let (_, tried) = choose(&world(8, &[POOR; 3]));
        assert_eq!(names(&tried[1]), [(3, 2), (1, 3), (2, 3)]);
        let (found, _) = choose(&world(7, &[POOR; 5]));
        assert_eq!(names(&found[0]), [(5, 1), (1, 2), (2, 2), (3, 1), (4, 1)]);
    }

    /// By hand, energy-delay of program 3: 8/2 · 1/2 = 2 in the gang, 4/2 · 1/2 / 2 quanta = 0.5
    /// next to 1. Program 2 halves its speed: 2/1 · 1/1 / 3 quanta = 0.67 on two cores.
    #[test]
    fn newcomer_stays_if_all_beat_the_gang() {
        let slow = Load {
            weight: 1.0,
            ..POOR
        };
        let world = world(8, &[POOR, slow, POOR]);
        let (found, _) = choose_by(EnergyDelayBaseline::Gang, &world);
        assert_eq!(names(&found[0]), [(3, 2), (1, 3), (2, 3)]);
        let (found, _) = choose_by(EnergyDelayBaseline::Slot, &world);
        assert_eq!(names(&found[0]), [(3, 4), (1, 4)]);
    }

    #[test]
    fn members_are_added_while_every_member_gains() {
        // None uses more than two cores: three in one slot lose nothing and get three quanta.
        let (found, _) = choose(&world(8, &[POOR; 3]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].quanta(), 3);
    }

    #[test]
    fn second_failure_ends_the_co_schedule() {
        // All scale to eight cores, so sharing gains nothing.
        let linear = Load {
            scaling: 8.0,
            weight: 0.5,
        };
        let (found, tried) = choose(&world(8, &[linear; 4]));
        assert_eq!(names(&tried[0]), [(4, 4), (1, 4)]);
        assert_eq!(names(&tried[1]), [(4, 4), (2, 4)]);
        // The co-schedule is the heaviest alone; the others begin at 1 with the same A.
        assert_eq!(names(&found[0]), [(4, 8)]);
        assert_eq!(names(&tried[2]), [(3, 4), (1, 4)]);
    }

    #[test]
    fn first_failure_may_join_after_the_second() {
        // Program 1 loses next to 3 alone, since it scales to four cores or more.
        let loads = [
            Load {
                scaling: 8.0,
                weight: 0.0,
            },
            POOR,
            POOR,
        ];
        let (found, tried) = choose(&world(8, &loads));
        assert_eq!(names(&tried[0]), [(3, 4), (1, 4)]);
        assert_eq!(names(&tried[1]), [(3, 4), (2, 4)]);
        assert_eq!(names(&tried[2]), [(3, 2), (2, 3), (1, 3)]);
        // Three cores for three quanta are more than eight for one.
        let slots: Vec<_> = found.iter().map(names).collect();
        assert_eq!(slots, [[(3, 2), (2, 3), (1, 3)]]);
    }

    proptest! {
        #[test]
        fn each_program_is_in_one_co_schedule(
            cores in 1u32..17,
            loads in prop::collection::vec((1.0f64..16.0, 0.0f64..2.0), 1..9),
        ) {
            let loads: Vec<Load> = loads.into_iter().map(|(scaling, weight)| Load { scaling, weight }).collect();
            let world = world(cores, &loads);
            let (found, tried) = choose(&world);
            let mut all: Vec<u32> = found.iter().flat_map(|s| &s.teams).map(|t| t.program.0).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (1..=loads.len() as u32).collect::<Vec<_>>());
            for slot in found.iter().chain(&tried) {
                prop_assert_eq!(slot.cores(), cores);
                prop_assert!(slot.teams.iter().all(|t| t.cores > 0));
            }
            // Each trial adds a member or is one of two failures of a co-schedule.
            prop_assert!(tried.len() <= loads.len() + 2 * found.len());
        }

        #[test]
        fn no_program_is_worse_than_in_the_gang(
            cores in 2u32..17,
            loads in prop::collection::vec((1.0f64..16.0, 0.0f64..2.0), 1..9),
        ) {
            let loads: Vec<Load> = loads.into_iter().map(|(scaling, weight)| Load { scaling, weight }).collect();
            let world = world(cores, &loads);
            for slot in choose(&world).0 {
                let trial = world.run(&slot);
                for team in &slot.teams {
                    let alone = world.run(&CoscheduleSlot::alone(team.program, cores));
                    prop_assert!(trial.energy_delay(team.program) <= alone.energy_delay(team.program));
                }
            }
        }
    }

    #[test]
    fn ids_are_numbers_from_one() {
        assert_eq!(id(0), ProgramId(1));
    }
}
