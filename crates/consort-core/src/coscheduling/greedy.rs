//! `greedy`: gives each program its best number of cores alone, and packs the programs.
//!
//! Source: Bhadauria and McKee, ICS 2010, section on the greedy scheduler. Every program is
//! profiled with every number of cores. Its best number has the lowest energy-delay, where the
//! program is charged for the power that the machine always draws by its share of the cores,
//! because other programs will use the rest. With the power of the whole machine every program
//! would take all cores. The best-scaling program, the one with the highest speedup over one core,
//! is placed first, then the next best-scaling that fits the remaining cores, and so on. Cores that
//! are left over go to the best-scaling member one by one while it gains.

use super::measure::ProgramMeasure;
use super::profile::KnownProfiles;
use super::slot::{Chooser, ChooserStep, CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;

/// The greedy chooser.
#[derive(Clone, Debug, Default)]
pub struct GreedyChooser {
    cores: u32,
    programs: Vec<ProgramId>,
    profile: KnownProfiles,
}

impl Chooser for GreedyChooser {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]) {
        self.cores = cores;
        self.programs = alone.iter().map(|(id, _)| *id).collect();
        self.profile = KnownProfiles::new(cores, alone);
    }

    fn next(&mut self, last: Option<&SlotTrial>) -> ChooserStep {
        if let Some(trial) = last {
            self.profile.record_trial(trial);
        }
        match self.profile.missing_slot(&self.programs) {
            Some(slot) => ChooserStep::Try(slot),
            None => ChooserStep::Done(self.pack()),
        }
    }
}

impl GreedyChooser {
    fn pack(&self) -> Vec<CoscheduleSlot> {
        let idle_w = self.profile.idle_w(&self.programs);
        let team = |&program: &ProgramId| ProgramTeam {
            program,
            cores: self.profile.best_cores(program, idle_w),
        };
        let mut waiting: Vec<ProgramTeam> = self.programs.iter().map(team).collect();
        let speedup = |team: &ProgramTeam| self.profile.speedup(team.program, team.cores);
        waiting.sort_by(|a, b| speedup(b).total_cmp(&speedup(a)));
        let mut slots = Vec::new();
        while !waiting.is_empty() {
            slots.push(self.fill(&mut waiting));
        }
        slots
    }

    /// Moves programs that fit from the list into a slot.
    fn fill(&self, waiting: &mut Vec<ProgramTeam>) -> CoscheduleSlot {
        let mut slot = CoscheduleSlot::default();
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

    fn choose_by(
        run: impl Fn(&CoscheduleSlot) -> SlotTrial,
        programs: usize,
    ) -> Vec<Vec<(u32, u32)>> {
        let alone = |i| (id(i), run(&CoscheduleSlot::alone(id(i), 8)).measures[0]);
        let mut greedy = GreedyChooser::default();
        greedy.begin(8, &(0..programs).map(alone).collect::<Vec<_>>());
        let mut last = None;
        loop {
            match greedy.next(last.take().as_ref()) {
                ChooserStep::Try(slot) => last = Some(run(&slot)),
                ChooserStep::Done(slots) => {
                    let names = |s: &CoscheduleSlot| {
                        s.teams.iter().map(|t| (t.program.0, t.cores)).collect()
                    };
                    return slots.iter().map(names).collect();
                }
            }
        }
    }

    fn choose(scaling: &[f64]) -> Vec<Vec<(u32, u32)>> {
        let load = |&scaling: &f64| Load {
            scaling,
            weight: 0.0,
        };
        let world = World {
            cores: 8,
            loads: scaling.iter().map(load).collect(),
        };
        choose_by(|slot| world.run(slot), scaling.len())
    }

    /// Programs with these serial shares, sped up by Amdahl's law, on a machine that draws 16 W and
    /// 1 W for each core that has work.
    fn amdahl(serial: &[f64]) -> Vec<Vec<(u32, u32)>> {
        let run = |slot: &CoscheduleSlot| {
            let team = slot.teams[0];
            let (serial, cores) = (serial[team.program.0 as usize - 1], f64::from(team.cores));
            let measure = ProgramMeasure {
                instructions: 1e9 / (serial + (1.0 - serial) / cores),
                cores: team.cores,
                time_ns: 1e9,
                energy_j: 16.0 + cores,
                ..ProgramMeasure::default()
            };
            SlotTrial {
                slot: slot.clone(),
                measures: vec![measure],
            }
        };
        choose_by(run, serial.len())
    }

    #[test]
    fn programs_get_their_lowest_energy_delay() {
        // n cores draw n W and do min(n, scaling): n / min(n, scaling)² is least at the scaling.
        assert_eq!(choose(&[3.0, 5.0]), [[(2, 5), (1, 3)]]);
    }

    #[test]
    fn leftover_cores_go_to_the_best_scaling() {
        // 5/5² is less than 6/5.4²: five cores. A sixth makes it faster, a seventh does not.
        assert_eq!(choose(&[5.4]), [[(1, 6)]]);
    }

    #[test]
    fn program_without_room_gets_another_slot() {
        // On one core each: eight fit, the ninth does not.
        let slots = choose(&[1.0; 9]);
        assert_eq!(slots.iter().map(Vec::len).collect::<Vec<_>>(), [8, 1]);
        assert_eq!(slots[1], [(id(8).0, 1)]);
    }

    /// By hand, with a serial half: speeds on 1, 2 and 8 cores are 1, 4/3 and 16/9. Charged n of 8
    /// cores' 16 W, and n W, energy-delay is 3n/speed²: 3, 3.4, 7.6, least on one. By the machine's
    /// 16 + n W it would be 17, 10.1, 7.6.
    #[test]
    fn idle_power_is_charged_by_cores() {
        let serial = amdahl(&[0.5, 0.5, 0.5]);
        assert_eq!(serial, [[(1, 6), (2, 1), (3, 1)]]);
    }
}
