//! Slots of a round, trials of them, and the trait of choosers that ask for these.

use super::measure::ProgramMeasure;
use crate::ids::ProgramId;

/// A program and the cores that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramTeam {
    /// The program.
    pub program: ProgramId,
    /// Its cores, at least one.
    pub cores: u32,
}

/// Programs that run at the same time.
#[doc(alias = "co-schedule")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoscheduleSlot {
    /// Members, each with its number of cores.
    pub teams: Vec<ProgramTeam>,
}

impl CoscheduleSlot {
    /// One program on its own.
    pub fn alone(program: ProgramId, cores: u32) -> Self {
        Self {
            teams: vec![ProgramTeam { program, cores }],
        }
    }

    /// Quanta that it lasts: those of all its programs, merged.
    pub fn quanta(&self) -> u32 {
        self.teams.len() as u32
    }

    /// The cores of a program.
    pub fn cores_of(&self, program: ProgramId) -> Option<u32> {
        let team = self.teams.iter().find(|team| team.program == program);
        team.map(|team| team.cores)
    }

    /// The cores of all.
    pub fn cores(&self) -> u32 {
        self.teams.iter().map(|team| team.cores).sum()
    }
}

/// Outcome of a slot in a quantum.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotTrial {
    /// The slot.
    pub slot: CoscheduleSlot,
    /// Measures of its programs, in the slot's order.
    pub measures: Vec<ProgramMeasure>,
}

impl SlotTrial {
    /// Measure of a program.
    pub fn measure(&self, program: ProgramId) -> Option<&ProgramMeasure> {
        let at = self.slot.teams.iter().position(|t| t.program == program)?;
        self.measures.get(at)
    }

    /// Energy-delay of a program, were the slot to stay.
    pub(super) fn energy_delay(&self, program: ProgramId) -> f64 {
        let measure = self.measure(program);
        measure.map_or(f64::INFINITY, |m| m.energy_delay(self.slot.quanta()))
    }

    /// Instructions of the whole chip.
    pub(super) fn instructions(&self) -> f64 {
        self.measures.iter().map(|m| m.instructions).sum()
    }
}

/// Next wish of a chooser.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooserStep {
    /// This slot is to run for a quantum.
    Try(CoscheduleSlot),
    /// These slots are to run in turn; each program is in exactly one.
    Done(Vec<CoscheduleSlot>),
}

/// Maker of slots.
pub trait Chooser {
    /// Begins anew with what each program did alone on all cores, in any order.
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]);

    /// Returns the next wish, given the outcome of the last trial; of none the first time.
    fn next(&mut self, last: Option<&SlotTrial>) -> ChooserStep;
}
