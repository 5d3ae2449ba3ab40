//! What an instruction of a thread needs of its core, on average: slots, turns of fetch, ports.

use super::core_model::{CoreModel, PerWork, WORKS};
use crate::machine::tables::FrontTables;
use crate::program::PhaseSpec;

/// Bytes of code that a line of decoded operations covers.
const DECODED_BYTES: f64 = 32.0;

/// What an instruction needs, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    /// Operations, each of which takes a dispatch slot.
    pub(crate) operations: f64,
    /// Cycles of dispatch, were nothing else in the way: one over the instructions of a group.
    pub(crate) dispatch_turns: f64,
    /// Cycles of fetch.
    pub(crate) fetch_turns: f64,
    /// Cycles without fetch behind taken branches, which co-runners can use.
    pub(crate) bubbles: f64,
    /// Port cycles by work.
    pub(crate) works: PerWork,
}

impl Needs {
    /// Of a phase on a core that dispatches `width` of a thread's operations per cycle.
    pub(crate) fn new(model: &CoreModel, phase: &PhaseSpec, width: f64) -> Self {
        Self {
            operations: phase.operations(),
            dispatch_turns: dispatch_turns(model, phase, width),
            fetch_turns: fetch_turns(&model.tables.front, phase),
            bubbles: phase.taken_direct() * model.bubble,
            works: works(model, phase),
        }
    }
}

/// Operations by work, each with the cycles that it takes a port.
fn works(model: &CoreModel, phase: &PhaseSpec) -> PerWork {
    let (mix, vector) = (&phase.mix, phase.vector_accesses());
    let [.., named_load, named_store] = model.named;
    let vector_stores = if named_store { mix.store * vector } else { 0.0 };
    let vector_loads = if named_load { mix.load * vector } else { 0.0 };
    let shares = [
        mix.int,
        mix.fp,
        mix.vector,
        mix.load,
        mix.store,
        mix.branch,
        mix.store - vector_stores,
        vector_loads,
        vector_stores,
    ];
    let operations = phase.operations();
    core::array::from_fn(|at: usize| {
        const { assert!(WORKS.len() == 9) };
        shares[at] * operations * model.intervals[at]
    })
}

/// Cycles of dispatch per instruction. A group takes so many branches, and other operations in
/// what is left of its slots.
fn dispatch_turns(model: &CoreModel, phase: &PhaseSpec, width: f64) -> f64 {
    let operations = phase.operations();
    let Some(group) = model.tables.group else {
        return operations / width;
    };
    let slots = f64::from(group.slots);
    let width = width.min(slots);
    let branches = (f64::from(group.branches) * width / slots).floor().max(1.0);
    let plain = (width - branches).max(1.0);
    let of_branches = phase.mix.branch * operations / branches;
    let of_others = (1.0 - phase.mix.branch) * operations / plain;
    of_branches.max(of_others).max(operations / width)
}

/// Cycles of fetch per instruction.
///
/// A cycle brings at most so many operations from one aligned block of code and ends at a taken
/// branch. From one taken branch to the next, code of B bytes lies in `1 + (B − 1)/block` blocks on
/// average, and a block with more operations than a cycle brings takes more cycles.
fn fetch_turns(front: &FrontTables, phase: &PhaseSpec) -> f64 {
    let (block, width) = match front.op_cache {
        Some(cache) => (DECODED_BYTES, f64::from(cache.width)),
        None => (f64::from(front.fetch_bytes), f64::from(front.fetch_width)),
    };
    let taken = phase.taken().max(1e-3);
    let bytes = phase.code_bytes() / taken;
    let blocks = 1.0 + (bytes - 1.0).max(0.0) / block;
    let fill = phase.operations() / taken / blocks / width;
    taken * blocks * whole_cycles(fill)
}

/// Mean number of whole cycles for work of `fill` cycles that varies about as much as its mean.
fn whole_cycles(fill: f64) -> f64 {
    (fill + 0.5).max(1.0)
}
