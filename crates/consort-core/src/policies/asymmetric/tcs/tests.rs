//! tcs on one large and three small cores.

use super::super::testing::{BUSY, Bench, Did, IDLE, QUANTUM_NS, chip};
use super::*;
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

/// Four threads after 0.4 ms of a quantum, at the end of which the first stalls, and their CPUs
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
fn highest_short_term_counter_is_swapped_in() {
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
fn highest_counter_on_large_core_stays() {
    let mut bench = bench(LongTermRule::Critical);
    let did = [ran(1, 0.1e6), ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
    assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
}

#[test]
fn ended_interval_is_charged_to_its_thread() {
    let (mut bench, _) = after_a_stall(Tcs::new(LongTermRule::Lagging, false));
    // 0.4 ms / 10^6; the others' intervals go on.
    assert_eq!(sums(&bench), [0.4, 0.0, 0.0, 0.0]);
    bench.turn(&rest(), 3 * QUANTUM_NS / 5, IntervalEnd::Quantum);
    // 1 ms / 3, 8 and 10 million.
    assert_eq!(sums(&bench), [0.4, 1.0 / 3.0, 0.125, 0.1]);
}

#[test]
fn sum_is_independent_of_other_stops() {
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
fn stall_lets_long_term_sum_decide_later() {
    for (reading, then) in [
        (LongTermRule::Critical, [2, 1, 0, 3]),
        (LongTermRule::Lagging, [3, 1, 2, 0]),
    ] {
        let mut bench = with(Tcs::new(reading, false));
        let did = [ran(1, 4e6), stalled(2, 2e6), ran(3, 1e6), ran(4, 8e6)];
        let pus = bench.turn(&did, 2 * QUANTUM_NS / 5, IntervalEnd::Activity);
        assert_eq!(pus, [0, 1, 2, 3]);
        // The sums are 1/8, 0.2, 1/2 and 0.1, and the second has nothing to run.
        let rest = [ran(1, 4e6), stalled(2, 0.0), ran(3, 1e6), ran(4, 2e6)];
        let pus = bench.turn(&rest, 3 * QUANTUM_NS / 5, IntervalEnd::Quantum);
        assert_eq!(pus, then);
        // A quantum in which nothing happens is short-term's again.
        let quiet = [ran(1, 1e6), stalled(2, 0.0), ran(3, 3e6), ran(4, 2e6)];
        let large = bench.quantum(&quiet).iter().position(|&pu| pu == 0);
        assert_eq!(large, Some(0));
    }
}

#[test]
fn idle_large_core_is_handed_over_at_once() {
    for immediate in [false, true] {
        let (_, at_once) = after_a_stall(Tcs::new(LongTermRule::Critical, immediate));
        // All others have sums of 0: the first in turn.
        assert_eq!(at_once, [1, 0, 2, 3]);
    }
}

#[test]
fn immediate_decides_at_once() {
    // The second has the sum 1/3, the others 1, and the first stalls.
    let mut bench = with(Tcs::new(LongTermRule::Lagging, true));
    let did = [ran(1, 1e6), ran(2, 3e6), ran(3, 1e6), ran(4, 1e6)];
    bench.quantum(&did);
    let stall = [stalled(1, 1e5), ran(2, 1e5), ran(3, 1e5), ran(4, 1e5)];
    let at_once = bench.turn(&stall, QUANTUM_NS / 10, IntervalEnd::Activity);
    assert_eq!(at_once.iter().position(|&pu| pu == 0), Some(1));
}

#[test]
fn new_thread_goes_to_large_core_if_lagging() {
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
fn sums_belong_to_software_threads() {
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
fn large_core_in_kernel_delays_the_exchange() {
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

mod arithmetic {
    use super::super::*;
    use proptest::prelude::*;

    fn sum(intervals: &[(u64, f64)], arithmetic: Arithmetic) -> CriticalityValue {
        let mut own = LongTermCriticality::new(arithmetic);
        for &(ns, done) in intervals {
            own.add_interval(ns, done);
            own.end_interval();
        }
        own.sum()
    }

    #[test]
    fn integers_saturate_and_are_rounded_down() {
        let of = |intervals: &[_]| sum(intervals, Arithmetic::Integer);
        assert_eq!(of(&[(1, 3.0)]), CriticalityValue::Whole(65536 / 3));
        assert_eq!(of(&[(7, 0.0), (0, 5.0)]), CriticalityValue::Whole(0));
        let long = u64::from(u32::MAX) + 9;
        assert_eq!(
            of(&[(long, 1.0)]),
            CriticalityValue::Whole((1 << 48) - (1 << 16))
        );
        assert_eq!(Arithmetic::Integer.add_to_counter(MOST - 1.0, 5.0), MOST);
        let many = vec![(long, 1.0); 70_000];
        assert_eq!(of(&many), CriticalityValue::Whole(u64::MAX));
    }

    proptest! {
        #[test]
        fn integer_sum_is_near_the_real_one(
            intervals in prop::collection::vec((0u64..5_000_000, 1u32..5_000_000), 0..20),
        ) {
            let intervals: Vec<_> = intervals.iter().map(|&(t, i)| (t, f64::from(i))).collect();
            let (real, whole) = (
                sum(&intervals, Arithmetic::Real),
                sum(&intervals, Arithmetic::Integer),
            );
            let (CriticalityValue::Real(real), CriticalityValue::Whole(whole)) = (real, whole) else {
                return Err(TestCaseError::fail("a sum in the other arithmetic"));
            };
            let whole = whole as f64 / 65536.0;
            let rounding = 1e-9 * real.max(1.0);
            prop_assert!(whole <= real + rounding);
            prop_assert!(real - whole <= intervals.len() as f64 / 65536.0 + rounding);
        }
    }
}
