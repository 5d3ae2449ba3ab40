//! A workload whose programs can be in slots.

use super::frames::cut_into_frames;
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, ProgramTeam};
use consort_sim::chip::Chip;
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

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

    /// Name of a program; none where there is no such number.
    pub fn name(&self, id: ProgramId) -> Option<&str> {
        Some(&self.program(id)?.name)
    }

    /// The number of the program of a name.
    pub fn find(&self, name: &str) -> Option<ProgramId> {
        self.ids().find(|id| self.name(*id) == Some(name))
    }

    /// A program; none where there is no such number.
    pub(super) fn program(&self, id: ProgramId) -> Option<&ProgramInstance> {
        self.programs.get(id.0 as usize)
    }

    /// The programs of a slot with their threads; those that are not there are left out.
    pub(super) fn members(&self, slot: &CoscheduleSlot) -> Vec<&ProgramInstance> {
        let teams = slot.teams.iter();
        teams
            .filter_map(|team| self.program(team.program))
            .collect()
    }

    /// Every program alone on every number of cores, all of them first.
    pub fn alone_slots(&self) -> Vec<CoscheduleSlot> {
        let of = |id| {
            (1..=self.cores())
                .rev()
                .map(move |n| CoscheduleSlot::alone(id, n))
        };
        self.ids().flat_map(of).collect()
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
