//! Calls of the kernel that take time.

use super::super::counts::ThreadCounts;
use super::super::testing::{PlainEnergy, chip, instances, program_with, settings};
use super::super::{Engine, RunMode};
use super::{finish, totals};
use crate::chip::Chip;
use crate::engine::calendar::PS_PER_MS as MS;
use proptest::prelude::*;
use std::sync::Arc;

const HZ: f64 = 2e9;
const SWITCH_CYCLES: f64 = 2000.0;

const BARRIERS: &str = "[threads]\ndefault = 4\nmax = 4\nspin_us = 0.0\n\
    barrier = { spacing_minstr = 1.0, imbalance = 0.2 }";
const SERIAL: &str = "[io]\nper_ginstr = 500.0\nblocked_us = 40.0\n\
    [threads]\ndefault = 4\nmax = 4\nspin_us = 2.0\nserial_share = 0.1\n\
    barrier = { spacing_minstr = 1.0, imbalance = 0.2 }";
const RARE_LOCK: &str = "[threads]\ndefault = 4\nmax = 4\n\
    lock = { per_minstr = 5.0, hold_instr = 50000.0, count = 1 }";
const OFTEN_LOCK: &str = "[threads]\ndefault = 4\nmax = 4\n\
    lock = { per_minstr = 500.0, hold_instr = 300.0, count = 1 }";
const ALL: [&str; 4] = [BARRIERS, SERIAL, RARE_LOCK, OFTEN_LOCK];

/// Four threads of a program, each on a core, where calls cost so much.
fn engine(spec: &str, call: f64, wake: f64) -> Engine {
    engine_with(spec, [SWITCH_CYCLES, call, wake])
}

/// The same where switches, calls to sleep and wakes cost so many cycles.
fn engine_with(spec: &str, [switch, call, wake]: [f64; 3]) -> Engine {
    let mut machine = chip(1).spec().clone();
    machine.os.switch_cycles = switch;
    (machine.os.call_cycles, machine.os.wake_cycles) = (call, wake);
    let chip = Arc::new(Chip::new(&machine, None).unwrap());
    let work = instances(&program_with(spec), 1, 4, 0.04);
    let settings = settings("pinned", RunMode::Once, 1);
    Engine::new(chip, &work, &settings, Box::new(PlainEnergy)).unwrap()
}

/// Everything that threads did until the end, and when that was, ps.
fn whole(mut e: Engine) -> (ThreadCounts, u64) {
    e.run_until(10_000 * MS);
    assert!(e.is_done());
    let mut sum = ThreadCounts::default();
    e.threads.iter().for_each(|t| sum.add(&t.counters.total()));
    (sum, e.now_ps())
}

fn cycles(kernel_s: f64) -> f64 {
    kernel_s * HZ
}

#[test]
fn sleeps_and_wakes_cost_kernel_time() {
    let (sum, _) = whole(engine(BARRIERS, 3000.0, 700.0));
    // Nine barriers at which three of four sleep and are woken, and the end, at which three sleep.
    let paid = cycles(sum.kernel_s) - sum.context_switches as f64 * SWITCH_CYCLES;
    let expected = 30.0 * 3000.0 + 27.0 * 700.0;
    assert!((paid - expected).abs() < 1.0, "{paid} {expected}");
    assert!((sum.overhead_s - sum.kernel_s).abs() < 1e-12);
}

#[test]
fn calls_for_frequent_locks_take_their_time() {
    let (free, soon) = whole(engine(OFTEN_LOCK, 0.0, 0.0));
    let (sum, late) = whole(engine(OFTEN_LOCK, 2000.0, 1000.0));
    assert!(sum.futex_returns > 1000 && late > soon);
    let paid = |c: &ThreadCounts| cycles(c.kernel_s) - c.context_switches as f64 * SWITCH_CYCLES;
    // Two returns for each wait. The end of the run has barrier-like waits of its own.
    let expected = sum.futex_returns as f64 / 2.0 * 3000.0;
    assert!((paid(&sum) / expected - 1.0).abs() < 0.01, "{}", paid(&sum));
    assert!(paid(&free).abs() < 1.0);
}

