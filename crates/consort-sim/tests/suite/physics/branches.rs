//! Predictors and wrong paths: what a co-runner's branches cost.

use super::build::{alone, compute, machine, machine_with, phase, slowdown, solve};
use consort_sim::machine::detail::PredictorKind;
use consort_sim::machine::{MachineSpec, RobSharing, Scope};
use consort_sim::program::{PhaseSpec, ResolutionSpec};

fn resolution(cycles: f64, absorbed: f64, misses: f64) -> ResolutionSpec {
    ResolutionSpec {
        cycles,
        absorbed,
        absorbed_slow: None,
        misses: Some(misses),
    }
}

/// Branches that a predictor of so much storage predicts so well, per kilo-instruction.
fn branches(mpki: f64, exponent: f64) -> PhaseSpec {
    phase(|p| {
        p.branch.mpki = mpki;
        p.branch.capacity_exponent = exponent;
    })
}

/// Mispredicted branches per kilo-instruction of the first, next to the second on one core.
fn missed_next_to(machine: &MachineSpec, first: &PhaseSpec, second: &PhaseSpec) -> f64 {
    let pair = solve(machine, &[(0, first), (1, second)]);
    assert!(pair.converged, "residual {}", pair.residual);
    1000.0 * pair.threads[0].flow.branch_misses
}

fn missed_alone(machine: &MachineSpec, phase: &PhaseSpec) -> f64 {
    1000.0 * solve(machine, &[(0, phase)]).threads[0].flow.branch_misses
}

fn shared(kind: PredictorKind) -> MachineSpec {
    machine_with(|core| {
        core.branch_predictor.per = Scope::Core;
        core.branch_predictor.kind = Some(kind);
        core.branch_predictor.size_kib = 32.0;
    })
}

#[test]
fn tagged_entries_go_to_whom_mispredicts() {
    let machine = shared(PredictorKind::Tage);
    let fits = branches(5.0, 0.4);
    let next_to = |other: &PhaseSpec| missed_next_to(&machine, &fits, other);
    let alone = missed_alone(&machine, &fits);
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    // Branches that are predicted take nothing, those that nothing could predict do.
    assert!(near(next_to(&branches(0.0, 0.4)), alone));
    assert!(next_to(&branches(30.0, 0.0)) > 1.2 * alone);
    // Who would gain nothing by more entries loses nothing.
    let cannot = branches(5.0, 0.0);
    let alone = missed_alone(&machine, &cannot);
    assert!(near(
        missed_next_to(&machine, &cannot, &branches(30.0, 0.4)),
        alone
    ));
}

#[test]
fn counters_without_tags_go_to_whom_branches() {
    let machine = shared(PredictorKind::Gshare);
    let fits = branches(5.0, 0.4);
    let alone = missed_alone(&machine, &fits);
    let renews = |per_kilo: f64| {
        let mut other = branches(5.0, 0.4);
        other.branch.renewed_pki = Some(per_kilo);
        missed_next_to(&machine, &fits, &other)
    };
    assert!((renews(0.0) / alone - 1.0).abs() < 1e-6);
    assert!(renews(2.0) > 1.05 * alone && renews(8.0) > renews(2.0));
}

/// A curve as older profiles have it, with what a stranger makes of each point: irregular signs in the loop of `adpcm_dec` of TACLeBench, in a model predictor that folds
/// histories to an even width at 4, 16 and 64 KiB.
fn measured(shared: [f64; 5]) -> PhaseSpec {
    let mut phase = branches(0.5, 0.3);
    phase.branch.tagged_mpki = Some([11.7, 3.8, 11.2, 0.45, 11.3]);
    phase.branch.tagged_shared_mpki = Some(shared);
    phase
}

#[test]
fn more_predictor_storage_never_hurts_who_is_measured() {
    let rate = |kib: f64| {
        let mut machine = shared(PredictorKind::Tage);
        { machine.core_types.values_mut() }.for_each(|core| core.branch_predictor.size_kib = kib);
        let phase = measured([12.0, 5.0, 12.0, 1.0, 12.0]);
        (
            alone(&machine, &phase),
            missed_next_to(&machine, &phase, &branches(20.0, 0.1)),
        )
    };
    let sizes = [2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0];
    for pair in sizes.windows(2) {
        let (small, large) = (rate(pair[0]), rate(pair[1]));
        assert!(
            large.0 >= small.0 * (1.0 - 1e-9),
            "{pair:?} {small:?} {large:?}"
        );
        assert!(
            large.1 <= small.1 * (1.0 + 1e-6),
            "{pair:?} {small:?} {large:?}"
        );
    }
}

#[test]
fn protected_entries_are_not_lost() {
    // Half of the predictor would mispredict nine times as often, but strangers take nothing.
    let machine = shared(PredictorKind::Tage);
    let phase = measured([11.7, 3.8, 11.2, 0.45, 11.3]);
    let beside = missed_next_to(&machine, &phase, &branches(20.0, 0.1));
    assert!((beside / 0.45 - 1.0).abs() < 1e-6, "{beside}");
}

