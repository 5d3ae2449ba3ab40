//! Limits of functional units.

use super::Range;
use crate::describe::Within;
use crate::machine::{UnitSpec, UnitsSpec};

const COUNT: Range = (1.0, 64.0);
const LATENCY_CYCLES: Range = (1.0, 200.0);
const INTERVAL_CYCLES: Range = (0.25, 200.0);

pub(super) fn check(units: &UnitsSpec, mut at: Within<'_>) {
    let classes = [
        ("int", Some(&units.int)),
        ("fp", Some(&units.fp)),
        ("load_store", Some(&units.load_store)),
        ("branch", units.branch.as_ref()),
        ("vector", units.vector.as_ref()),
    ];
    for (name, unit) in classes {
        if let Some(unit) = unit {
            check_unit(unit, at.at(name));
        }
    }
}

fn check_unit(unit: &UnitSpec, mut at: Within<'_>) {
    at.range("count", unit.count, COUNT);
    at.range("latency_cycles", unit.latency_cycles, LATENCY_CYCLES);
    at.range("interval_cycles", unit.interval_cycles, INTERVAL_CYCLES);
}
