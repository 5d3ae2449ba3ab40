//! Dividers: one division at a time each.

use super::build::{alone, compute, machine_with, phase, slowdown, solve};
use consort_sim::machine::MachineSpec;
use consort_sim::machine::detail::{WorkKind, WorkSpec};
use consort_sim::program::{DivisionSpec, PhaseSpec};

/// A core whose two floating-point units divide for so many cycles each.
fn dividing_for(interval_cycles: u32) -> MachineSpec {
    machine_with(|core| {
        let time = WorkSpec {
            latency_cycles: 14,
            interval_cycles,
        };
        core.operations.insert(WorkKind::FpDivide, time);
    })
}

/// Four divisions in a row among a hundred instructions.
fn divides() -> PhaseSpec {
    phase(|p| {
        p.ilp.fp_divisions = Some(DivisionSpec {
            operations: 0.04,
            slow: 0.0,
            lengthening: [0.0, 0.1, 0.5, 1.5],
        });
    })
}

#[test]
fn divisions_wait_for_dividers_that_are_not_pipelined() {
    let speed = |cycles| alone(&dividing_for(cycles), &divides());
    let plain = alone(&dividing_for(16), &compute());
    assert_eq!(speed(1), plain);
    // Two units of 4 cycles are one of 2, for which nothing waits.
    assert_eq!(speed(4), plain);
    assert!(speed(16) < plain);
    assert!(speed(32) < speed(16));
}

#[test]
fn who_divides_slows_who_divides() {
    let machine = dividing_for(16);
    let beside = |victim: &PhaseSpec, other: &PhaseSpec| slowdown(&machine, victim, other);
    let units = |other: &PhaseSpec| {
        let pair = solve(&machine, &[(0, &divides()), (1, other)]);
        pair.threads[0].stack.units
    };
    assert!(units(&divides()) > 1.2 * units(&compute()));
    assert!(beside(&compute(), &divides()) <= beside(&compute(), &compute()));
}
