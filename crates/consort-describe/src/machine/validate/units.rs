//! Limits of functional units.

use super::ValueRange;
use crate::describe::KeyScope;
use crate::machine::{UnitSpec, UnitsSpec};

const COUNT: ValueRange = (1.0, 64.0);
const LATENCY_CYCLES: ValueRange = (1.0, 200.0);
const INTERVAL_CYCLES: ValueRange = (0.25, 200.0);

pub(super) fn check(units: &UnitsSpec, mut at: KeyScope<'_>) {
    let classes = [
        ("int", Some(&units.int)),
        ("fp", Some(&units.fp)),
        ("load_store", Some(&units.load_store)),
        ("branch", units.branch.as_ref()),
        ("vector", units.vector.as_ref()),
    ];
    for (name, unit) in classes {
        if let Some(unit) = unit {
            check_unit(unit, at.child(name));
        }
    }
}

fn check_unit(unit: &UnitSpec, mut at: KeyScope<'_>) {
    at.check_range("count", unit.count, COUNT);
    at.check_range("latency_cycles", unit.latency_cycles, LATENCY_CYCLES);
    at.check_range("interval_cycles", unit.interval_cycles, INTERVAL_CYCLES);
}
