//! tcs on one large and three small cores.

use super::*;
use crate::policies::asymmetric::testing::{BUSY, Bench, Did, IDLE, QUANTUM_NS, chip};
use crate::sample::IntervalEnd;

/// A thread that committed so many instructions.
fn ran(occupant: u32, instructions: f64) -> Did {
    Did {
        instructions,
        occupant: Some(occupant),
        ..BUSY
    }
}

/// A thread that committed so many instructions and waits for others by now.
fn stalled(occupant: u32, instructions: f64) -> Did {
    Did {
        waits: true,
        ..ran(occupant, instructions)
    }
}

/// Four threads after a quantum in which they came, with sums of 0.
fn bench(reading: LongTermRule) -> Bench<Tcs> {
    with(Tcs::new(reading, false))
}

fn with(rule: Tcs) -> Bench<Tcs> {
    let mut bench = Bench::new(chip(1, 3, 1), rule);
    let all = [1, 2, 3, 4].map(|t| ran(t, 1e6));
    assert_eq!(bench.quantum(&all), [0, 1, 2, 3]);
    bench
}

/// Four threads after 0.4 ms of a quantum, at the end of which the first stalls, and their PUs
/// then.
fn after_a_stall(rule: Tcs) -> (Bench<Tcs>, Vec<u32>) {
    let mut bench = with(rule);
    let did = [stalled(1, 1e6), ran(2, 2e6), ran(3, 4e6), ran(4, 8e6)];
    let pus = bench.turn(&did, 2 * QUANTUM_NS / 5, IntervalEnd::Activity);
    (bench, pus)
}

/// Activity of the four for the rest of that quantum.
fn rest() -> [Did; 4] {
    [stalled(1, 0.0), ran(2, 1e6), ran(3, 4e6), ran(4, 2e6)]
}

fn sums(bench: &Bench<Tcs>) -> Vec<f64> {
    let real = |own: &LongTermCriticality| match own.sum() {
        CriticalityValue::Real(sum) => sum,
        CriticalityValue::Whole(_) => f64::NAN,
    };
    bench.rule().long_term.values().map(real).collect()
}

