//! A state that has not settled, brought within every capacity.
//!
//! The parts of such a state are of different iterations, so together they may claim more than a
//! core or a memory has. Whoever takes part in an overload is slowed down by it; that lightens
//! every other load as well, so one pass is enough.

use super::types::{Running, Solution, ThreadRates};
use super::units::unit_use;
use crate::chip::Chip;

/// Slows down threads that claim more than there is.
pub(super) fn restrain(chip: &Chip, running: &[Running<'_>], solution: &mut Solution) {
    let cores = core_loads(chip, running, &solution.threads);
    let nodes = node_loads(chip, running, &solution.threads);
    for (running, rates) in running.iter().zip(&mut solution.threads) {
        let core = cores[chip.places()[running.pu].core];
        let load = core.max(nodes[running.demand.home_node]);
        if load > 1.0 {
            slow_down(rates, load);
        }
    }
    for used in &mut solution.memory_utilisation {
        *used = used.min(1.0);
    }
}

fn slow_down(rates: &mut ThreadRates, load: f64) {
    rates.stack.dispatch += rates.cpi * (load - 1.0);
    rates.cpi *= load;
    rates.ips /= load;
}

/// Use of the fullest resource of each core, 1 when it is full: dispatch slots or a class of units.
fn core_loads(chip: &Chip, running: &[Running<'_>], rates: &[ThreadRates]) -> Vec<f64> {
    const DISPATCH: usize = super::dispatch::CLASSES;
    let mut loads = vec![[0.0; DISPATCH + 1]; chip.domains().cores];
    for (running, rates) in running.iter().zip(rates) {
        let place = chip.places()[running.pu];
        let core = chip.core_spec(place);
        let per_cycle = rates.ips / chip.frequency_hz(place);
        let load = &mut loads[place.core];
        load[DISPATCH] += per_cycle / core.dispatch_width;
        let units = unit_use(core, &running.demand.phase.spec.mix);
        for (load, unit) in load.iter_mut().zip(units) {
            let used = per_cycle * unit.operations * unit.interval / unit.count;
            *load = if unit.shared {
                *load + used
            } else {
                load.max(used)
            };
        }
    }
    let fullest = |load: &[f64; DISPATCH + 1]| load.iter().copied().fold(0.0, f64::max);
    loads.iter().map(fullest).collect()
}

/// Use of each node's memory, 1 when it is full.
fn node_loads(chip: &Chip, running: &[Running<'_>], rates: &[ThreadRates]) -> Vec<f64> {
    let memory = &chip.spec().memory;
    let capacity = memory.bandwidth_gb_s * 1e9 * f64::from(memory.controllers_per_node);
    let mut loads = vec![0.0; chip.domains().nodes];
    for (running, rates) in running.iter().zip(rates) {
        let bytes = rates.ips * rates.flow.memory_lines * f64::from(memory.line_bytes);
        loads[running.demand.home_node] += bytes / capacity;
    }
    loads
}
