//! Slots of co-schedules, simulated one by one: what programs do on their cores of a slot.
//!
//! A [`Suite`] is a workload whose programs can be in slots. A [`SlotTrials`] simulates a slot for a
//! quantum, event by event, and gives every program's [`MeanEstimate`](consort_core::coscheduling). A
//! [`SlotEstimator`] estimates the same without events, for searches through all slots; [`best_rounds`] is
//! such a search, whose answer stands on simulated slots alone.
//!
//! Pitfall: programs are cut into frames ([`cut_into_frames`]), so that a quantum shows their mean; a run
//! of the same workload in which serial sections are longer than quanta shows parts of it.

use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, ProgramTeam};
use consort_sim::chip::Chip;
use consort_sim::program::{PhaseSpec, ProgramSpec};
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

mod best;
mod slot_estimator;
mod trials;

pub use best::{BestRound, SearchGoal, SlotMembers, best_rounds};
pub use slot_estimator::{NEAR_LINEAR, SlotEstimator};
pub use trials::{SlotTrials, TrialLengths};

/// Programs, numbered in the order of the workload, and the machine that they share.
#[derive(Clone, Debug)]
pub struct Suite {
    chip: Arc<Chip>,
    programs: Vec<ProgramInstance>,
}

impl Suite {
    /// The programs of a workload, in frames.
    pub fn new(chip: &Arc<Chip>, workload: &Workload) -> Self {
        let cut = |instance: &ProgramInstance| ProgramInstance {
            program: Arc::new(cut_into_frames(&instance.program)),
            ..instance.clone()
        };
        Self {
            chip: Arc::clone(chip),
            programs: workload.entries.iter().map(cut).collect(),
        }
    }

    /// The machine.
    pub fn chip(&self) -> &Arc<Chip> {
        &self.chip
    }

    /// Cores of the machine.
    pub fn cores(&self) -> u32 {
        self.chip.domains().cores as u32
    }

    /// The programs, in frames.
    pub fn programs(&self) -> &[ProgramInstance] {
        &self.programs
    }

    /// Number of every program: its place in the workload.
    pub fn ids(&self) -> impl Iterator<Item = ProgramId> + '_ {
        (0..self.programs.len()).map(|place| ProgramId(place as u32))
    }

    /// Name of a program; `None` if there is no such number.
    pub fn name(&self, id: ProgramId) -> Option<&str> {
        Some(&self.program(id)?.name)
    }

    /// The number of the program of a name.
    pub fn find(&self, name: &str) -> Option<ProgramId> {
        self.ids().find(|id| self.name(*id) == Some(name))
    }

    /// A program; `None` if there is no such number.
    pub(super) fn program(&self, id: ProgramId) -> Option<&ProgramInstance> {
        self.programs.get(id.0 as usize)
    }

    /// The programs of a slot; numbers that name no program are left out.
    pub(super) fn members(&self, slot: &CoscheduleSlot) -> Vec<&ProgramInstance> {
        let teams = slot.teams.iter();
        teams
            .filter_map(|team| self.program(team.program))
            .collect()
    }

    /// Every program alone on every number of cores, all of them first.
    pub fn alone_slots(&self) -> Vec<CoscheduleSlot> {
        let mut slots = Vec::new();
        for id in self.ids() {
            let cores = (1..=self.cores()).rev();
            slots.extend(cores.map(|n| CoscheduleSlot::alone(id, n)));
        }
        slots
    }

    /// Names and cores of a slot for people: `canneal 3 + vips 5`.
    pub fn slot_text(&self, slot: &CoscheduleSlot) -> String {
        let team = |team: &ProgramTeam| {
            let name = self.name(team.program).unwrap_or("?");
            format!("{name} {}", team.cores)
        };
        let teams: Vec<String> = slot.teams.iter().map(team).collect();
        teams.join(" + ")
    }
}

/// Length of a frame, 10⁹ instructions of all threads: about a tenth of a second on eight cores, so that
/// a quantum of 2 s contains ten and more.
const FRAME_GINSTR: f64 = 0.8;

/// Cuts a program into frames that are shorter than a quantum: it passes through all its phases once
/// per frame, in the same proportions, without burstiness.
///
/// A simulated program begins every pass through its phases with its serial section. In a profile of
/// one long phase, that is one serial section of half a minute and more, although the program has a
/// short one in each of hundreds of frames, iterations or queries. A measurement of one quantum must
/// contain both parts.
///
/// Burstiness is left out because its draws last longer than a frame: at the end of each frame all
/// threads would wait for the one with the worst draw, which no profile says. With it, programs that
/// scale nearly linearly lose a tenth of their speed on eight cores.
pub fn cut_into_frames(program: &ProgramSpec) -> ProgramSpec {
    let whole: f64 = program.phases.iter().map(|phase| phase.length_ginstr).sum();
    let factor = (FRAME_GINSTR / whole).min(1.0);
    let cut = |phase: &PhaseSpec| PhaseSpec {
        length_ginstr: phase.length_ginstr * factor,
        ..phase.clone()
    };
    ProgramSpec {
        phases: program.phases.iter().map(cut).collect(),
        burstiness: None,
        ..program.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::alone::measure_alone;
    use super::*;
    use crate::testing::{chip, program};
    use consort_sim::workload::ProgramInstance;
    use std::sync::Arc;

    fn whole(spec: &ProgramSpec) -> f64 {
        spec.phases.iter().map(|phase| phase.length_ginstr).sum()
    }

    #[test]
    fn phases_keep_their_proportions() {
        let before = program("mcf");
        let after = cut_into_frames(&before);
        let factor = whole(&after) / whole(&before);
        assert!(factor < 1.0);
        for (a, b) in before.phases.iter().zip(&after.phases) {
            assert!((a.length_ginstr * factor / b.length_ginstr - 1.0).abs() < 1e-9);
        }
        let again = cut_into_frames(&after);
        assert!((whole(&again) / whole(&after) - 1.0).abs() < 1e-9);
    }

    /// The work takes as long, whether its serial part comes at once or in pieces.
    #[test]
    fn a_program_in_frames_is_as_fast_alone() {
        let speed = |spec: ProgramSpec| {
            let instance = ProgramInstance {
                name: spec.name.clone(),
                program: Arc::new(spec),
                threads: 8,
                start_ms: 0.0,
            };
            let work = measure_alone(&chip("xeon-e5320"), &instance, 2.0, 1).unwrap();
            work.instructions / work.alone_s
        };
        for name in ["bodytrack", "canneal", "x264", "swaptions"] {
            let spec = program(name);
            let ratio = speed(cut_into_frames(&spec)) / speed(ProgramSpec::clone(&spec));
            assert!((ratio - 1.0).abs() < 0.05, "{name} {ratio}");
        }
    }
}