#[test]
fn the_highest_short_term_counter_above_the_large_core_s_is_swapped_in() {
    let mut bench = bench(LongTermRule::Critical);
    let did = [ran(1, 3e6), ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
    assert_eq!(bench.quantum(&did), [2, 1, 0, 3]);
}

#[test]
fn equals_take_turns() {
    let mut bench = bench(LongTermRule::Critical);
    let slow_but = |fast: u32| [0, 1, 2, 3].map(|t| ran(t + 1, if t == fast { 2e6 } else { 1e6 }));
    bench.quantum(&slow_but(0));
    let mut had = Vec::new();
    for _ in 0..4 {
        let large = had.last().copied().unwrap_or(1);
        let pus = bench.quantum(&slow_but(large));
        had.push(pus.iter().position(|&pu| pu == 0).unwrap() as u32);
    }
    assert_eq!(had, [2, 3, 0, 1]);
}

#[test]
fn nobody_is_swapped_in_while_the_large_core_s_counter_is_the_highest() {
    let mut bench = bench(LongTermRule::Critical);
    let did = [ran(1, 0.1e6), ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
    assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
}

#[test]
fn an_interval_is_charged_to_its_own_thread_when_it_ends() {
    let (mut bench, _) = after_a_stall(Tcs::new(LongTermRule::Lagging, false));
    // 0.4 ms / 10^6; the others' intervals go on.
    assert_eq!(sums(&bench), [0.4, 0.0, 0.0, 0.0]);
    bench.turn(&rest(), 3 * QUANTUM_NS / 5, IntervalEnd::Quantum);
    // 1 ms / 3, 8 and 10 million.
    assert_eq!(sums(&bench), [0.4, 1.0 / 3.0, 0.125, 0.1]);
}

#[test]
fn a_sum_does_not_depend_on_how_often_others_stop() {
    let mut bench = bench(LongTermRule::Lagging);
    for step in 0..9 {
        let first = [ran(1, 1e5), stalled(1, 1e5)][step % 2];
        let did = [first, ran(2, 1e5), ran(3, 3e5), ran(4, 4e5)];
        bench.turn(&did, QUANTUM_NS / 10, IntervalEnd::Activity);
    }
    let last = [ran(1, 1e5), ran(2, 1e5), ran(3, 3e5), ran(4, 4e5)];
    bench.turn(&last, QUANTUM_NS / 10, IntervalEnd::Quantum);
    assert_eq!(sums(&bench)[1..], [1.0, 1.0 / 3.0, 0.25]);
}

#[test]
fn when_a_thread_stalls_the_long_term_sum_decides_at_the_end_of_the_quantum() {
    for (reading, then) in [
        (LongTermRule::Critical, [1, 0, 2, 3]),
        (LongTermRule::Lagging, [3, 1, 2, 0]),
    ] {
        let (mut bench, at_once) = after_a_stall(Tcs::new(reading, false));
        assert_eq!(at_once, [0, 1, 2, 3]);
        // By short term the second would be first, and the first has nothing to run.
        let pus = bench.turn(&rest(), 3 * QUANTUM_NS / 5, IntervalEnd::Quantum);
        assert_eq!(pus, then);
        // A quantum in which nothing happens is short-term's again.
        let quiet = [stalled(1, 0.0), ran(2, 3e6), ran(3, 1e6), ran(4, 2e6)];
        let large = bench.quantum(&quiet).iter().position(|&pu| pu == 0);
        assert_eq!(large, Some(2));
    }
}

#[test]
fn immediate_decides_by_the_long_term_sum_at_once() {
    // The second has the sum 1/3, the others 1, and the first stalls.
    let mut bench = with(Tcs::new(LongTermRule::Lagging, true));
    let did = [ran(1, 1e6), ran(2, 3e6), ran(3, 1e6), ran(4, 1e6)];
    bench.quantum(&did);
    let stall = [stalled(1, 1e5), ran(2, 1e5), ran(3, 1e5), ran(4, 1e5)];
    let at_once = bench.turn(&stall, QUANTUM_NS / 10, IntervalEnd::Activity);
    assert_eq!(at_once.iter().position(|&pu| pu == 0), Some(1));
}

#[test]
fn a_new_thread_with_the_lowest_sum_goes_to_the_large_core_as_in_the_worked_example() {
    let at = |reading| {
        let mut bench = bench(reading);
        bench.quantum(&[1, 2, 3, 4].map(|t| ran(t, 1e6)));
        let switched = [1, 2, 5, 4].map(|t| ran(t, 5e5));
        bench.turn(&switched, QUANTUM_NS / 2, IntervalEnd::Activity);
        // The sums are 2 and, for the new thread, 1/2.
        let did = [ran(1, 5e5), ran(2, 5e5), ran(5, 1e6), ran(4, 5e5)];
        let pus = bench.turn(&did, QUANTUM_NS / 2, IntervalEnd::Quantum);
        assert_eq!(sums(&bench), [2.0, 2.0, 2.0, 2.0, 0.5]);
        pus
    };
    assert_eq!(at(LongTermRule::Lagging), [2, 1, 0, 3]);
    assert_eq!(at(LongTermRule::Critical), [0, 1, 2, 3]);
}

#[test]
fn threads_that_wait_are_not_active() {
    let mut bench = bench(LongTermRule::Critical);
    let did = [ran(1, 1e6), stalled(2, 1e6), stalled(3, 1e6), IDLE];
    bench.quantum(&did);
    // Slow as they are, they are not swapped in.
    let did = [ran(1, 1e6), stalled(2, 0.0), stalled(3, 0.0), IDLE];
    assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
}

#[test]
fn sums_belong_to_software_threads_not_to_logical_cores() {
    let mut bench = bench(LongTermRule::Critical);
    // Thread 4 goes slowly, and is then switched out for a new one.
    let slow = [ran(1, 5e5), ran(2, 5e5), ran(3, 5e5), ran(9, 1e3)];
    bench.turn(&slow, QUANTUM_NS / 2, IntervalEnd::Activity);
    let all = [1, 2, 3, 9].map(|t| ran(t, 5e5));
    assert_eq!(
        bench.turn(&all, QUANTUM_NS / 2, IntervalEnd::Quantum),
        [0, 1, 2, 3]
    );
    // It comes back on another logical core.
    let back = [1, 4, 3, 9].map(|t| ran(t, 1e6));
    assert_eq!(bench.quantum(&back), [1, 0, 2, 3]);
}

#[test]
fn a_large_core_in_the_kernel_is_waited_for_and_the_ended_quantum_decides() {
    let mut bench = bench(LongTermRule::Critical);
    let kernel = Did {
        kernel: true,
        ..ran(1, 3e6)
    };
    let did = [kernel, ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
    assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
    let left = [ran(1, 1.0), ran(2, 1.0), ran(3, 9.0), ran(4, 1.0)];
    assert_eq!(bench.activity(&left), [2, 1, 0, 3]);
}
