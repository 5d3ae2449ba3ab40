//! Needs of a thread's average instruction on its core: slots, turns of fetch, ports.

use super::core_model::{CoreModel, PerWork};
use super::fetch;
use crate::program::PhaseSpec;

/// Needs of an average instruction.
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
    /// Share of the turns of fetch behind which they pass, 0 to 1.
    pub(crate) pauses: f64,
    /// Port cycles by work.
    pub(crate) works: PerWork,
}

impl Needs {
    /// Works out a phase's needs on a core that dispatches `width` of its operations per cycle.
    pub(crate) fn new(model: &CoreModel, phase: &PhaseSpec, width: f64) -> Self {
        let fetch_turns = fetch::turns(&model.tables.front, phase);
        let bubbles = phase.taken_direct() * model.bubble;
        let pauses = if bubbles > 0.0 {
            (phase.taken_direct() / fetch_turns).min(1.0)
        } else {
            0.0
        };
        Self {
            operations: phase.operations(),
            width: width as u32,
            dispatch_turns: dispatch_turns(model, phase, width),
            fetch_turns,
            bubbles,
            pauses,
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
    fn groups_end_with_their_branches() {
        // Six slots, two of them for branches alone.
        let plain = needs("power7", &phase(|p| p.mix.branch = 0.0)).dispatch_turns;
        assert_eq!(plain, 1.0 / 4.0);
        let third = needs("power7", &phase(|p| p.mix.branch = 1.0 / 3.0)).dispatch_turns;
        assert!((third - 1.0 / 6.0).abs() < 1e-12, "{third}");
    }
}