#[test]
fn a_wrong_path_takes_slots_until_the_window_is_full() {
    let waits = |cycles: f64| {
        phase(|p| {
            p.branch.mpki = 15.0;
            p.branch.resolution = Some(resolution(cycles, 0.3, 0.0));
        })
    };
    // A wrong path does not fill a window of others.
    let small = machine_with(|core| {
        core.rob_entries = Some(64);
        core.rob_sharing = RobSharing::Partitioned;
    });
    let lost = |cycles| slowdown(&small, &compute(), &waits(cycles));
    // The longer the wait, the more slots are free behind a window full of a wrong path.
    assert!(
        lost(200.0) + 0.05 < lost(50.0),
        "{} {}",
        lost(200.0),
        lost(50.0)
    );
}

#[test]
fn a_branch_waits_for_the_loads_that_miss_on_its_way() {
    let cpi = |misses: f64| {
        let waits = phase(|p| {
            p.branch.mpki = 10.0;
            p.branch.resolution = Some(resolution(5.0, 0.3, misses));
            // All that misses an L1 of 32 KiB is in the L2.
            p.data_mpki[..3].fill(20.0);
        });
        1.0 / alone(&machine(), &waits)
    };
    // An L2 hit takes seven cycles more than one in the L1.
    let more = (cpi(1.0) - cpi(0.0)) / 0.01;
    assert!((more - 7.0).abs() < 1.0, "{more}");
}

#[test]
fn what_is_dispatched_just_before_a_branch_delays_it_beside_others() {
    let lost = |absorbed: f64| {
        let waits = phase(|p| {
            p.branch.mpki = 10.0;
            p.branch.resolution = Some(resolution(20.0, absorbed, 0.0));
        });
        slowdown(&machine(), &waits, &compute())
    };
    assert!(lost(0.0) > lost(0.5) + 0.02 && lost(0.5) > lost(1.0) + 0.02);
}

/// Stall cycles per mispredicted branch, one in a hundred instructions, on a core that dispatches so
/// many operations per cycle. The branch waits for 20 cycles where dispatch is four wide.
fn branch_cycles(width: f64, change: impl FnOnce(&mut PhaseSpec)) -> f64 {
    let machine = machine_with(|core| {
        core.dispatch_width = width;
        core.smt
            .iter_mut()
            .for_each(|mode| mode.thread_dispatch_width = width);
    });
    let waits = phase(|p| {
        p.branch.mpki = 10.0;
        p.branch.capacity_exponent = 0.0;
        p.branch.resolution = Some(resolution(20.0, 0.4, 0.0));
        change(p);
    });
    solve(&machine, &[(0, &waits)]).threads[0].stack.branch / 0.01
}

#[test]
fn a_branch_waits_less_where_dispatch_is_slower() {
    let waits = |width: f64, slow: Option<f64>| {
        branch_cycles(width, |p| {
            let resolution = p.branch.resolution.as_mut().unwrap();
            resolution.absorbed_slow = slow;
            p.code.taken = Some(0.01);
            p.code.bytes = Some(1.0);
        })
    };
    // Twelve stages, less the half of a turn that ends with the branch, and the wait.
    let wide = waits(4.0, None) - (12.0 - 0.625);
    let left = |width: f64, slow: Option<f64>| {
        (waits(width, slow) - (12.0 - 0.5 * (width + 1.0) / width)) / wide
    };
    assert!((left(2.0, None) - 0.6).abs() < 0.03, "{}", left(2.0, None));
    let slow = left(1.0, Some(0.7));
    assert!((slow - 0.3).abs() < 0.03, "{slow}");
    // Where it was not measured, as much of what is left.
    assert!((left(1.0, None) - 0.36).abs() < 0.03, "{}", left(1.0, None));
}

#[test]
fn a_small_table_of_targets_loses_those_of_many_indirect_branches() {
    let with = |targets: u32, per_core: bool| {
        machine_with(|core| {
            let predictor = &mut core.branch_predictor;
            predictor.kind = Some(PredictorKind::Gshare);
            predictor.targets = Some(targets);
            predictor.taken_bubble_cycles = Some(2);
            predictor.per = if per_core { Scope::Core } else { Scope::Pu };
        })
    };
    let indirect = phase(|p| {
        p.branch.mpki = 5.0;
        p.branch.capacity_exponent = 0.0;
        p.branch.target_mpki = Some([9.0, 8.0, 6.0, 3.0, 1.0, 1.0]);
    });
    let misses = |targets: u32| solve(&with(targets, true), &[(0, &indirect)]).threads[0].flow;
    let misses = |targets: u32| 1000.0 * misses(targets).branch_misses;
    assert!((misses(4096) - 5.0).abs() < 1e-9, "{}", misses(4096));
    assert!((misses(128) - 12.0).abs() < 1e-9, "{}", misses(128));
    // Two that share it have half each at least.
    let beside = |per_core| {
        let pair = solve(&with(128, per_core), &[(0, &indirect), (1, &indirect)]);
        1000.0 * pair.threads[0].flow.branch_misses
    };
    assert!((beside(true) - 13.0).abs() < 1e-6, "{}", beside(true));
    assert!((beside(false) - 12.0).abs() < 1e-6, "{}", beside(false));
}
