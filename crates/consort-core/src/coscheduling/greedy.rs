//! `greedy`: programs at the number of cores that is best for them alone, packed.
//!
//! Source: Bhadauria and McKee, ICS 2010, section on the greedy scheduler. Every program is
//! profiled with every number of cores. Its number is that of the most throughput per watt. The
//! best-scaling program, the one with the highest speedup over one core at its number, is placed
//! at its number, then the next best-scaling that fits the cores that are left, and so on; cores
//! that are left over go to the best-scaling member one by one while it gains by them.

use super::measure::Measure;
use super::profile::Profile;
use super::slot::{Chooser, Slot, Step, Team, Trial};
use crate::ids::ProgramId;

/// The greedy chooser.
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    cores: u32,
    programs: Vec<ProgramId>,
    profile: Profile,
}

impl Chooser for Greedy {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, Measure)]) {
        self.cores = cores;
        self.programs = alone.iter().map(|(id, _)| *id).collect();
        self.profile = Profile::new(cores, alone);
    }

    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            self.profile.note(trial);
        }
        match self.profile.missing(&self.programs) {
            Some(slot) => Step::Try(slot),
            None => Step::Done(self.pack()),
        }
    }
}

impl Greedy {
    /// The number of cores with the most throughput per watt, the fewest of equals.
    fn best(&self, program: ProgramId) -> u32 {
        let per_watt = |cores: u32| {
            let measure = self.profile.of(program, cores);
            measure.map_or(0.0, |m| m.instructions / m.energy_j)
        };
        let more = |a: &u32, b: &u32| per_watt(*a).total_cmp(&per_watt(*b));
        (1..=self.cores).rev().max_by(more).unwrap_or(self.cores)
    }

    fn pack(&self) -> Vec<Slot> {
        let team = |&program: &ProgramId| Team {
            program,
            cores: self.best(program),
        };
        let mut waiting: Vec<Team> = self.programs.iter().map(team).collect();
        let speedup = |team: &Team| self.profile.speedup(team.program, team.cores);
        waiting.sort_by(|a, b| speedup(b).total_cmp(&speedup(a)));
        let mut slots = Vec::new();
        while !waiting.is_empty() {
            slots.push(self.fill(&mut waiting));
        }
        slots
    }

    /// Takes the members of a slot off the list.
    fn fill(&self, waiting: &mut Vec<Team>) -> Slot {
        let mut slot = Slot::default();
        waiting.retain(|team| {
            let fits = slot.cores() + team.cores <= self.cores;
            if fits {
                slot.teams.push(*team);
            }
            !fits
        });
        let mut left = self.cores - slot.cores();
        if let Some(first) = slot.teams.first_mut() {
            let now = |cores| self.profile.throughput(first.program, cores);
            let mut cores = first.cores;
            while left > 0 && now(cores + 1) > now(cores) {
                (cores, left) = (cores + 1, left - 1);
            }
            first.cores = cores;
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Load, World, id};
    use super::*;

    fn choose(scaling: &[f64]) -> Vec<Vec<(u32, u32)>> {
        let load = |&scaling: &f64| Load {
            scaling,
            weight: 0.0,
        };
        let world = World {
            cores: 8,
            loads: scaling.iter().map(load).collect(),
        };
        let mut greedy = Greedy::default();
        greedy.begin(8, &world.rising());
        let mut last = None;
        loop {
            match greedy.next(last.take().as_ref()) {
                Step::Try(slot) => last = Some(world.run(&slot)),
                Step::Done(slots) => {
                    let names = |s: &Slot| s.teams.iter().map(|t| (t.program.0, t.cores)).collect();
                    return slots.iter().map(names).collect();
                }
            }
        }
    }

    #[test]
    fn each_is_placed_at_its_best_throughput_per_watt_and_the_best_scaling_first() {
        // A core draws 1 W: throughput per watt is flat up to what each can use, so the fewest
        // cores are best, and what is left goes to the first while it gains.
        assert_eq!(choose(&[5.0, 3.0]), [vec![(1, 5), (2, 1)]]);
    }

    #[test]
    fn what_does_not_fit_waits_for_another_slot() {
        // On one core each: eight fit, the ninth does not.
        let slots = choose(&[1.0; 9]);
        assert_eq!(slots.iter().map(Vec::len).collect::<Vec<_>>(), [8, 1]);
        assert_eq!(slots[1], [(id(8).0, 1)]);
    }
}
