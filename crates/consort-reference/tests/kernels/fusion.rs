//! Pairs of operations that front ends handle as one, in loops whose time can be worked out by
//! hand. On Intel's cores since Sandy Bridge a load and its addition take one of four slots, and a
//! comparison and its branch one slot and one of two ports for branches (Intel, Optimization
//! Reference Manual, 2.3.2.1 and 2.4.5).

use crate::machine::{about, alone, plain, with, within};
use crate::ops;
use consort_ops::Op;
use consort_sim::machine::detail::{FusionPair, WorkKind, WorkSpec};
use consort_sim::machine::{MachineSpec, presets};

const INTEL: [&str; 3] = ["xeon-silver-4110", "core-i7-6700", "xeon-5120"];

/// The plain machine with these pairs, and with fetch that limits nothing.
fn fusing(pairs: &[FusionPair]) -> MachineSpec {
    with(|core| {
        let front = core.front_end.get_or_insert_default();
        (front.fetch_bytes, front.fetch_width) = (Some(64), Some(8));
        front.fusion = pairs.to_vec();
    })
}

/// Cycles per round of a loop of so many rounds.
fn round_cycles(spec: &MachineSpec, ops: &[Op], rounds: usize) -> f64 {
    let instructions = ops.iter().filter(|op| op.first).count();
    instructions as f64 / rounds as f64 / alone(spec, &ops.to_vec()).ipc()
}

#[test]
fn loads_and_their_additions_take_one_slot() {
    // Four slots per round, and one per four rounds for the loop.
    for machine in INTEL {
        let spec = presets::find(machine).expect("it is a preset");
        about(round_cycles(&spec, &ops::load_additions(4), 4), 17.0 / 16.0);
    }
    let unfused = round_cycles(&fusing(&[]), &ops::load_additions(4), 4);
    about(unfused, 26.0 / 16.0);
    let spec = fusing(&[FusionPair::Operand, FusionPair::Increment]);
    about(round_cycles(&spec, &ops::load_additions(4), 4), 17.0 / 16.0);
}

#[test]
fn stages_of_fetch_take_what_decoded_turns_bring() {
    // Six slots of eight operations per round, and one per four rounds for the loop. Dispatch takes
    // six slots per cycle, and the turns bring 25 in four cycles.
    let spec = presets::find("epyc-7763").expect("it is a preset");
    about(
        round_cycles(&spec, &ops::mixed_additions(4), 4),
        25.0 / 24.0,
    );
}

#[test]
fn comparisons_and_their_branches_take_one_slot_and_port() {
    // Two branches per round and one per eight rounds, on two ports.
    for machine in INTEL {
        let spec = presets::find(machine).expect("it is a preset");
        about(round_cycles(&spec, &ops::fused_branches(8), 8), 17.0 / 16.0);
    }
}

#[test]
fn fused_operations_share_a_window_entry() {
    let ipc = |pairs: &[FusionPair]| {
        let mut spec = fusing(pairs);
        let core = spec.core_types.get_mut("core").expect("it has this core");
        core.rob_entries = Some(16);
        let time = WorkSpec {
            latency_cycles: 20,
            interval_cycles: 1,
        };
        core.operations.insert(WorkKind::FpAdd, time);
        alone(&spec, &ops::slow_additions()).ipc()
    };
    // Sixteen additions in the window instead of eight and the load that has been committed
    // before each.
    within(ipc(&[FusionPair::Operand]) / ipc(&[]), 16.0 / 8.5, 0.1);
}

#[test]
fn pairs_that_no_machine_fuses_change_nothing() {
    let unmarked: Vec<Op> = { ops::fused_branches(8).into_iter() }
        .map(|op| Op {
            fusion: consort_ops::Fusion::None,
            ..op
        })
        .collect();
    let marked = alone(&plain(), &ops::fused_branches(8));
    assert_eq!(marked.cycles, alone(&plain(), &unmarked).cycles);
}

#[test]
fn pairs_have_the_order_of_operations() {
    for (here, known) in consort_ops::FusedPair::ALL.into_iter().zip(FusionPair::ALL) {
        assert_eq!(format!("{here:?}"), format!("{known:?}"));
        assert_eq!(here.index(), known.index());
    }
}
