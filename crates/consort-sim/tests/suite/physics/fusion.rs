//! Pairs of operations that front ends handle as one, in loops whose time can be worked out by
//! hand. The reference has the same loops in its tests.

use super::build::{alone, machine_with, phase};
use consort_sim::machine::detail::FusionPair;
use consort_sim::machine::{MachineSpec, presets};
use consort_sim::program::{ChainSpec, MixSpec, PairsSpec, PhaseSpec, StretchSpec};

const INTEL: [&str; 3] = ["xeon-silver-4110", "core-i7-6700", "xeon-5120"];

/// A loop of so many instructions: integer operations, loads, branches of which one is taken.
fn counted_loop(instructions: f64, [int, load, branch]: [f64; 3], pairs: PairsSpec) -> PhaseSpec {
    let operations = int + load + branch;
    let mix = |all: f64, int: f64| MixSpec {
        int: int / all,
        load: load / all,
        branch: branch / all,
        ..MixSpec::NONE
    };
    phase(|p| {
        // An instruction that loads and computes counts as a load.
        p.mix = mix(instructions, instructions - load - branch);
        p.code.operations = Some(operations / instructions);
        p.code.taken = Some(1.0 / instructions);
        p.code.pairs = pairs;
        p.stretches = Some(vec![StretchSpec {
            share: 1.0,
            operations: operations / instructions,
            taken: 1.0 / instructions,
            mix: mix(operations, int),
            multiply: 0.0,
            moves: 0.0,
        }]);
        (p.ilp.a, p.ilp.b) = (64.0, 0.0);
        p.ilp.waiting = Some(0.0);
        p.ilp.chain = Some(ChainSpec {
            plain: 1.0,
            ..ChainSpec::default()
        });
    })
}

/// Four rounds of two additions of operands in memory and two of registers, and the loop.
fn load_additions() -> PhaseSpec {
    let pairs = PairsSpec {
        operand: 8.0 / 18.0,
        increment: 1.0 / 18.0,
        ..PairsSpec::default()
    };
    counted_loop(18.0, [17.0, 8.0, 1.0], pairs)
}

/// Eight rounds of two comparisons with branches that are never taken, two additions, and the loop.
fn fused_branches() -> PhaseSpec {
    let pairs = PairsSpec {
        compare: 8.0 / 50.0,
        test: 8.0 / 50.0,
        increment: 1.0 / 50.0,
        ..PairsSpec::default()
    };
    counted_loop(50.0, [33.0, 0.0, 17.0], pairs)
}

#[track_caller]
fn about(value: f64, expected: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off < 0.05, "{value}, expected about {expected}");
}

fn cycles(machine: &MachineSpec, phase: &PhaseSpec, instructions: f64) -> f64 {
    instructions / alone(machine, phase)
}

#[test]
fn loads_and_their_additions_take_one_slot() {
    for name in INTEL {
        let machine = presets::find(name).unwrap();
        about(cycles(&machine, &load_additions(), 18.0) / 4.0, 17.0 / 16.0);
    }
}

#[test]
fn comparisons_and_their_branches_take_one_slot_and_port() {
    for name in INTEL {
        let machine = presets::find(name).unwrap();
        about(cycles(&machine, &fused_branches(), 50.0) / 8.0, 17.0 / 16.0);
    }
}

/// A machine that fuses so many kinds of pairs.
fn fusing(pairs: usize) -> MachineSpec {
    machine_with(|core| {
        core.front_end.get_or_insert_default().fusion = FusionPair::ALL[..pairs].to_vec();
    })
}

#[test]
fn more_fusion_never_slows_a_thread() {
    for phase in [load_additions(), fused_branches()] {
        let speeds: Vec<f64> = (0..=FusionPair::ALL.len())
            .map(|pairs| alone(&fusing(pairs), &phase))
            .collect();
        assert!(speeds.is_sorted(), "{speeds:?}");
        assert!(speeds.last() > speeds.first());
    }
}

#[test]
fn program_without_pairs_is_not_fused() {
    let mut phase = load_additions();
    phase.code.pairs = PairsSpec::default();
    let all = FusionPair::ALL.len();
    assert_eq!(alone(&fusing(all), &phase), alone(&fusing(0), &phase));
}
