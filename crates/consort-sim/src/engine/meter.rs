//! Model of a chip's power, as the engine asks it.

use crate::contention::InstructionActivity;
use crate::program::MixSpec;

/// Power and energy of a chip's parts.
pub trait EnergyMeter {
    /// Energy of one instruction with its accesses on a core, J.
    fn instruction_j(&self, core: usize, mix: &MixSpec, flow: &InstructionActivity) -> f64;

    /// Static power of a core, W: `busy` when any of its PUs runs something.
    fn core_w(&self, core: usize, busy: bool) -> f64;

    /// Power of what is not a core, W.
    fn uncore_w(&self) -> f64;
}
