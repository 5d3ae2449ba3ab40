use super::super::asymmetric::testing::{BUSY, Bench, Did, QUANTUM_NS, bottleneck, chip};
use super::BottleneckKind::{Barrier, Lock};
use super::*;
use crate::sample::IntervalEnd;

/// Threads 0 to 3 on logical cores of the same numbers, with what they committed, in thousands.
fn all(thousands: [u32; 4]) -> [Did; 4] {
    let mut number = 0..4;
    thousands.map(|t| Did {
        instructions: f64::from(t) * 1e3,
        occupant: number.next(),
        ..BUSY
    })
}

fn waiting(mut did: [Did; 4], who: &[usize]) -> [Did; 4] {
    who.iter().for_each(|&t| did[t].waits = true);
    did
}

/// Four threads that have just come, of which it is known.
fn bench() -> Bench<Uba> {
    let mut bench = Bench::new(chip(1, 3, 1), Uba::default());
    assert_eq!(
        bench.turn(&all([0; 4]), 0, IntervalEnd::Activity),
        [0, 1, 2, 3]
    );
    bench
}

#[test]
fn the_thread_with_least_progress_lags_and_is_accelerated() {
    // Thread 2 is at 100, and 100 more would not bring it to the next, at 300. One lags: its
    // utility is (1 - 1/2) x 1 / 1.
    assert_eq!(bench().quantum(&all([900, 300, 100, 500])), [2, 1, 0, 3]);
}

#[test]
fn those_that_the_last_would_reach_within_a_quantum_lag_too() {
    // The last is at 300 and does 300 in a quantum: 0, which has done 550, lags too.
    assert_eq!(bench().quantum(&all([550, 700, 300, 900])), [0, 1, 2, 3]);
}

#[test]
fn threads_that_wait_do_not_lag() {
    let did = waiting(all([900, 700, 100, 300]), &[2]);
    assert_eq!(bench().quantum(&did), [3, 1, 2, 0]);
}

#[test]
fn progress_counts_from_the_last_barrier() {
    let mut bench = bench();
    let did = waiting(all([900, 100, 900, 900]), &[0, 2, 3]);
    bench.tell(&[bottleneck(Barrier, (&[1], &[0, 2, 3]), 0)]);
    assert_eq!(bench.quantum(&did), [1, 0, 2, 3]);
    // All go on.
    bench.tell(&[]);
    bench.turn(&all([0; 4]), 0, IntervalEnd::Activity);
    // Since the barrier 2 is the last. Ever since it would be 1, with 700 against 1000.
    assert_eq!(bench.quantum(&all([700, 600, 100, 800])), [1, 2, 0, 3]);
}

#[test]
fn a_bottleneck_has_its_share_of_the_waiting_that_it_causes() {
    let mut bench = bench();
    // Everybody else waits for the holder for half of the quantum: 3 x Q/2 / (Q x 3) = 1/2. All
    // four lag: 1/4 each.
    bench.tell(&[bottleneck(Lock, (&[3], &[0, 1, 2]), 3 * QUANTUM_NS / 2)]);
    assert_eq!(bench.quantum(&all([500; 4])), [0, 1, 2, 3]);
    // The share is known when the quantum is over.
    bench.tell(&[bottleneck(Lock, (&[3], &[0]), 0)]);
    assert_eq!(bench.activity(&all([1; 4])), [3, 1, 2, 0]);
}

#[test]
fn a_bottleneck_that_few_wait_for_is_worth_less_than_a_lagging_thread() {
    let mut bench = bench();
    // One waits for a tenth of the quantum: 1/10 / 3. One lags: 1.
    bench.tell(&[bottleneck(Lock, (&[3], &[1]), QUANTUM_NS / 10)]);
    assert_eq!(bench.quantum(&all([900, 300, 100, 500])), [2, 1, 0, 3]);
    assert_eq!(bench.activity(&all([0; 4])), [2, 1, 0, 3]);
}

#[test]
fn the_effect_of_a_barrier_is_shared_among_those_that_are_late() {
    let mut rule = Uba::default();
    rule.share.insert(0, 0.6);
    rule.record_executers(&[bottleneck(Barrier, (&[1, 2], &[0, 3]), 0)]);
    assert!(rule.executers.values().all(|&effect| effect == 0.3));
    assert_eq!(rule.executers.len(), 2);
    // A barrier to which nobody has come has no late ones.
    rule.record_executers(&[bottleneck(Barrier, (&[1, 2], &[]), 0)]);
    assert!(rule.executers.is_empty());
}

#[test]
fn the_local_speedup_is_measured_on_both_kinds_of_cores() {
    let mut bench = bench();
    // Thread 0 does 800 on the large core, 1 to 3 do 400, 200 and 300 on small ones. Thread 2 is
    // the last and comes to the large core, where it does 220: a ratio of 1.1.
    assert_eq!(bench.quantum(&all([800, 500, 200, 700])), [2, 1, 0, 3]);
    // Now 0 does 720 on a small core, a ratio of 1.11. Progress is 1520, 520, 420 and 720: with 2
    // lags 1, whose ratio is not known and is taken for 2.
    assert_eq!(bench.quantum(&all([720, 20, 220, 20])), [2, 0, 1, 3]);
}

#[test]
fn a_thread_that_is_no_faster_on_the_large_core_gains_nothing() {
    let mut speeds = ThreadSpeeds::default();
    let thread = crate::testing::thread_id(1);
    assert_eq!(speeds.gain(thread), 0.5);
    speeds.set(thread, 4.0, 1.0);
    assert_eq!(speeds.gain(thread), 0.75);
    speeds.set(thread, 1.0, 2.0);
    assert_eq!(speeds.gain(thread), 0.0);
}
