//! Limits of power and energy.

use super::ValueRange;
use crate::describe::KeyScope;
use crate::machine::{CorePower, InstructionEnergy};

/// Watts of a core or a package.
pub(super) const STATIC_W: ValueRange = (0.0, 2000.0);
/// Energy of one event, nJ: the Pentium 4, the worst there was, took about 50 nJ per instruction.
pub(super) const EVENT_NJ: ValueRange = (0.0, 1000.0);
const SHARE: ValueRange = (0.0, 1.0);

pub(super) fn check_core(power: &CorePower, mut at: KeyScope<'_>) {
    at.check_range("static_w", power.static_w, STATIC_W);
    at.check_range("idle_fraction", power.idle_fraction, SHARE);
    at.check_range("l1_nj", power.l1_nj, EVENT_NJ);
    at.check_range("l2_nj", power.l2_nj, EVENT_NJ);
    check_instructions(&power.instruction_nj, at.child("instruction_nj"));
}

fn check_instructions(energy: &InstructionEnergy, mut at: KeyScope<'_>) {
    at.check_range("int", energy.int, EVENT_NJ);
    at.check_range("fp", energy.fp, EVENT_NJ);
    at.check_range("vector", energy.vector, EVENT_NJ);
    at.check_range("load", energy.load, EVENT_NJ);
    at.check_range("store", energy.store, EVENT_NJ);
    at.check_range("branch", energy.branch, EVENT_NJ);
}
