//! Simulated instructions per second of host time: two threads on one core.

use consort_core::PuId;
use consort_ops::{Access, Op, OpKind, Register};
use consort_reference::{Reference, RunLength, TracePlacement};
use consort_sim::{chip::Chip, machine::presets};
use divan::counter::ItemsCount;

const INSTRUCTIONS: u64 = 100_000;

fn main() {
    divan::main();
}

/// Additions in four chains, with a load and a store in every eight operations.
fn mixed() -> Vec<Op> {
    let op = |i: u64| {
        let kind = match i % 8 {
            3 => OpKind::Load,
            7 => OpKind::Store,
            _ => OpKind::Integer,
        };
        let mut op = Op::new(kind, 0x1000 + 4 * i);
        op.sources[0] = Some(Register::general((i % 4) as u8));
        op.targets[0] = (kind != OpKind::Store).then_some(Register::general((i % 4) as u8));
        op.data = matches!(kind, OpKind::Load | OpKind::Store).then_some(Access {
            address: 0x10_0000 + i * 40 % 65_536,
            bytes: 8,
            is_vector: false,
        });
        op
    };
    (0..4096).map(op).collect()
}

#[divan::bench]
fn two_threads(bencher: divan::Bencher<'_, '_>) {
    let Ok(spec) = presets::find("xeon-silver-4110") else {
        return;
    };
    let Ok(chip) = Chip::new(&spec, None) else {
        return;
    };
    let program = mixed();
    let place = |pu| TracePlacement {
        pu: PuId(pu),
        space: pu,
        program: &program,
    };
    let length = RunLength {
        warm_up: 0,
        measured: INSTRUCTIONS,
    };
    let run = || Reference::new(&chip, &[place(0), place(1)], 1).map(|run| run.run(length));
    let bencher = bencher.counter(ItemsCount::new(2 * INSTRUCTIONS));
    bencher.bench(run);
}
