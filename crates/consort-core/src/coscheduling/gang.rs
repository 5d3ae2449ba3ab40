//! The gang: each program has all cores in turn.

use super::measure::Measure;
use super::slot::{Chooser, Slot, Step, Trial};
use crate::ids::ProgramId;

/// Every program on its own.
#[doc(alias = "gang scheduling")]
#[derive(Clone, Debug, Default)]
pub struct Gang {
    slots: Vec<Slot>,
}

impl Chooser for Gang {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, Measure)]) {
        let slot = |(program, _): &(ProgramId, Measure)| Slot::alone(*program, cores);
        self.slots = alone.iter().map(slot).collect();
    }

    fn next(&mut self, _: Option<&Trial>) -> Step {
        Step::Done(self.slots.clone())
    }
}
