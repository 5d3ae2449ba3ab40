//! A state that has not settled, brought within every capacity.
//!
//! The parts of such a state are of different iterations, so together they may claim more than a
//! core or a memory has. Whoever takes part in an overload is slowed down by it; that lightens
//! every other load as well, so one pass is enough.

use super::claims::RESOURCES;
use super::layout::SharedStructures;
use super::twins::RepresentativeThreads;
use super::types::{Solution, ThreadRates};
use crate::chip::Chip;

/// Slows down threads that claim more than there is.
pub(super) fn restrain(chip: &Chip, sharing: &SharedStructures<'_>, solution: &mut Solution) {
    let cores = core_loads(sharing, &solution.threads);
    let nodes = node_loads(chip, &sharing.twins, &solution.threads);
    let threads = sharing.twins.running.iter().zip(&mut solution.threads);
    for ((running, rates), core) in threads.zip(cores) {
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

/// Use of the fullest resource of each thread's core, 1 when it is full.
pub(super) fn core_loads(sharing: &SharedStructures<'_>, rates: &[ThreadRates]) -> Vec<f64> {
    let mut loads = vec![0.0; rates.len()];
    for (members, supply) in sharing.cores.iter().zip(&sharing.supplies) {
        let mut used = [0.0; RESOURCES];
        for &i in members {
            let setting = &sharing.settings[i];
            let per_cycle = rates[i].ips / setting.hz;
            for (used, each) in used.iter_mut().zip(setting.use_of) {
                *used += per_cycle * each;
            }
        }
        let shares = used
            .iter()
            .zip(supply.resources)
            .map(|(used, of)| used / of);
        let fullest = shares.fold(0.0, f64::max);
        for &i in members {
            loads[i] = fullest;
        }
    }
    loads
}

/// Use of each node's memory, 1 when it is full.
fn node_loads(chip: &Chip, twins: &RepresentativeThreads<'_>, rates: &[ThreadRates]) -> Vec<f64> {
    let memory = &chip.spec().memory;
    let capacity = memory.bandwidth_gb_s * 1e9 * f64::from(memory.controllers_per_node);
    let mut loads = vec![0.0; chip.domains().nodes];
    let each = twins.running.iter().zip(&twins.times).zip(rates);
    for ((running, times), rates) in each {
        let bytes = times * rates.ips * rates.flow.memory_lines * f64::from(memory.line_bytes);
        loads[running.demand.home_node] += bytes / capacity;
    }
    loads
}
