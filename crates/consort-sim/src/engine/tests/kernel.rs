//! Kernel mode and the returns from it.

use super::super::counts::ThreadCounts;
use super::super::testing::{
    PlainEnergy, chip, engine, instances, program, program_with, settings,
};
use super::super::{Engine, RunMode, SimulatedProgram};
use crate::chip::Chip;
use crate::engine::calendar::PS_PER_MS as MS;
use crate::program::ProgramSpec;
use consort_core::PuId;
use std::sync::Arc;

fn run(work: &[SimulatedProgram], until_ms: u64) -> Engine {
    let mut e = engine("pinned", RunMode::Once, work, 1);
    e.run_until(until_ms * MS);
    e
}

fn totals(e: &Engine) -> Vec<ThreadCounts> {
    e.threads.iter().map(|t| t.counters.total()).collect()
}

#[test]
fn switch_in_is_kernel_mode_until_return() {
    let mut e = run(&instances(&program(), 1, 1, 9.0), 0);
    e.fill_free_pus();
    assert!(e.is_in_kernel(0));
    assert_eq!(totals(&e)[0].user_returns, 0);
    e.run_until(MS);
    assert!(!e.is_in_kernel(0));
    assert_eq!(totals(&e)[0].user_returns, 1);
}

#[test]
fn ticks_return_to_user_mode_every_four_milliseconds() {
    // Once when it is switched in, then after the ticks at 4, 8, 12 and 16 ms: the one at 20 ms
    // is the next span's.
    let mut e = run(&instances(&program(), 1, 1, 9.0), 20);
    assert_eq!(totals(&e)[0].user_returns, 5);
    e.run_until(21 * MS);
    assert_eq!(totals(&e)[0].user_returns, 6);
}

#[test]
fn ticks_of_other_pus_come_later() {
    // Eight CPUs spread their ticks over 2 ms: the last one's first is at 4 + 7/8·2 ms.
    let late = |until_us: u64| {
        let mut e = engine(
            "pinned",
            RunMode::Once,
            &instances(&program(), 1, 1, 9.0),
            1,
        );
        e.restrict(0, [PuId(7)].into_iter().collect());
        e.enforce_masks();
        e.run_until(until_us * MS / 1000);
        totals(&e)[0].user_returns
    };
    assert_eq!((late(4_500), late(5_700), late(5_800)), (1, 1, 2));
}

#[test]
fn page_faults_return_and_take_kernel_time() {
    let spec = |faults: &str| ProgramSpec {
        page_faults_per_minstr: faults.parse().ok(),
        ..program()
    };
    let count = |faults: &str| {
        let mut machine = chip(1).spec().clone();
        machine.os.fault_cycles = 4000.0;
        let machine = Arc::new(Chip::new(&machine, None).unwrap());
        let work = instances(&spec(faults), 1, 1, 0.01);
        let settings = settings("pinned", RunMode::Once, 1);
        let mut e = Engine::new(machine, &work, &settings, Box::new(PlainEnergy)).unwrap();
        e.run_until(10_000 * MS);
        assert!(e.is_done());
        totals(&e)[0]
    };
    let (none, some) = (count(""), count("20.0"));
    // 20 faults of 2 µs in each of 10 million instructions; at this speed no tick more.
    assert_eq!(some.user_returns - none.user_returns, 200);
    let more_s = some.kernel_s - none.kernel_s;
    assert!((more_s / 400e-6 - 1.0).abs() < 1e-9, "{more_s}");
    assert!(((some.on_pu_s - none.on_pu_s) / 400e-6 - 1.0).abs() < 1e-6);
}

#[test]
fn time_slices_return_to_user_mode() {
    let mut e = engine("linux", RunMode::Once, &instances(&program(), 2, 1, 9.0), 1);
    (0..2).for_each(|t| e.restrict(t, [PuId(0)].into_iter().collect()));
    e.enforce_masks();
    e.run_until(100 * MS);
    for counts in totals(&e) {
        assert!(counts.context_switches > 3);
        assert!(counts.user_returns >= counts.context_switches);
        assert_eq!(counts.futex_returns, 0);
    }
}

#[test]
fn last_at_barrier_returns_from_waking() {
    // Each of the barriers has three sleepers and one who wakes them.
    let spec = program_with(
        "[threads]\ndefault = 4\nmax = 4\nspin_us = 0.0\n\
         barrier = { spacing_minstr = 1.0, imbalance = 0.2 }",
    );
    let e = run(&instances(&spec, 1, 4, 0.04), 10_000);
    let all = totals(&e);
    let futex: u64 = all.iter().map(|c| c.futex_returns).sum();
    // 10 million instructions each: nine barriers within the run, and its end wakes nobody.
    assert_eq!(futex, 9 * 4);
    assert!(all.iter().all(|c| c.user_returns >= c.futex_returns));
}

#[test]
fn lock_release_returns_from_waking_sleeper() {
    let spec = program_with(
        "[threads]\ndefault = 2\nmax = 2\nspin_us = 0.0\n\
         lock = { per_minstr = 5.0, hold_instr = 100000.0, count = 1 }",
    );
    let e = run(&instances(&spec, 1, 2, 0.2), 60);
    let all = totals(&e);
    let futex: u64 = all.iter().map(|c| c.futex_returns).sum();
    assert!(futex > 20, "{futex}");
    // For every sleep of the one there is a call of the other, but for a last that still sleeps.
    assert!(
        all[0].futex_returns.abs_diff(all[1].futex_returns) <= 1,
        "{all:?}"
    );
}
