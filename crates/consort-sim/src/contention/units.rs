//! What a mix of instructions asks of a core's functional units.

use crate::machine::{CoreSpec, Scope, UnitSpec};
use crate::program::MixSpec;

/// Classes of units.
pub(crate) const CLASSES: usize = 5;

/// A thread's use of one class of units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnitUse {
    /// Operations per instruction.
    pub(crate) operations: f64,
    /// The units.
    pub(crate) count: f64,
    /// Cycles until a unit takes the next operation.
    pub(crate) interval: f64,
    /// Cycles from operands to result.
    pub(crate) latency: f64,
    /// Whether co-runners use the same ones.
    pub(crate) shared: bool,
}

/// Index of the floating-point units among the classes.
pub(crate) const FP: usize = 1;

/// The use of units by a mix on a core, in the order int, fp, load/store, branch, vector.
pub(crate) fn unit_use(core: &CoreSpec, mix: &MixSpec) -> [UnitUse; CLASSES] {
    let u = &core.units;
    let int = mix.int + if u.branch.is_none() { mix.branch } else { 0.0 };
    let fp = mix.fp + if u.vector.is_none() { mix.vector } else { 0.0 };
    let of = |operations: f64, spec: &UnitSpec| UnitUse {
        operations,
        count: f64::from(spec.count),
        interval: spec.interval_cycles,
        latency: spec.latency_cycles,
        shared: spec.per == Scope::Core,
    };
    let optional = |operations: f64, spec: Option<&UnitSpec>| match spec {
        Some(spec) => of(operations, spec),
        None => of(0.0, &u.int),
    };
    [
        of(int, &u.int),
        of(fp, &u.fp),
        of(mix.load + mix.store, &u.load_store),
        optional(mix.branch, u.branch.as_ref()),
        optional(mix.vector, u.vector.as_ref()),
    ]
}
