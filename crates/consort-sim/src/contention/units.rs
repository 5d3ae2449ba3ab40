//! Use of a core's functional units by a mix of instructions.

use crate::machine::{CoreSpec, UnitSpec};
use crate::program::MixSpec;

/// Classes of units.
pub(crate) const CLASSES: usize = 5;

/// Ports that operations of one class of a thread wait for.
#[derive(Clone, Debug)]
pub(crate) struct UnitQueue {
    /// The class.
    pub(crate) class: usize,
    /// Position of the thread among those of its core.
    pub(crate) thread: usize,
    /// Number of ports.
    pub(crate) ports: f64,
    /// Port cycles per instruction of each of the core's threads; 0 of those that have others.
    pub(crate) used: Vec<f64>,
}

/// A thread's use of one class of units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnitClassUse {
    /// Operations per instruction.
    pub(crate) operations: f64,
    /// Cycles from operands to result.
    pub(crate) latency: f64,
}

/// Index of the floating-point units among the classes.
pub(crate) const FP: usize = 1;

/// The use of units by a mix on a core, in the order int, fp, load/store, branch, vector.
pub(crate) fn unit_use(core: &CoreSpec, mix: &MixSpec) -> [UnitClassUse; CLASSES] {
    let u = &core.units;
    let int = mix.int + if u.branch.is_none() { mix.branch } else { 0.0 };
    let fp = mix.fp + if u.vector.is_none() { mix.vector } else { 0.0 };
    let of = |operations: f64, spec: &UnitSpec| UnitClassUse {
        operations,
        latency: spec.latency_cycles,
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
