//! The longest chain of operations: by the latencies of the core, and by its window.

use super::build::{alone, machine_with, phase};
use super::random;
use consort_sim::machine::MachineSpec;
use consort_sim::program::{ChainSpec, ILP_WINDOWS, PhaseSpec};
use proptest::prelude::*;

/// A core whose window and dispatch are no limit.
fn latencies(load: f64, fp: f64) -> MachineSpec {
    machine_with(|core| {
        core.l1d.latency_cycles = load;
        core.units.fp.latency_cycles = fp;
    })
}

/// Two chains next to each other, a load in four instructions and an addition of floating point.
fn two_chains() -> PhaseSpec {
    let chains = [(0.25, 0.0), (0.0, 0.25)].map(|(load, fp)| {
        ILP_WINDOWS.map(|_| ChainSpec {
            load,
            fp,
            ..ChainSpec::default()
        })
    });
    phase(|p| {
        p.ilp.chains = Some(chains.to_vec());
        p.ilp.unevenness = Some(0.0);
    })
}

#[test]
fn chain_that_takes_longest_on_core_counts() {
    let cpi = |load, fp| 1.0 / alone(&latencies(load, fp), &two_chains());
    assert!((cpi(4.0, 4.0) - 1.0).abs() < 1e-9, "{}", cpi(4.0, 4.0));
    assert!((cpi(5.0, 4.0) - 1.25).abs() < 1e-9, "{}", cpi(5.0, 4.0));
    assert!((cpi(3.0, 6.0) - 1.5).abs() < 1e-9, "{}", cpi(3.0, 6.0));
}

#[test]
fn smaller_window_gives_no_shorter_chain() {
    // What is longest in a large window is there in a small one too, whatever the profile lost.
    let mut spec = two_chains();
    for set in spec.ilp.chains.iter_mut().flatten() {
        set[0].load = 0.0;
        set[0].fp = 0.0;
    }
    let small = machine_with(|core| core.rob_entries = Some(16));
    let large = machine_with(|core| core.rob_entries = Some(256));
    let [small, large] = [small, large].map(|machine| alone(&machine, &spec));
    assert!(small <= large * (1.0 + 1e-12), "{small} {large}");
}

proptest! {
    #[test]
    fn longer_latency_or_smaller_window_never_speeds_up(
        phase in random::phases(),
        chains in random::chains(),
        load in 2.0f64..6.0,
        window in 16u32..400,
    ) {
        let mut phase = phase;
        phase.ilp.chains = Some(chains);
        // Beyond a slower L1, hits in the L2 would cost less.
        phase.data_mpki.fill(0.0);
        // Longer chains hide groups of divisions, and random ones may have hidden more than they have.
        (phase.ilp.int_divisions, phase.ilp.fp_divisions) = (None, None);
        let ipc = |load: f64, window: u32| {
            let machine = machine_with(|core| {
                core.l1d.latency_cycles = load;
                core.rob_entries = Some(window);
            });
            alone(&machine, &phase)
        };
        let here = ipc(load, window);
        prop_assert!(ipc(load + 1.0, window) <= here * (1.0 + 1e-9));
        prop_assert!(ipc(load, window + 64) >= here * (1.0 - 1e-9));
    }
}
