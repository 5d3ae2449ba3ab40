//! What an instruction of a thread needs of its core, on average: slots, turns of fetch, ports.

use super::core_model::{CoreModel, PerWork};
use crate::machine::tables::FrontTables;
use crate::program::PhaseSpec;

/// Bytes of code that a line of decoded operations covers.
const DECODED_BYTES: f64 = 32.0;

/// What an instruction needs, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    /// Operations, each of which takes a dispatch slot.
    pub(crate) operations: f64,
    /// Operations that a thread dispatches at most in a cycle.
    pub(crate) width: u32,
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
            width: width as u32,
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
    core::array::from_fn(|at: usize| shares[at] * operations * model.intervals[at])
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
/// average, of which the first and the last are used in part.
fn fetch_turns(front: &FrontTables, phase: &PhaseSpec) -> f64 {
    let (block, width) = match front.op_cache {
        Some(cache) => (DECODED_BYTES, f64::from(cache.width)),
        None => (f64::from(front.fetch_bytes), f64::from(front.fetch_width)),
    };
    let taken = phase.taken().max(RAREST);
    let bytes = phase.code_bytes() / taken;
    let blocks = 1.0 + (bytes - 1.0).max(0.0) / block;
    let fill = phase.operations() * block / phase.code_bytes() / width;
    let (whole, parts) = ((blocks - 2.0).max(0.0), blocks.min(2.0));
    taken * (whole * whole_block(fill) + parts * part_of_block(fill))
}

/// Taken branches per instruction, at least: where there are none, runs are long.
const RAREST: f64 = 1e-4;

/// Mean cycles for a block of `fill` cycles' worth of operations: one if it fits; beyond that, half
/// a cycle is lost on average, as operations per block vary.
fn whole_block(fill: f64) -> f64 {
    if fill < 1.5 {
        1.0 + 2.0 * (fill - 1.0).max(0.0)
    } else {
        fill + 0.5
    }
}

/// The same for a part of a block, of which any size is equally likely.
fn part_of_block(fill: f64) -> f64 {
    let beyond = (fill - 1.0).max(0.0);
    1.0 + beyond * beyond / fill.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::presets;
    use crate::program::ProgramSpec;

    fn phase(change: impl FnOnce(&mut PhaseSpec)) -> PhaseSpec {
        let program = include_str!("../../tests/small/program.toml");
        let mut program: ProgramSpec = toml::from_str(program).unwrap();
        change(&mut program.phases[0]);
        program.phases.swap_remove(0)
    }

    fn needs(machine: &str, phase: &PhaseSpec) -> Needs {
        let spec = presets::find(machine).unwrap();
        let core = spec.core_types.values().next().unwrap();
        Needs::new(&CoreModel::both(core)[1], phase, core.dispatch_width)
    }

    #[test]
    fn straight_code_is_fetched_block_by_block() {
        // Blocks of 32 bytes, eight instructions per cycle.
        let straight = phase(|p| {
            p.code.taken = Some(0.0);
            p.code.bytes = Some(4.0);
        });
        let turns = needs("power8", &straight).fetch_turns;
        assert!((turns - 1.0 / 8.0).abs() < 1e-3, "{turns}");
    }

    #[test]
    fn every_taken_branch_ends_a_turn() {
        let with = |taken: f64| {
            let phase = phase(|p| p.code.taken = Some(taken));
            needs("power8", &phase).fetch_turns
        };
        // Ten instructions of four bytes in a row lie in 2.2 blocks.
        assert!((with(0.1) - 0.1 * (1.0 + 39.0 / 32.0)).abs() < 1e-9);
        assert!(with(0.2) > with(0.1) && with(1.0) >= 1.0);
    }

    #[test]
    fn groups_end_with_their_branches() {
        // Six slots, two of them for branches alone.
        let plain = needs("power7", &phase(|p| p.mix.branch = 0.0)).dispatch_turns;
        assert_eq!(plain, 1.0 / 4.0);
        let third = needs("power7", &phase(|p| p.mix.branch = 1.0 / 3.0)).dispatch_turns;
        assert!((third - 1.0 / 6.0).abs() < 1e-12, "{third}");
    }
}
