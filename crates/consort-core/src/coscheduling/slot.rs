//! Slots of a round, their trials, and the trait of choosers.

use crate::coscheduling::measure::ProgramMeasure;
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
    /// Returns a slot of one program.
    pub fn alone(program: ProgramId, cores: u32) -> Self {
        Self {
            teams: vec![ProgramTeam { program, cores }],
        }
    }

    /// Quanta that the slot lasts: one per program.
    pub fn quanta(&self) -> u32 {
        self.teams.len() as u32
    }

    /// Cores of a program.
    pub fn cores_of(&self, program: ProgramId) -> Option<u32> {
        let team = self.teams.iter().find(|team| team.program == program);
        team.map(|team| team.cores)
    }

    /// Cores of all programs together.
    pub fn cores(&self) -> u32 {
        self.teams.iter().map(|team| team.cores).sum()
    }
}

/// Result of running a slot for a quantum.
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

    /// Energy-delay of a program if the slot stays.
    pub(super) fn energy_delay(&self, program: ProgramId) -> f64 {
        let measure = self.measure(program);
        measure.map_or(f64::INFINITY, |m| m.energy_delay(self.slot.quanta()))
    }

    /// Instructions of the whole chip.
    pub(super) fn instructions(&self) -> f64 {
        self.measures.iter().map(|m| m.instructions).sum()
    }
}

/// Next request of a chooser.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooserStep {
    /// Run this slot for a quantum.
    Try(CoscheduleSlot),
    /// Run these slots in turn; each program is in exactly one.
    Done(Vec<CoscheduleSlot>),
}

/// An algorithm that forms slots by trying some.
pub trait Chooser {
    /// Starts again from the measure of each program alone on all cores, in any order.
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]);

    /// Returns the next request, given the result of the last trial; `last` is `None` the first
    /// time.
    fn next(&mut self, last: Option<&SlotTrial>) -> ChooserStep;
}

/// The gang: each program has all cores in turn.
#[doc(alias = "gang scheduling")]
#[derive(Clone, Debug, Default)]
pub struct GangChooser {
    slots: Vec<CoscheduleSlot>,
}

impl Chooser for GangChooser {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]) {
        let slot =
            |(program, _): &(ProgramId, ProgramMeasure)| CoscheduleSlot::alone(*program, cores);
        self.slots = alone.iter().map(slot).collect();
    }

    fn next(&mut self, _: Option<&SlotTrial>) -> ChooserStep {
        ChooserStep::Done(self.slots.clone())
    }
}
