//! Threads that have done their part before their siblings.

use super::super::testing::{engine, instances, program, program_with};
use super::super::{Engine, RunMode, SimulatedProgram};
use super::busy;
use crate::engine::calendar::PS_PER_MS as MS;
use consort_core::PuId;
use proptest::prelude::*;

const CONSTANT: RunMode = RunMode::RestartThreadsUntilAllDone;

/// Two threads with one part each, three programs of one thread on the CPU of the second.
fn crowded(mode: RunMode) -> Engine {
    let two = program_with("[threads]\ndefault = 2\nmax = 2\nspin_us = 0.0");
    let mut work: Vec<SimulatedProgram> = instances(&two, 1, 2, 0.4);
    work.extend(instances(&program(), 3, 1, 9.0));
    let mut e = engine("linux", mode, &work, 1);
    for t in 0..5 {
        let pu = PuId(if t == 0 { 0 } else { 2 });
        e.restrict(t, [pu].into_iter().collect());
    }
    e.enforce_masks();
    e
}

/// Work of each thread of the first program until it has done its own, 10^6 instructions.
fn done(mode: RunMode) -> [f64; 2] {
    let mut e = crowded(mode);
    while e.results()[0].completions.is_empty() {
        e.run_until(e.now_ps() + MS / 10);
    }
    [0, 1].map(|t| e.threads[t].counters.total().instructions / 1e6)
}

#[test]
fn early_thread_repeats_until_siblings_finish() {
    let [first, second] = done(RunMode::RestartUntilAllDone);
    let own = second;
    assert!((first / own - 1.0).abs() < 0.05, "{first} {own}");
    // It has a CPU for itself, and its sibling a quarter of one.
    let [first, second] = done(CONSTANT);
    assert!((second / own - 1.0).abs() < 0.05, "{second} {own}");
    assert!((3.0..5.0).contains(&(first / own)), "{first} {own}");
}

#[test]
fn restarts_of_threads_do_not_change_when_the_program_is_done() {
    let end = |mode| {
        let mut e = crowded(mode);
        while e.results()[0].completions.is_empty() {
            e.run_until(e.now_ps() + MS);
        }
        e.results()[0].completions[0].end_s
    };
    let (plain, constant) = (end(RunMode::RestartUntilAllDone), end(CONSTANT));
    assert!((constant / plain - 1.0).abs() < 1e-9, "{plain} {constant}");
}

#[test]
fn thread_at_inner_barrier_is_not_done() {
    let spec = program_with("[threads]\ndefault = 4\nmax = 4\nspin_us = 0.0\nserial_share = 0.5");
    let mut e = engine("linux", CONSTANT, &instances(&spec, 1, 4, 0.08), 1);
    // The serial half is the first thread's alone.
    e.run_until(5 * MS);
    assert!(e.threads[0].counters.total().instructions > 0.0);
    assert!(
        e.threads[1..]
            .iter()
            .all(|t| t.counters.total().instructions == 0.0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn repeating_threads_keep_total_work(
        programs in 1usize..4,
        threads in 1u32..6,
        seed in 0u64..100,
        split in 100_000_000u64..5_000_000_000,
    ) {
        let fighting = program_with(
            "[io]\nper_ginstr = 2000.0\nblocked_us = 300.0\n\
             [threads]\ndefault = 2\nmax = 64\nserial_share = 0.1\nspin_us = 20.0\n\
             barrier = { spacing_minstr = 0.5, imbalance = 0.3 }\n\
             lock = { per_minstr = 5.0, hold_instr = 50000.0, count = 1 }",
        );
        let mut work = instances(&fighting, programs, threads, 0.01);
        work.extend(instances(&busy(), 1, threads, 0.02));
        let mut e = engine("linux-acmp", CONSTANT, &work, seed);
        while !e.is_done() {
            e.run_until(e.now_ps() + split);
            prop_assert!(e.now_ps() < 100_000 * MS, "the run does not end");
        }
        for (result, instance) in e.results().iter().zip(&work) {
            prop_assert!(!result.completions.is_empty());
            let first = result.completions[0].instructions;
            prop_assert!(first > instance.instructions * (1.0 - 1e-9), "{}", first);
        }
    }
}
