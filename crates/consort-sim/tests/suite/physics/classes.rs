//! Latencies and throughputs of operations that cores distinguish, as instruction tables have them.
//! The reference has the same figures in its tests.

use super::build::{alone, phase};
use consort_sim::machine::{MachineSpec, presets};
use consort_sim::program::{ChainSpec, KindsSpec, MixSpec, PhaseSpec};

/// Instructions of one kind: a chain of them, or many that do not depend on each other.
fn instructions(mix: MixSpec, kinds: KindsSpec, chain: Option<ChainSpec>) -> PhaseSpec {
    phase(|p| {
        p.mix = mix;
        p.code.taken = Some(0.01);
        p.code.kinds = kinds;
        (p.ilp.a, p.ilp.b) = if chain.is_some() {
            (1.0, 0.0)
        } else {
            (64.0, 0.0)
        };
        p.ilp.waiting = Some(0.0);
        p.ilp.chain = chain.or(Some(ChainSpec {
            plain: 1.0,
            ..ChainSpec::default()
        }));
    })
}

const INT: MixSpec = MixSpec {
    int: 1.0,
    ..MixSpec::NONE
};

#[track_caller]
fn about(value: f64, expected: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off < 0.05, "{value}, expected about {expected}");
}

fn chained(machine: &MachineSpec, set: impl FnOnce(&mut ChainSpec)) -> f64 {
    let mut chain = ChainSpec::default();
    set(&mut chain);
    1.0 / alone(
        machine,
        &instructions(INT, KindsSpec::default(), Some(chain)),
    )
}

/// Cycles of one of many operations that do not depend on each other.
fn independent(machine: &MachineSpec, mix: MixSpec, set: impl FnOnce(&mut KindsSpec)) -> f64 {
    let mut kinds = KindsSpec::default();
    set(&mut kinds);
    1.0 / alone(machine, &instructions(mix, kinds, None))
}

#[test]
fn skylake_takes_documented_cycles() {
    for name in ["xeon-silver-4110", "core-i7-6700"] {
        let machine = presets::find(name).unwrap();
        about(chained(&machine, |c| c.count = 1.0), 3.0);
        about(chained(&machine, |c| c.address = 1.0), 3.0);
        about(chained(&machine, |c| c.double_shift = 1.0), 3.0);
        about(chained(&machine, |c| c.convert = 1.0), 6.0);
        about(chained(&machine, |c| c.cross = 1.0), 2.0);
        about(chained(&machine, |c| c.vector_multiply = 1.0), 5.0);
        about(chained(&machine, |c| c.wide_vector_multiply = 1.0), 10.0);
        about(chained(&machine, |c| c.square_root = 1.0), 18.0);
        about(chained(&machine, |c| c.wide_divide = 1.0), 42.0);
        about(chained(&machine, |c| c.divide = 1.0), 26.0);
        let (fp, vector) = (
            MixSpec {
                fp: 1.0,
                ..MixSpec::NONE
            },
            MixSpec {
                vector: 1.0,
                ..MixSpec::NONE
            },
        );
        about(independent(&machine, INT, |k| k.count = 1.0), 1.0);
        about(independent(&machine, INT, |k| k.address = 1.0), 1.0);
        about(independent(&machine, INT, |k| k.double_shift = 1.0), 1.0);
        about(independent(&machine, fp, |k| k.convert = 1.0), 1.0);
        about(
            independent(&machine, vector, |k| k.vector_multiply = 1.0),
            0.5,
        );
        about(
            independent(&machine, vector, |k| k.wide_vector_multiply = 1.0),
            1.0,
        );
    }
}

#[test]
fn zen_takes_documented_cycles() {
    let machine = presets::find("epyc-7763").unwrap();
    about(chained(&machine, |c| c.count = 1.0), 1.0);
    about(chained(&machine, |c| c.address = 1.0), 2.0);
    about(chained(&machine, |c| c.double_shift = 1.0), 2.0);
    about(chained(&machine, |c| c.wide_vector_multiply = 1.0), 3.0);
    about(chained(&machine, |c| c.square_root = 1.0), 21.0);
    about(chained(&machine, |c| c.wide_divide = 1.0), 17.0);
    about(chained(&machine, |c| c.divide = 1.0), 13.0);
}

#[test]
fn cortex_a76_takes_documented_cycles() {
    let mut machine = presets::find("rk3588").unwrap();
    // CPU 0 is of the first core type in the layout.
    let core = machine.core_types["a76"].clone();
    machine.core_types.insert("a55".to_owned(), core);
    about(chained(&machine, |c| c.wide_divide = 1.0), 20.0);
    about(chained(&machine, |c| c.divide = 1.0), 12.0);
    about(chained(&machine, |c| c.vector_multiply = 1.0), 4.0);
    about(chained(&machine, |c| c.square_root = 1.0), 17.0);
    about(chained(&machine, |c| c.cross = 1.0), 3.0);
}

#[test]
fn machine_without_classes_takes_times_of_usual_work() {
    let machine = super::build::machine();
    let plain = chained(&machine, |c| c.plain = 1.0);
    assert_eq!(chained(&machine, |c| c.count = 1.0), plain);
    assert_eq!(
        chained(&machine, |c| c.wide_divide = 1.0),
        chained(&machine, |c| c.divide = 1.0)
    );
    let usual = independent(&machine, INT, |_| ());
    assert_eq!(independent(&machine, INT, |k| k.count = 1.0), usual);
}

#[test]
fn in_order_core_waits_for_slow_kinds() {
    let mut machine = super::build::in_order(2.0);
    let time = consort_sim::machine::detail::WorkSpec {
        latency_cycles: 12,
        interval_cycles: 1,
    };
    let core = machine.core_types.get_mut("big").unwrap();
    let work = consort_sim::machine::detail::WorkKind::Count;
    core.operations.insert(work, time);
    let speed = |count| {
        let counting = phase(|p| p.code.kinds.count = count);
        alone(&machine, &counting)
    };
    assert!(speed(0.1) < 0.9 * speed(0.0));
    assert!(speed(0.2) < speed(0.1));
}
