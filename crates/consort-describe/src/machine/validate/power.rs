//! Limits of power and energy.

use super::Range;
use crate::describe::Within;
use crate::machine::{CorePower, InstructionEnergy};

/// Watts of a core or a package.
pub(super) const STATIC_W: Range = (0.0, 2000.0);
/// Energy of one event, nJ: the Pentium 4, the worst there was, took about 50 nJ per instruction.
pub(super) const EVENT_NJ: Range = (0.0, 1000.0);
const SHARE: Range = (0.0, 1.0);

pub(super) fn check_core(power: &CorePower, mut at: Within<'_>) {
    at.range("static_w", power.static_w, STATIC_W);
    at.range("idle_fraction", power.idle_fraction, SHARE);
    at.range("l1_nj", power.l1_nj, EVENT_NJ);
    at.range("l2_nj", power.l2_nj, EVENT_NJ);
    instructions(&power.instruction_nj, at.at("instruction_nj"));
}

fn instructions(energy: &InstructionEnergy, mut at: Within<'_>) {
    at.range("int", energy.int, EVENT_NJ);
    at.range("fp", energy.fp, EVENT_NJ);
    at.range("vector", energy.vector, EVENT_NJ);
    at.range("load", energy.load, EVENT_NJ);
    at.range("store", energy.store, EVENT_NJ);
    at.range("branch", energy.branch, EVENT_NJ);
}
