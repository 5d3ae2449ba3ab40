//! `pdpa`: gives each program cores by its efficiency, without regard to its neighbours.
//!
//! Source: Corbalan, Martorell, Labarta, "Performance-driven processor allocation" (OSDI 2000), as
//! Bhadauria and McKee (ICS 2010) adapt it. All programs run at the same time, in one slot, from an
//! equal partition of the cores; more programs than cores make several such slots. Each program
//! climbs by itself: its efficiency is its throughput next to the others over that of one core
//! alone, per core. Below the low threshold it gives a core back, above the high one it takes a
//! free core, the most efficient first; in between it is content. A program that has changed
//! direction is content too, at the smaller number. A quantum is tried for each step of all
//! programs, until no program can move.
//!
//! Programs that scale nearly linearly have quanta of their own; the caller leaves them out.

use super::measure::ProgramMeasure;
use super::profile::KnownProfiles;
use super::slot::{Chooser, ChooserStep, CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;
use std::collections::VecDeque;

/// The PDPA chooser.
#[doc(alias = "performance-driven processor allocation")]
#[derive(Clone, Debug)]
pub struct PdpaChooser {
    high: f64,
    low: f64,
    cores: u32,
    profile: KnownProfiles,
    /// Programs that have not climbed yet, slot by slot.
    waiting: VecDeque<Vec<ProgramId>>,
    climbing: Option<SlotClimb>,
    slots: Vec<CoscheduleSlot>,
}

#[derive(Clone, Debug)]
struct SlotClimb {
    /// Unused cores.
    free: u32,
    climbers: Vec<ProgramClimb>,
}

#[derive(Clone, Copy, Debug)]
struct ProgramClimb {
    team: ProgramTeam,
    course: ClimbDirection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClimbDirection {
    Open,
    Up,
    Down,
    Content,
}

impl PdpaChooser {
    /// Returns a chooser with these thresholds of efficiency, 0 to 1, `low` not above `high`.
    pub fn new(low: f64, high: f64) -> Self {
        Self {
            high: high.max(low),
            low,
            cores: 0,
            profile: KnownProfiles::default(),
            waiting: VecDeque::new(),
            climbing: None,
            slots: Vec::new(),
        }
    }

    /// Applies the result of a step. Returns true if a program moves.
    fn climb(&mut self, trial: &SlotTrial) -> bool {
        let (profile, bounds) = (&self.profile, (self.low, self.high));
        let efficiency = |team: &ProgramTeam| {
            let one = profile.throughput(team.program, 1) * f64::from(team.cores);
            trial
                .measure(team.program)
                .map_or(0.0, |m| m.throughput() / one)
        };
        let crowd = self.climbing.as_mut();
        crowd.is_some_and(|crowd| crowd.step(efficiency, bounds))
    }

    /// The next program without a measure on one core.
    fn unmeasured_program(&self) -> Option<ProgramId> {
        let mut programs = self.waiting.iter().flatten().copied();
        programs.find(|&program| self.profile.measure(program, 1).is_none())
    }
}

impl SlotClimb {
    /// Gives each program the same number of cores, and one more to the first programs if they do
    /// not divide evenly.
    fn new(cores: u32, programs: &[ProgramId]) -> Self {
        let n = programs.len().max(1) as u32;
        let climber = |(place, &program): (usize, &ProgramId)| ProgramClimb {
            team: ProgramTeam {
                program,
                cores: cores / n + u32::from((place as u32) < cores % n),
            },
            course: ClimbDirection::Open,
        };
        Self {
            free: 0,
            climbers: programs.iter().enumerate().map(climber).collect(),
        }
    }

    fn slot(&self) -> CoscheduleSlot {
        CoscheduleSlot {
            teams: self.climbers.iter().map(|climber| climber.team).collect(),
        }
    }

    /// Moves every program by one step. Returns true if one moved.
    fn step(&mut self, efficiency: impl Fn(&ProgramTeam) -> f64, (low, high): (f64, f64)) -> bool {
        let mut moved = false;
        let mut able: Vec<(f64, usize)> = Vec::new();
        for (place, climber) in self.climbers.iter_mut().enumerate() {
            let now = efficiency(&climber.team);
            if now < low && climber.give_core() {
                (self.free, moved) = (self.free + 1, true);
            } else if now > high {
                able.push((now, place));
            }
        }
        able.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, place) in able {
            if self.free > 0 && self.climbers[place].take_core() {
                (self.free, moved) = (self.free - 1, true);
            }
        }
        moved
    }
}

impl ProgramClimb {
    /// Gives a core back, unless the program is content or has one only. Returns true if it did.
    fn give_core(&mut self) -> bool {
        let gives = self.team.cores > 1 && self.course != ClimbDirection::Content;
        if gives {
            self.team.cores -= 1;
            self.course = match self.course {
                ClimbDirection::Up => ClimbDirection::Content,
                _ => ClimbDirection::Down,
            };
        }
        gives
    }

    /// Takes a core, unless the program is content or has just given one back. Returns true if it
    /// did.
    fn take_core(&mut self) -> bool {
        let takes = matches!(self.course, ClimbDirection::Open | ClimbDirection::Up);
        if takes {
            self.team.cores += 1;
            self.course = ClimbDirection::Up;
        }
        takes
    }
}

impl Chooser for PdpaChooser {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]) {
        self.cores = cores;
        self.profile = KnownProfiles::new(cores, alone);
        let programs: Vec<ProgramId> = alone.iter().map(|(id, _)| *id).collect();
        let slots = programs.len().div_ceil(cores.max(1) as usize).max(1);
        let each = programs.len().div_ceil(slots).max(1);
        self.waiting = programs.chunks(each).map(<[_]>::to_vec).collect();
        (self.climbing, self.slots) = (None, Vec::new());
    }

    fn next(&mut self, last: Option<&SlotTrial>) -> ChooserStep {
        match (last, self.climbing.is_some()) {
            (Some(trial), false) => self.profile.record_trial(trial),
            (Some(trial), true) => {
                if !self.climb(trial) {
                    self.slots
                        .extend(self.climbing.take().map(|crowd| crowd.slot()));
                }
            }
            (None, _) => {}
        }
        if self.climbing.is_none() {
            if let Some(program) = self.unmeasured_program() {
                return ChooserStep::Try(CoscheduleSlot::alone(program, 1));
            }
            let next = self.waiting.pop_front();
            self.climbing = next.map(|programs| SlotClimb::new(self.cores, &programs));
        }
        match &self.climbing {
            Some(crowd) => ChooserStep::Try(crowd.slot()),
            None => ChooserStep::Done(self.slots.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Load, World};
    use super::*;
    use proptest::prelude::*;

    /// Programs with their cores, slot by slot.
    type Slots = Vec<Vec<(u32, u32)>>;

    /// The slots of a machine of eight cores, and the slots tried on the way.
    fn choose(loads: &[(f64, f64)]) -> (Slots, Slots) {
        let load = |&(scaling, weight): &(f64, f64)| Load { scaling, weight };
        let world = World {
            cores: 8,
            loads: loads.iter().map(load).collect(),
        };
        let names = |s: &CoscheduleSlot| s.teams.iter().map(|t| (t.program.0, t.cores)).collect();
        let mut pdpa = PdpaChooser::new(0.7, 0.95);
        pdpa.begin(8, &world.rising());
        let (mut last, mut tried) = (None, Vec::new());
        loop {
            match pdpa.next(last.take().as_ref()) {
                ChooserStep::Try(slot) => {
                    last = Some(world.run(&slot));
                    tried.push(names(&slot));
                }
                ChooserStep::Done(slots) => return (slots.iter().map(names).collect(), tried),
            }
        }
    }

    #[test]
    fn programs_start_from_an_equal_partition() {
        let (found, tried) = choose(&[(3.0, 0.0), (3.0, 0.0), (3.0, 0.0)]);
        // One core each for reference, then all: 3/3, 3/3 and 2/2 are content or find nothing free.
        assert_eq!(tried[..3], [[(1, 1)], [(2, 1)], [(3, 1)]]);
        assert_eq!(tried[3], [(1, 3), (2, 3), (3, 2)]);
        assert_eq!(found, [[(1, 3), (2, 3), (3, 2)]]);
    }

    /// By hand, from four each: 2/4 is below 0.7, so the first gives a core back, which the second,
    /// at 4/4, takes; 2/3 is below as well, and 5/5 above; 2/2 and 6/6 are both above, with nothing
    /// free.
    #[test]
    fn inefficient_programs_give_cores_to_efficient_ones() {
        let (found, tried) = choose(&[(2.0, 0.0), (6.0, 0.0)]);
        assert_eq!(
            tried[2..],
            [[(1, 4), (2, 4)], [(1, 3), (2, 5)], [(1, 2), (2, 6)]]
        );
        assert_eq!(found, [[(1, 2), (2, 6)]]);
    }

    /// By hand: next to a neighbour that halves its speed a program that scales to eight looks half
    /// as efficient on any number of cores, and gives all but one away, though more would help it.
    #[test]
    fn neighbours_reduce_the_apparent_efficiency() {
        let (found, _) = choose(&[(8.0, 0.0), (1.0, 1.0)]);
        assert_eq!(found, [[(1, 1), (2, 1)]]);
    }

    /// By hand, 3.6 cores' worth: 3.6/4 is content. Next to 1, which gives back three, 4/4 takes
    /// one, and 4/5 is content.
    #[test]
    fn program_between_the_thresholds_is_content() {
        assert_eq!(choose(&[(3.6, 0.0), (3.6, 0.0)]).0, [[(1, 4), (2, 4)]]);
        assert_eq!(choose(&[(1.0, 0.0), (4.0, 0.0)]).0, [[(1, 1), (2, 5)]]);
    }

    #[test]
    fn program_that_reverses_keeps_fewer_cores() {
        // 1.9 and 1.9 of 3: 0.63 is too little, 1.9/2 is 0.95, which is no more than enough. The
        // third, 2/2, takes one, and 2/3 is too little again.
        let (found, _) = choose(&[(1.9, 0.0), (1.9, 0.0), (2.0, 0.0)]);
        assert_eq!(found, [[(1, 2), (2, 2), (3, 2)]]);
    }

    #[test]
    fn more_programs_than_cores_make_several_slots() {
        let (found, _) = choose(&[(2.0, 0.0); 9]);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [5, 4]);
    }

    proptest! {
        #[test]
        fn trials_are_few_and_cores_suffice(
            loads in prop::collection::vec((1.0f64..9.0, 0.0f64..1.0), 1..9),
        ) {
            let (found, tried) = choose(&loads);
            // A reference each, the equal partition, and a step for each core that moves at most.
            prop_assert!(tried.len() <= loads.len() + 1 + 8 + 8, "{tried:?}");
            for slot in found.iter().chain(&tried) {
                prop_assert!(slot.iter().map(|(_, cores)| cores).sum::<u32>() <= 8);
                prop_assert!(slot.iter().all(|(_, cores)| *cores > 0));
            }
        }
    }
}
