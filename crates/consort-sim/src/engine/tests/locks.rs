//! Laws of locks that are events, and of the returns of those that are not.

use crate::contention::{Demand, RunningThread, Solver};
use crate::engine::lock::LockState;
use crate::engine::testing::{chip, engine, instances, program, program_with};
use crate::engine::thread::ThreadStatus;
use crate::engine::{Engine, RunMode, ThreadCounts};
use crate::program::ProgramSpec;
use consort_core::{PuId, PuSet};
use proptest::prelude::*;

const MS: u64 = 1_000_000_000;
const OS: [&str; 3] = ["linux", "pinned", "random"];

/// Threads that fight for two locks, meet at barriers and block.
fn fighting(spin_us: f64) -> ProgramSpec {
    program_with(&format!(
        "[io]\nper_ginstr = 500.0\nblocked_us = 80.0\n\
         [threads]\ndefault = 2\nmax = 64\nserial_share = 0.05\nspin_us = {spin_us:?}\n\
         barrier = {{ spacing_minstr = 1.0, imbalance = 0.2 }}\n\
         lock = {{ per_minstr = 10.0, hold_instr = 40000.0, count = 2 }}"
    ))
}

/// Threads that do nothing but compute and take locks.
fn only_locks(spin_us: f64, lock: &str) -> ProgramSpec {
    program_with(&format!(
        "[threads]\ndefault = 2\nmax = 64\nspin_us = {spin_us:?}\nlock = {{ {lock} }}"
    ))
}

fn totals(engine: &Engine) -> Vec<ThreadCounts> {
    engine
        .threads()
        .iter()
        .map(|t| t.counters.total())
        .collect()
}

/// Returns what is wrong with the locks and the threads that hold or want them, if anything is.
fn disorder(engine: &Engine) -> Option<String> {
    for (t, thread) in engine.threads.iter().enumerate() {
        let locks = &engine.programs[thread.program].locks;
        let (right, sleeps) = match thread.work.locks.place {
            LockState::Inside(l) => (locks[l].holder == Some(t), false),
            LockState::Waiting(l) => (locks[l].queue.contains(&t), true),
            LockState::Outside => (true, thread.status == ThreadStatus::Waiting),
        };
        let idle = matches!(
            thread.status,
            ThreadStatus::Waiting | ThreadStatus::Spinning(_)
        );
        if !right || (idle && !sleeps && thread.work.step_left > 0.0) {
            return Some(format!(
                "thread {t}: {:?} {:?}",
                thread.work.locks.place, thread.status
            ));
        }
    }
    let locks = engine.programs.iter().flat_map(|p| &p.locks);
    let wrong = |lock: &&crate::engine::lock::ProgramLock| {
        let at = |t: &usize| engine.threads[*t].work.locks.place;
        let holder = lock.holder.map(|t| at(&t));
        let held = matches!(holder, Some(LockState::Inside(_)));
        held != holder.is_some()
            || (!held && !lock.queue.is_empty())
            || !lock
                .queue
                .iter()
                .all(|t| matches!(at(t), LockState::Waiting(_)))
    };
    locks
        .into_iter()
        .find(wrong)
        .map(|lock| format!("{lock:?}"))
}

/// True if a queue became another by leaving at its head and joining at its tail.
fn in_order(old: &[usize], new: &[usize]) -> bool {
    (0..=old.len()).any(|gone| new.starts_with(&old[gone..]))
}

