//! Capacities of core types: how fast each is, relative to the fastest.
//!
//! Linux' `cpu_capacity` is in essence a ratio of Dhrystone scores, clock included
//! (Documentation/devicetree/bindings/cpu/cpu-capacity.txt): of what a thread alone on the core
//! does from its first-level caches. The same is computed from a description here: the speeds at
//! which the solver runs small programs alone on a core of each type, taken together by their
//! geometric mean. So an in-order core counts for less than an out-of-order core of the same width
//! and clock. Nothing else of the machine matters, since the programs hardly leave the L1.

use super::Chip;
use crate::contention::{Demand, RunningThread, Solver};
use crate::math::pow;
use crate::phase::Phase;
use crate::program::presets;
use std::sync::{Arc, LazyLock};

/// Micro-programs whose data fits into any L1: arithmetic of both kinds, with and without
/// operands from memory, mispredicted branches, and a chain of loads.
const PROBES: [&str; 6] = [
    "pure-int",
    "matmul-int",
    "branchy",
    "pure-fp",
    "matmul-fp",
    "l1-chaser",
];

/// Capacity of the fastest type.
const FULL: f64 = 1024.0;

/// Each probe's only phase.
static DEMANDS: LazyLock<Vec<Demand>> = LazyLock::new(|| {
    let probes = PROBES.iter().filter_map(|name| presets::find(name).ok());
    probes
        .map(|probe| demand(&Phase::new(&probe.phases[0])))
        .collect()
});

fn demand(phase: &Phase) -> Demand {
    Demand {
        phase: Arc::new(phase.clone()),
        intensity: 1.0,
        program: 0,
        text: 0,
        shared_data: 0.0,
        shared_code: 0.0,
        lock: None,
        home_node: 0,
    }
}

/// The capacity of every core type, in the order of [`Chip::core_types`]; at least 1.
pub(super) fn capacities(chip: &Arc<Chip>) -> Vec<u32> {
    let solver = Solver::new(Arc::clone(chip));
    let types = 0..chip.core_types().len();
    let speeds: Vec<f64> = types.map(|kind| speed(&solver, kind)).collect();
    let best = speeds.iter().copied().fold(0.0, f64::max);
    let capacity = |speed: &f64| (FULL * speed / best).round().max(1.0) as u32;
    speeds.iter().map(capacity).collect()
}

/// Geometric mean of the probes' instructions per second alone on a core of a type; 0 if the chip
/// has no such core.
fn speed(solver: &Solver, core_type: usize) -> f64 {
    let mut places = solver.chip().places().iter();
    let Some(pu) = places.position(|place| place.core_type == core_type) else {
        return 0.0;
    };
    let root = 1.0 / PROBES.len() as f64;
    let ips = |demand| solver.solve(&[RunningThread { pu, demand }]).threads[0].ips;
    DEMANDS
        .iter()
        .map(|demand| pow(ips(demand), root))
        .product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{MachineSpec, presets as machines};

    fn chip(change: impl FnOnce(&mut MachineSpec)) -> Arc<Chip> {
        let mut spec = machines::find("acmp-1+1").unwrap();
        change(&mut spec);
        Arc::new(Chip::new(&spec, None).unwrap())
    }

    /// Capacities of the big and the small core.
    fn of(change: impl FnOnce(&mut MachineSpec)) -> [u32; 2] {
        let kinds = chip(change).topology().core_types().to_vec();
        [kinds[0].capacity, kinds[1].capacity]
    }

    #[test]
    fn probes_have_one_phase_within_32_kib() {
        for name in PROBES {
            let probe = presets::find(name).unwrap();
            assert_eq!(probe.phases.len(), 1, "{name}");
            assert!(probe.phases[0].data_mpki[2] <= 0.1, "{name}");
        }
        assert_eq!(DEMANDS.len(), PROBES.len());
    }

    #[test]
    fn in_order_core_of_same_width_counts_less() {
        let [big, small] = of(|_| ());
        assert_eq!(big, 1024);
        assert!((100..900).contains(&small), "{small}");
    }

    #[test]
    fn equal_cores_differ_by_clock_alone() {
        let like = |spec: &mut MachineSpec| {
            let big = spec.core_types["big"].clone();
            spec.core_types.insert("small".to_owned(), big);
        };
        assert_eq!(of(like), [1024, 1024]);
        let halved = of(|spec| {
            like(spec);
            spec.core_types.get_mut("small").unwrap().frequency_ghz /= 2.0;
        });
        assert_eq!(halved[0], 1024);
        // Only the L1's latencies are in cycles; a few instruction misses go further.
        assert!((505..=530).contains(&halved[1]), "{halved:?}");
    }

    #[test]
    fn slow_memory_leaves_capacities() {
        let slow = of(|spec| spec.memory.latency_ns *= 4.0);
        assert_eq!(slow, of(|_| ()));
    }
}
