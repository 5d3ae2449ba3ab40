//! The gang: each program has all cores in turn.

use super::measure::ProgramMeasure;
use super::slot::{Chooser, ChooserStep, CoscheduleSlot, SlotTrial};
use crate::ids::ProgramId;

/// Every program on its own.
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