fn queues(engine: &Engine) -> Vec<Vec<usize>> {
    let locks = engine.programs.iter().flat_map(|p| &p.locks);
    locks.map(|l| l.queue.iter().copied().collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn locks_are_first_come_first_served(
        os in 0..3usize,
        seed in 0u64..1000,
        n in 1usize..3,
        threads in 2u32..8,
        spin_us in prop_oneof![Just(0.0), Just(20.0), Just(1e5)],
        masks in prop::collection::vec(1u8..=255, 8),
    ) {
        let work = instances(&fighting(spin_us), n, threads, 0.02);
        let mut e = engine(OS[os], RunMode::RestartUntilAllDone, &work, seed);
        let (mut before, mut events) = (queues(&e), 0usize);
        while !e.is_done() {
            e.run_until(e.next_event().max(e.now_ps()));
            events += 1;
            if events.is_multiple_of(50) {
                let t = events / 50 % e.threads().len();
                let mask = masks[events / 50 % masks.len()];
                let pus = (0..8).filter(|pu| mask >> pu & 1 == 1).map(PuId);
                e.restrict(t, pus.collect::<PuSet>());
                e.enforce_masks();
            }
            prop_assert_eq!(disorder(&e), None);
            let after = queues(&e);
            prop_assert!(before.iter().zip(&after).all(|(o, n)| in_order(o, n)));
            before = after;
            prop_assert!(e.now_ps() < 100_000 * MS, "the run does not end");
        }
        for result in e.results() {
            let done = result.completions[0].instructions;
            prop_assert!((done / 0.02e9 - 1.0).abs() < 1e-9, "{done}");
        }
    }

    #[test]
    fn splitting_time_changes_nothing(
        os in 0..2usize,
        seed in 0u64..1000,
        threads in 2u32..12,
        split in 100_000u64..5_000_000_000,
        frequent in any::<bool>(),
    ) {
        let spec = match frequent {
            true => only_locks(0.1, "per_minstr = 2000.0, hold_instr = 100.0, count = 1"),
            false => fighting(20.0),
        };
        let work = instances(&spec, 2, threads, 0.01);
        let run = |quantum: u64| {
            let mut e = engine(OS[os], RunMode::RestartUntilAllDone, &work, seed);
            let mut waited = 0;
            while !e.is_done() {
                e.run_until(e.now_ps() + quantum);
                waited += e.take_bottlenecks().iter().map(|b| b.waited_ns).sum::<u64>();
            }
            (e.now_ps(), waited, totals(&e), e.energy_j())
        };
        let (whole, parts) = (run(100_000 * MS), run(split));
        prop_assert_eq!(whole.0, parts.0);
        prop_assert!(whole.1.abs_diff(parts.1) <= 8);
        prop_assert!((whole.3 / parts.3 - 1.0).abs() < 1e-9);
        for (a, b) in whole.2.iter().zip(&parts.2) {
            prop_assert_eq!(a.futex_returns, b.futex_returns);
            prop_assert_eq!(a.context_switches, b.context_switches);
            prop_assert!((a.spin_s - b.spin_s).abs() < 1e-9);
            prop_assert!((a.instructions - b.instructions).abs() < 1e-3);
        }
    }

    #[test]
    fn same_seed_same_bytes_and_another_seed_another_run(seed in 0u64..1000) {
        let run = |seed| {
            let mut e = engine("linux", RunMode::Once, &instances(&fighting(5.0), 2, 6, 0.02), seed);
            e.run_until(100_000 * MS);
            (e.now_ps(), e.energy_j().to_bits(), totals(&e))
        };
        prop_assert_eq!(run(seed), run(seed));
        prop_assert_ne!(run(seed).0, run(seed + 1).0);
    }

    #[test]
    fn reported_waiting_equals_threads_waiting(
        seed in 0u64..1000,
        threads in 2u32..12,
        spin_us in prop_oneof![Just(0.0), Just(10.0)],
    ) {
        let spec = program_with(&format!(
            "[threads]\ndefault = 2\nmax = 64\nserial_share = 0.1\nspin_us = {spin_us:?}\n\
             barrier = {{ spacing_minstr = 1.0, imbalance = 0.2 }}\n\
             lock = {{ per_minstr = 10.0, hold_instr = 40000.0, count = 2 }}"
        ));
        let mut e = engine("linux", RunMode::RestartUntilAllDone, &instances(&spec, 1, threads, 1e3), seed);
        let mut reported = 0.0;
        for quantum in 1..20 {
            e.run_until(quantum * MS / 2);
            let all = e.take_bottlenecks();
            prop_assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
            reported += all.iter().map(|b| b.waited_ns as f64 * 1e-9).sum::<f64>();
        }
        let did: f64 = totals(&e).iter().map(|c| c.spin_s + c.blocked_s).sum();
        prop_assert!((reported - did).abs() < 1e-7, "{reported} {did}");
    }
}

/// One nJ per instruction, a core draws 1 W and another while a thread is on it, 5 W beside.
#[test]
fn energy_is_instructions_and_core_time() {
    for spin_us in [0.0, 5.0, 1e6] {
        let spec = only_locks(
            spin_us,
            "per_minstr = 10.0, hold_instr = 60000.0, count = 1",
        );
        let mut e = engine("pinned", RunMode::Once, &instances(&spec, 1, 4, 0.1), 2);
        for t in 0..4 {
            e.restrict(t, [PuId(2 * t as u32)].into_iter().collect());
        }
        e.enforce_masks();
        e.run_until(100_000 * MS);
        let sum = |of: fn(&ThreadCounts) -> f64| totals(&e).iter().map(of).sum::<f64>();
        let end_s = e.results()[0].completions[0].end_s;
        let cores = sum(|c| c.on_pu_s) + 4.0 * end_s;
        let expected = 1e-9 * sum(|c| c.instructions) + cores + 5.0 * end_s;
        assert!((e.energy_j() / expected - 1.0).abs() < 1e-9);
        assert!((sum(|c| c.instructions) / 0.1e9 - 1.0).abs() < 1e-9);
        assert!(sum(|c| c.spin_s + c.blocked_s) > 0.01);
    }
}

#[test]
fn holder_and_waiters_are_named() {
    let spec = only_locks(0.0, "per_minstr = 10.0, hold_instr = 90000.0, count = 1");
    let mut e = engine("linux", RunMode::Once, &instances(&spec, 2, 4, 1e3), 1);
    e.run_until(10 * MS);
    let all = e.take_bottlenecks();
    assert_eq!(
        all.iter().map(|b| b.id).collect::<Vec<_>>(),
        [1, (1 << 32) + 1]
    );
    for (bottleneck, program) in all.iter().zip(e.programs.iter()) {
        let lock = &program.locks[0];
        let id = |t: &usize| e.threads[*t].id;
        assert_eq!(bottleneck.executers, [id(&lock.holder.unwrap())]);
        assert!(
            bottleneck
                .waiters
                .iter()
                .eq(lock.queue.iter().map(id).collect::<Vec<_>>().iter())
        );
        assert!(bottleneck.waiters.len() >= 2 && bottleneck.waited_ns > 10_000_000);
    }
}

/// Mean wait at one lock of `n` threads that want it after exponential times of mean `think` and
/// hold it for exponential times of mean `hold`: the machine-repair model (Kleinrock, "Queueing
/// Systems", volume 1, section 3.8): throughput from the probability that the lock is free, the
/// wait from the cycle's length.
fn repair_wait(n: u32, think: f64, hold: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..n {
        term *= f64::from(n - k) * hold / think;
        sum += term;
    }
    let throughput = (1.0 - 1.0 / sum) / hold;
    f64::from(n) / throughput - think - hold
}

/// Mean wait per acquisition by events, s, and instructions per second of a thread that works.
fn mean_wait(n: u32, per_minstr: f64, hold_instr: f64) -> (f64, f64) {
    let lock = format!("per_minstr = {per_minstr:?}, hold_instr = {hold_instr:?}, count = 1");
    let mut e = engine(
        "linux",
        RunMode::Once,
        &instances(&only_locks(1e6, &lock), 1, n, 1e6),
        3,
    );
    e.run_until(800 * MS);
    let all = totals(&e);
    let acquisitions = all.iter().map(|c| c.instructions).sum::<f64>() * per_minstr / 1e6;
    let spun: f64 = all.iter().map(|c| c.spin_s).sum();
    (spun / acquisitions, e.threads()[0].rates.ips)
}

#[test]
fn mean_waits_follow_machine_repair_model() {
    for (n, hold) in [(2, 40_000.0), (4, 10_000.0), (4, 40_000.0)] {
        let (wait, ips) = mean_wait(n, 10.0, hold);
        let expected = repair_wait(n, (1e5 - hold) / ips, hold / ips);
        assert!(
            (wait / expected - 1.0).abs() < 0.05,
            "{n} {hold}: {wait} {expected}"
        );
    }
}

/// The same by the queueing model of frequent locks.
fn queued_wait(n: usize, per_minstr: f64, hold_instr: f64) -> f64 {
    let lock = format!("per_minstr = {per_minstr:?}, hold_instr = {hold_instr:?}, count = 1");
    let spec = only_locks(1e6, &lock);
    let e = engine("linux", RunMode::Once, &instances(&program(), 1, 1, 1.0), 1);
    let demand = Demand {
        lock: spec.threads.as_ref().and_then(|t| t.lock),
        ..e.threads()[0].demand.clone()
    };
    let running = (0..n).map(|core| RunningThread {
        pu: 2 * core,
        demand: &demand,
    });
    let solution = Solver::new(chip(1)).solve(&running.collect::<Vec<_>>());
    let solved = solution.threads[0];
    let wait_s = solved.stack.lock / solved.cpi / solved.ips * 1e6 / per_minstr;
    assert!((solved.lock.busy * solved.lock.wait_s / wait_s - 1.0).abs() < 1e-3);
    wait_s
}

/// The queueing model is an open queue in a closed loop: the better the less the lock is used.
#[test]
fn lock_models_agree_at_low_use() {
    for (hold, within) in [(2_000.0, 0.07), (10_000.0, 0.35)] {
        let (wait, _) = mean_wait(4, 10.0, hold);
        let queued = queued_wait(4, 10.0, hold);
        assert!(
            (queued / wait - 1.0).abs() < within,
            "{hold}: {queued} {wait}"
        );
    }
}

#[test]
fn long_waits_return_from_kernel_in_both_models() {
    let returns = |spin_us, lock| {
        let mut e = engine(
            "linux",
            RunMode::Once,
            &instances(&only_locks(spin_us, lock), 1, 4, 1e6),
            3,
        );
        e.run_until(200 * MS);
        let all = totals(&e);
        let sum: u64 = all.iter().map(|c| c.futex_returns).sum();
        (
            sum as f64,
            all.iter().map(|c| c.instructions).sum::<f64>(),
            e.threads()[0].rates,
        )
    };
    let far = "per_minstr = 10.0, hold_instr = 40000.0, count = 1";
    assert!(returns(1.0, far).0 > 100.0 && returns(1e6, far).0 == 0.0);
    let close = "per_minstr = 2000.0, hold_instr = 100.0, count = 1";
    let (all, instructions, rates) = returns(0.0, close);
    // Whoever sleeps is woken by a call of another.
    let waits = instructions * 2e-3 * rates.lock.busy;
    assert!((all / (2.0 * waits) - 1.0).abs() < 1e-3);
    let (fewer, _, _) = returns(rates.lock.wait_s * 1e6, close);
    assert!(
        (fewer / all - crate::math::exp(-1.0)).abs() < 1e-3,
        "{fewer} {all}"
    );
    assert_eq!(returns(1e6, close).0, 0.0);
}
