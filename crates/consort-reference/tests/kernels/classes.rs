//! Latencies and throughputs of operations that cores distinguish, as instruction tables have them.

use crate::machine::{about, alone};
use crate::ops;
use consort_ops::OpKind;
use consort_sim::machine::presets;

/// Cycles of an operation of a chain, and of one of many that do not depend on each other.
fn cycles(machine: &str, kind: OpKind) -> [f64; 2] {
    let spec = presets::find(machine).expect("it is a preset");
    [ops::chain(kind), ops::independent(kind)].map(|ops| 1.0 / alone(&spec, &ops).ipc())
}

/// LLVM, `X86SchedSkylakeServer.td`; conversions and moves between register files are half of a pair
/// there and back in InstLatx64's table of a Core i5-6400T (12 and 4 cycles), which has 40 to 44
/// cycles for a division by 64 bits of a number of 64 bits.
#[test]
fn skylake_takes_documented_cycles() {
    for machine in ["xeon-silver-4110", "core-i7-6700"] {
        let check = |kind, latency, interval| {
            let [chained, independent] = cycles(machine, kind);
            about(chained, latency);
            about(independent, interval);
        };
        check(OpKind::Count, 3.0, 1.0);
        check(OpKind::Address, 3.0, 1.0);
        check(OpKind::DoubleShift, 3.0, 1.0);
        check(OpKind::Convert, 6.0, 1.0);
        check(OpKind::Cross, 2.0, 0.5);
        check(OpKind::VectorMultiply, 5.0, 0.5);
        check(OpKind::WideVectorMultiply, 10.0, 1.0);
        check(OpKind::SquareRoot, 18.0, 6.0);
        check(OpKind::WideDivide, 42.0, 40.0);
        check(OpKind::Divide, 26.0, 6.0);
    }
}

/// LLVM, `X86ScheduleZnver3.td`: counts are as fast as additions.
#[test]
fn zen_takes_documented_cycles() {
    let chained = |kind| cycles("epyc-7763", kind)[0];
    about(chained(OpKind::Count), 1.0);
    about(chained(OpKind::Address), 2.0);
    about(chained(OpKind::DoubleShift), 2.0);
    about(chained(OpKind::WideVectorMultiply), 3.0);
    about(chained(OpKind::SquareRoot), 21.0);
    about(chained(OpKind::WideDivide), 17.0);
    about(chained(OpKind::Divide), 13.0);
}

/// LLVM, `AArch64SchedNeoverseN1.td`.
#[test]
fn cortex_a76_takes_documented_cycles() {
    let chained = |kind| {
        let mut spec = presets::find("rk3588").expect("it is a preset");
        // CPU 0 is of the first core type in the layout.
        spec.core_types
            .insert("a55".to_owned(), spec.core_types["a76"].clone());
        1.0 / alone(&spec, &ops::chain(kind)).ipc()
    };
    about(chained(OpKind::WideDivide), 20.0);
    about(chained(OpKind::Divide), 12.0);
    about(chained(OpKind::VectorMultiply), 4.0);
    about(chained(OpKind::SquareRoot), 17.0);
    about(chained(OpKind::Cross), 3.0);
}
