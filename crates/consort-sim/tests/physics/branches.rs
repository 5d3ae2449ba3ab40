//! Predictors and wrong paths: what a co-runner's branches cost.

use super::build::{compute, machine_with, phase, slowdown, solve};
use consort_sim::machine::Scope;
use consort_sim::program::PhaseSpec;

/// Branches that a predictor of so much storage predicts so well, per kilo-instruction.
fn branches(mpki: f64, exponent: f64) -> PhaseSpec {
    phase(|p| {
        p.branch.mpki = mpki;
        p.branch.capacity_exponent = exponent;
    })
}

#[test]
fn mispredictions_that_no_storage_would_save_take_none_from_others() {
    let machine = machine_with(|core| core.branch_predictor.per = Scope::Core);
    let fits = branches(5.0, 0.4);
    let beside = |other: &PhaseSpec| solve(&machine, &[(0, &fits), (1, other)]).threads[0].flow;
    let alone = solve(&machine, &[(0, &fits)]).threads[0].flow.branch_misses;
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    assert!(near(beside(&branches(0.0, 0.4)).branch_misses, alone));
    assert!(near(beside(&branches(30.0, 0.0)).branch_misses, alone));
    assert!(beside(&branches(30.0, 0.4)).branch_misses > 1.3 * alone);
}

#[test]
fn a_wrong_path_takes_slots_until_the_window_is_full() {
    let waits = |cycles: f64| {
        phase(|p| {
            p.branch.mpki = 15.0;
            p.branch.resolution_cycles = Some(cycles);
        })
    };
    let small = machine_with(|core| core.rob_entries = Some(32));
    let lost = |cycles| slowdown(&small, &compute(), &waits(cycles));
    // The longer the wait, the more slots are free behind a window full of a wrong path.
    assert!(
        lost(200.0) + 0.05 < lost(50.0),
        "{} {}",
        lost(200.0),
        lost(50.0)
    );
}
