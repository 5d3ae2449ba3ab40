//! `pdpa`: each program's cores by how efficiently it uses them, blind to its neighbours.
//!
//! Source: Corbalan, Martorell, Labarta, "Performance-driven processor allocation" (OSDI 2000), as
//! Bhadauria and McKee (ICS 2010) adapt it. A program begins with all cores. Its efficiency is its
//! speedup over one core per core. Above the high threshold it is given more cores, below the low
//! one fewer, in steps that halve; in between it is content. Programs that are still efficient
//! with all cores have quanta of their own; the others are packed in the order of their cores,
//! most first, wherever they fit.

use super::measure::Measure;
use super::profile::Profile;
use super::slot::{Chooser, Slot, Step, Team, Trial};
use crate::ids::ProgramId;

/// The chooser.
#[derive(Clone, Debug)]
pub struct Pdpa {
    high: f64,
    low: f64,
    cores: u32,
    programs: Vec<ProgramId>,
    profile: Profile,
}

impl Pdpa {
    /// Thresholds of efficiency, 0 to 1, `low` not above `high`.
    pub fn new(low: f64, high: f64) -> Self {
        Self {
            high: high.max(low),
            low,
            cores: 0,
            programs: Vec::new(),
            profile: Profile::default(),
        }
    }

    /// Climbs for one program: its cores, or the number of cores that must be tried first.
    fn climb(&self, program: ProgramId) -> Result<u32, u32> {
        let efficiency = |cores: u32| {
            let known = self.profile.of(program, cores).is_some();
            let speedup = self.profile.speedup(program, cores);
            known.then(|| speedup / f64::from(cores)).ok_or(cores)
        };
        if self.profile.of(program, 1).is_none() {
            return Err(1);
        }
        let (mut cores, mut step) = (self.cores, self.cores);
        while step > 1 {
            step = step.div_ceil(2);
            let now = efficiency(cores)?;
            if now < self.low {
                cores = cores.saturating_sub(step).max(1);
            } else if now > self.high {
                cores = (cores + step).min(self.cores);
            } else {
                break;
            }
            if step == 1 {
                break;
            }
        }
        Ok(cores)
    }

    fn pack(&self) -> Vec<Slot> {
        let team = |&program: &ProgramId| Team {
            program,
            cores: self.climb(program).unwrap_or(self.cores),
        };
        let mut teams: Vec<Team> = self.programs.iter().map(team).collect();
        teams.sort_by_key(|team| std::cmp::Reverse(team.cores));
        let mut slots: Vec<Slot> = Vec::new();
        for team in teams {
            let room = |slot: &&mut Slot| slot.cores() + team.cores <= self.cores;
            match slots.iter_mut().find(room) {
                Some(slot) => slot.teams.push(team),
                None => slots.push(Slot { teams: vec![team] }),
            }
        }
        slots
    }
}

impl Chooser for Pdpa {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, Measure)]) {
        self.cores = cores;
        self.programs = alone.iter().map(|(id, _)| *id).collect();
        self.profile = Profile::new(cores, alone);
    }

    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            self.profile.note(trial);
        }
        let open = |&program: &ProgramId| Some((program, self.climb(program).err()?));
        match self.programs.iter().find_map(open) {
            Some((program, cores)) => Step::Try(Slot::alone(program, cores)),
            None => Step::Done(self.pack()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Load, World};
    use super::*;

    fn choose(scaling: &[f64]) -> (Vec<Vec<(u32, u32)>>, usize) {
        let load = |&scaling: &f64| Load {
            scaling,
            weight: 0.0,
        };
        let world = World {
            cores: 8,
            loads: scaling.iter().map(load).collect(),
        };
        let mut pdpa = Pdpa::new(0.7, 0.95);
        pdpa.begin(8, &world.rising());
        let (mut last, mut trials) = (None, 0);
        loop {
            match pdpa.next(last.take().as_ref()) {
                Step::Try(slot) => {
                    last = Some(world.run(&slot));
                    trials += 1;
                }
                Step::Done(slots) => {
                    let names = |s: &Slot| s.teams.iter().map(|t| (t.program.0, t.cores)).collect();
                    return (slots.iter().map(names).collect(), trials);
                }
            }
        }
    }

    #[test]
    fn near_linear_programs_have_quanta_of_their_own() {
        assert_eq!(choose(&[8.0, 8.0]).0, [[(1, 8)], [(2, 8)]]);
    }

    #[test]
    fn inefficient_programs_get_fewer_cores_and_share() {
        // At 8 cores 3/8, at 4 cores 3/4, which is between the thresholds.
        assert_eq!(choose(&[3.0, 3.0]).0, [[(1, 4), (2, 4)]]);
    }

    #[test]
    fn a_program_that_turns_efficient_gets_cores_back() {
        // At 8 cores 5/8, at 4 cores 1, at 6 cores 5/6.
        assert_eq!(choose(&[5.0]).0, [[(1, 6)]]);
    }

    #[test]
    fn trials_are_logarithmic() {
        for scaling in 1..9 {
            assert!(choose(&[f64::from(scaling)]).1 <= 4);
        }
    }
}
