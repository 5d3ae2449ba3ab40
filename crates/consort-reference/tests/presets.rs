//! Every machine that comes along can be run on, alone and with siblings.

use consort_core::PuId;
use consort_ops::{Access, Op, OpKind, Register};
use consort_reference::{Reference, RunLength, TracePlacement};
use consort_sim::chip::Chip;
use consort_sim::machine::presets;

/// One operation of every kind, with memory for those that touch it.
fn every_kind() -> Vec<Op> {
    let op = |(kind, address): (OpKind, u64)| {
        let mut op = Op::new(kind, address);
        let register = if kind.is_vector_side() {
            Register::vector(1)
        } else {
            Register::general(1)
        };
        op.targets[0] = Some(register);
        if matches!(kind, OpKind::Load | OpKind::Store) {
            op.data = Some(Access {
                address: 0x10_0000,
                bytes: 8,
                is_vector: address % 8 == 0,
            });
        }
        op
    };
    let addresses = (0x1000..).step_by(4);
    OpKind::ALL.into_iter().zip(addresses).map(op).collect()
}

#[test]
fn every_preset_executes_every_kind_of_operation_on_all_pus_of_a_core() {
    let program = every_kind();
    let length = RunLength {
        warm_up: 500,
        measured: 500,
    };
    for name in presets::names() {
        let chip = Chip::new(&presets::find(name).unwrap(), None).unwrap();
        let first = chip.places()[0].core;
        let pus = (0..chip.places().len()).filter(|&pu| chip.places()[pu].core == first);
        let placements: Vec<_> = pus
            .map(|pu| TracePlacement {
                pu: PuId(pu as u32),
                space: pu as u32,
                program: &program,
            })
            .collect();
        let outcome = Reference::new(&chip, &placements, 1).unwrap().run(length);
        let threads = outcome
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .threads;
        assert!(threads.iter().all(|thread| thread.ipc() > 0.01), "{name}");
    }
}