#[test]
fn thread_released_in_call_returns_at_end() {
    // Longer than anybody ever waits: nobody falls asleep before the end of the run.
    let (sum, _) = whole(engine(BARRIERS, 1e6, 0.0));
    assert_eq!(sum.futex_returns, 9 * 4);
    assert_eq!(sum.context_switches, 4);
    // Nobody is spared a switch by that. At the end of the run three more calls are cut off.
    let calls = cycles(sum.kernel_s) - (4.0 + 27.0) * SWITCH_CYCLES;
    assert!((27e6 - 1.0..30e6).contains(&calls), "{calls}");
    let (free, _) = whole(engine_with(BARRIERS, [0.0, 1e6, 0.0]));
    let switches = cycles(sum.kernel_s - free.kernel_s) / SWITCH_CYCLES;
    assert!(switches > 27.0, "{switches}");
}

#[test]
fn calling_thread_is_in_kernel() {
    let mut e = engine(BARRIERS, 1e6, 0.0);
    let mut seen = 0;
    for us in 1..2000 {
        e.run_until(us * MS / 1000);
        for t in 0..4 {
            if let super::super::thread::ThreadStatus::Calling(..) = e.threads[t].status {
                assert!(e.is_in_kernel(t));
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Threads on cores of their own, without locks whose order costs may change, and without costs
    /// of switches: who is last at a barrier is spared one and pays for waking, and costs may make
    /// another thread the last.
    #[test]
    fn costs_only_lengthen(
        call in 0.0f64..20_000.0,
        wake in 0.0f64..20_000.0,
        more in 0.0f64..20_000.0,
    ) {
        let length = |spec, call, wake| whole(engine_with(spec, [0.0, call, wake])).1;
        let rounding = 100;
        let barriers = |call, wake| length(BARRIERS, call, wake);
        prop_assert!(barriers(call, wake) + rounding >= barriers(0.0, 0.0));
        prop_assert!(barriers(call + more, 0.0) + rounding >= barriers(call, 0.0));
        let locks = |call, wake| length(OFTEN_LOCK, call, wake);
        let less = locks(call, wake);
        prop_assert!(locks(call + more, wake) + rounding >= less);
        prop_assert!(locks(call, wake + more) + rounding >= less);
    }

    #[test]
    fn splitting_time_conserves_work_and_energy(
        spec in prop::sample::select(ALL.to_vec()),
        call in 0.0f64..20_000.0,
        wake in 0.0f64..20_000.0,
        us in 7u64..300,
    ) {
        let (at_once, end) = whole(engine(spec, call, wake));
        let mut e = engine(spec, call, wake);
        let mut now = 0;
        while !e.is_done() {
            now += us * MS / 1000;
            e.run_until(now);
        }
        let (split, split_end) = whole(e);
        prop_assert_eq!(end, split_end);
        prop_assert_eq!(at_once.futex_returns, split.futex_returns);
        prop_assert_eq!(at_once.user_returns, split.user_returns);
        for (a, b) in [
            (at_once.instructions, split.instructions),
            (at_once.kernel_s, split.kernel_s),
            (at_once.energy_j, split.energy_j),
            (at_once.on_pu_s, split.on_pu_s),
        ] {
            prop_assert!((a - b).abs() <= 1e-9 * a.abs(), "{a} {b}");
        }
        prop_assert!((split.instructions / 0.04e9 - 1.0).abs() < 1e-9);
    }
}

/// Every wait at a barrier ends a loop that spun, whose last branch is mispredicted.
#[test]
fn end_of_spinning_mispredicts_a_branch() {
    let missed = |spin_us: f64| {
        let spec = program_with(&format!(
            "[threads]\ndefault = 2\nmax = 2\nspin_us = {spin_us:?}\n\
             barrier = {{ spacing_minstr = 1.0, imbalance = 0.2 }}"
        ));
        let work = instances(&spec, 1, 2, 0.1);
        let settings = settings("pinned", RunMode::Once, 1);
        let mut e = Engine::new(chip(1), &work, &settings, Box::new(PlainEnergy)).unwrap();
        finish(&mut e, 10 * MS);
        totals(&e).iter().map(|c| c.flow.branch_misses).sum::<f64>()
    };
    // 50 barriers of two threads; the last one ends the run.
    let more = missed(1e6) - missed(0.0);
    assert!((45.0..=51.0).contains(&more), "{more}");
}
