//! Laws of the engine.

use super::testing::{chip, engine, instances, program, program_with};
use super::*;
use crate::program::ProgramSpec;
use consort_core::PuId;
use proptest::prelude::*;

mod calls;
mod company;
mod kernel;
mod locks;
mod phases;
mod restarts;

const MS: u64 = 1_000_000_000;
const OS: [&str; 7] = [
    "linux",
    "linux-2.6",
    "linux-acmp",
    "linux-grouped",
    "linux-itmt",
    "pinned",
    "random",
];

/// A program with everything that makes events.
fn busy() -> ProgramSpec {
    program_with(
        "[burstiness]\nlog_sd = 0.3\ncorrelation = 0.5\ninterval_ginstr = 0.01\n\
         [io]\nper_ginstr = 500.0\nblocked_us = 80.0\n\
         [threads]\ndefault = 2\nmax = 64\nserial_share = 0.05\nspin_us = 20.0\n\
         shared_data = 0.5\n\
         barrier = { spacing_minstr = 1.0, imbalance = 0.2 }\n\
         lock = { per_minstr = 10.0, hold_instr = 100.0, count = 4 }",
    )
}

/// Runs to the end in quanta of `quantum` ps, without the models that depend on quanta.
fn finish(engine: &mut Engine, quantum: u64) {
    while !engine.is_done() {
        let end = engine.now_ps() + quantum;
        engine.run_until(end);
        assert!(engine.now_ps() < 1_000_000 * MS, "the run does not end");
    }
}

fn totals(engine: &Engine) -> Vec<ThreadCounts> {
    engine
        .threads()
        .iter()
        .map(|t| t.counters.total())
        .collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9)
}

#[test]
fn a_thread_alone_runs_at_the_solvers_rate_after_one_switch() {
    let mut e = engine("linux", RunMode::Once, &instances(&program(), 1, 1, 1.0), 1);
    finish(&mut e, 10 * MS);
    let thread = &e.threads()[0];
    let total = thread.counters.total();
    let switch = 2000.0 / 2e9;
    assert_eq!(total.instructions, 1e9);
    assert!(close(total.on_pu_s, 1e9 / thread.rates.ips + switch));
    assert!(close(total.overhead_s, switch));
    assert!(close(total.stack.total(), total.cycles - 2000.0));
    let completion = e.results()[0].completions[0];
    assert!(close(completion.end_s, total.on_pu_s));
    // One nJ per instruction, 2 W for its core, 3 idle cores and 5 W beside.
    assert!(close(completion.energy_j, 1.0 + 2.0 * total.on_pu_s));
    assert!(close(
        e.energy_j(),
        completion.energy_j + 8.0 * total.on_pu_s
    ));
}

#[test]
fn two_on_one_pu_share_it_by_slices() {
    let work = instances(&program(), 9, 1, 1.0);
    let mut e = engine("pinned", RunMode::Once, &work, 1);
    e.run_until(80 * MS);
    let totals = totals(&e);
    let sharing: Vec<&ThreadCounts> = totals.iter().filter(|c| c.wait_s > 0.0).collect();
    assert_eq!(sharing.len(), 2);
    for counts in sharing {
        assert!((counts.on_pu_s - 0.04).abs() < 1e-3);
        assert!(counts.context_switches >= 10);
    }
}

#[test]
fn equal_threads_that_reach_everything_at_one_instant_come_to_an_end() {
    let spec = program_with(
        "[threads]\ndefault = 2\nmax = 64\n\
         barrier = { spacing_minstr = 1.0, imbalance = 0.0 }\n\
         [io]\nper_ginstr = 1000.0\nblocked_us = 0.0",
    );
    let mut e = engine("linux", RunMode::Once, &instances(&spec, 1, 24, 0.2), 1);
    finish(&mut e, MS);
    assert!(close(e.results()[0].instructions, 0.2e9));
}

#[test]
fn long_waiters_return_from_kernel() {
    let spec =
        program_with("[threads]\ndefault = 2\nmax = 64\nserial_share = 0.5\nspin_us = 100.0");
    let mut e = engine("linux", RunMode::Once, &instances(&spec, 1, 2, 0.2), 1);
    finish(&mut e, MS);
    let totals = totals(&e);
    // One sleeps until the other wakes it, which takes both into the kernel.
    assert_eq!((totals[0].futex_returns, totals[1].futex_returns), (1, 1));
    assert!(totals[1].blocked_s > 0.01);
    assert!(close(totals[0].instructions, 0.15e9));
    assert!(close(totals[1].instructions, 0.05e9));
}

#[test]
fn programs_start_again_until_the_last_has_finished_once() {
    let mut work = instances(&program(), 1, 1, 0.1);
    work.extend(instances(&program(), 1, 1, 0.5));
    let mut e = engine("pinned", RunMode::RestartUntilAllDone, &work, 1);
    finish(&mut e, MS);
    let results = e.results();
    assert_eq!(results[1].completions.len(), 1);
    assert!(results[0].completions.len() >= 4);
    for pair in results[0].completions.windows(2) {
        assert_eq!(pair[0].end_s, pair[1].start_s);
        assert!(close(pair[1].instructions, 0.1e9));
    }
}

#[test]
fn processes_share_the_work_and_are_placed_anew() {
    let pus = |processes: u32| {
        let spec = ProgramSpec {
            processes: Some(processes),
            ..program()
        };
        let work = instances(&spec, 1, 1, 0.3);
        let mut e = engine("pinned", RunMode::OnceByProcesses, &work, 1);
        let mut pus = Vec::new();
        while !e.is_done() {
            pus.extend(e.threads()[0].queue.pu);
            e.run_until(e.now_ps() + MS);
        }
        pus.dedup();
        let done = &e.results()[0].completions;
        assert_eq!(done.len(), 1);
        assert!(close(done[0].instructions, 0.3e9));
        pus
    };
    // pinned deals what starts to CPUs in turn.
    assert_eq!(pus(1), [0]);
    assert_eq!(pus(3), [0, 1, 2]);
}

#[test]
fn programs_start_again_until_the_last_has_finished_so_many_times() {
    let mut work = instances(&program(), 1, 1, 0.1);
    work.extend(instances(&program(), 1, 1, 0.5));
    let mut e = engine("pinned", RunMode::RestartUntilAllDoneTimes(3), &work, 1);
    finish(&mut e, MS);
    assert_eq!(e.results()[1].completions.len(), 3);
}

#[test]
fn adding_a_program_leaves_the_draws_of_the_others() {
    let first = |n| {
        let e = engine("pinned", RunMode::Once, &instances(&busy(), n, 2, 0.1), 5);
        let thread = &e.threads()[1];
        (thread.demand.intensity, thread.work.io.left)
    };
    assert_eq!(first(1), first(4));
}

#[test]
fn equal_programs_on_equal_places_share_solutions() {
    let work = instances(&program(), 4, 1, 1.0);
    let settings = testing::settings("pinned", RunMode::Once, 1);
    let meter = Box::new(testing::PlainEnergy);
    let mut e = Engine::new(chip(1), &work, &settings, meter).unwrap();
    e.run_until(10 * MS);
    let misses = e.memo_use().misses;
    e.remap(&[1, 0, 3, 2, 4, 5, 6, 7]).unwrap();
    e.run_until(20 * MS);
    assert_eq!(e.memo_use().misses, misses);
    assert!(e.memo_use().hits > 0);
}

#[test]
fn copies_of_a_program_run_one_binary_and_have_their_own_data() {
    let mut work = instances(&program(), 2, 1, 1.0);
    work.extend(instances(&busy(), 2, 2, 1.0));
    let e = engine("pinned", RunMode::Once, &work, 1);
    let of = |number: fn(&Demand) -> u32| -> Vec<u32> {
        e.threads().iter().map(|t| number(&t.demand)).collect()
    };
    assert_eq!(of(|d| d.program), [0, 1, 2, 2, 3, 3]);
    let text = of(|d| d.text);
    assert!(text[0] == text[1] && text[2..].iter().all(|t| *t == text[2]));
    assert_ne!(text[0], text[2]);
    assert!(e.threads().iter().all(|t| t.demand.shared_code == 1.0));
    let data: Vec<f64> = e.threads().iter().map(|t| t.demand.shared_data).collect();
    assert_eq!(data, [0.0, 0.0, 0.5, 0.5, 0.5, 0.5]);
}

#[test]
fn hardware_exchange_costs_registers_and_drain() {
    let work = instances(&program(), 2, 1, 1.0);
    let mut e = engine("pinned", RunMode::Once, &work, 1);
    e.run_until(10 * MS);
    let before = totals(&e);
    e.remap(&[2, 1, 0, 3, 4, 5, 6, 7]).unwrap();
    // Registers, drain and refill are hardware's doing and the thread's own.
    assert!(!e.is_in_kernel(0) && !e.is_in_kernel(1));
    e.run_until(20 * MS);
    let after = totals(&e);
    let on = |pu| {
        e.threads()
            .iter()
            .position(|t| t.queue.pu == Some(pu))
            .unwrap()
    };
    let (moved, stayed) = (on(0), on(1));
    let paid = after[moved].overhead_s - before[moved].overhead_s;
    assert!((paid - 1012.0 / 2e9).abs() < 1e-9, "{paid}");
    assert_eq!(after[moved].migrations, 0);
    assert_eq!(after[stayed].overhead_s, before[stayed].overhead_s);
}

#[test]
fn invalid_programs_are_refused_with_reason() {
    let refuse = |change: fn(&mut SimulatedProgram)| {
        let mut work = instances(&program(), 1, 1, 1.0);
        work.iter_mut().for_each(change);
        let settings = testing::settings("linus", RunMode::Once, 1);
        let made = Engine::new(chip(1), &work, &settings, Box::new(testing::PlainEnergy));
        made.err().unwrap().to_string()
    };
    assert_eq!(
        refuse(|i| i.threads = 0),
        "plain has 0 threads; give at least 1"
    );
    assert!(refuse(|i| i.instructions = f64::NAN).contains("positive finite"));
    assert!(refuse(|i| i.start_ms = -1.0).contains("from 0 on"));
    assert!(refuse(|_| ()).contains("did you mean 'linux'?"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn splitting_time_changes_nothing(
        os in 0..3usize,
        seed in 0u64..1000,
        n in 1usize..4,
        threads in 1u32..5,
        split in 1_000_000u64..20_000_000_000,
    ) {
        let work = instances(&busy(), n, threads, 0.05);
        let mut whole = engine(OS[os], RunMode::Once, &work, seed);
        let mut parts = engine(OS[os], RunMode::Once, &work, seed);
        finish(&mut whole, 100_000 * MS);
        finish(&mut parts, split);
        prop_assert_eq!(whole.now_ps(), parts.now_ps());
        prop_assert!(close(whole.energy_j(), parts.energy_j()));
        for (a, b) in totals(&whole).iter().zip(totals(&parts)) {
            prop_assert!(close(a.instructions, b.instructions));
            prop_assert!(close(a.energy_j, b.energy_j));
            prop_assert!(close(a.on_pu_s, b.on_pu_s));
            prop_assert_eq!(a.context_switches, b.context_switches);
        }
    }

    #[test]
    fn work_and_time_are_accounted_for(
        os in 0..4usize,
        seed in 0u64..1000,
        n in 1usize..5,
        threads in 1u32..6,
    ) {
        let work = instances(&busy(), n, threads, 0.05);
        let mut e = engine(OS[os], RunMode::Once, &work, seed);
        while !e.is_done() {
            e.begin_quantum();
            let end = e.now_ps() + 5 * MS;
            e.run_until(end);
            prop_assert!(end < 100_000 * MS);
        }
        for result in e.results() {
            prop_assert!((result.instructions / 0.05e9 - 1.0).abs() < 1e-9);
            prop_assert!(result.completions[0].end_s > 0.0);
        }
        let busy: f64 = totals(&e).iter().map(|c| c.energy_j).sum();
        prop_assert!(busy < e.energy_j());
        for thread in e.threads() {
            let c = thread.counters.total();
            let spent = c.on_pu_s + c.wait_s + c.blocked_s;
            let lived = e.results()[thread.program].completions[0].end_s;
            prop_assert!(close(spent, lived), "{spent} {lived}");
            prop_assert!(c.wait_s >= 0.0 && c.overhead_s >= 0.0 && c.spin_s >= 0.0);
            let progress = c.on_pu_s - c.overhead_s - c.spin_s;
            // Every event may come up to a picosecond late.
            let rounding = 1e-6 * c.on_pu_s;
            prop_assert!((progress - c.stack.total() / 2e9).abs() <= rounding);
        }
    }

    #[test]
    fn threads_never_starve_and_masks_hold(
        os in 0..4usize,
        seed in 0u64..1000,
        n in 1usize..30,
        masks in prop::collection::vec(1u8..=255, 30),
    ) {
        let mut e = engine(OS[os], RunMode::RestartUntilAllDone, &instances(&program(), n, 1, 9.0), seed);
        for (t, mask) in masks.iter().enumerate().take(n) {
            let pus = (0..8).filter(|pu| mask >> pu & 1 == 1).map(PuId);
            e.restrict(t, pus.collect());
        }
        e.enforce_masks();
        for quantum in 1..40 {
            e.begin_quantum();
            e.run_until(quantum * 10 * MS);
            for thread in e.threads().iter().filter(|t| t.is_runnable()) {
                let pu = PuId(thread.queue.pu.unwrap() as u32);
                prop_assert!(thread.queue.allowed.contains(pu));
            }
        }
        for thread in e.threads() {
            prop_assert!(thread.counters.total().instructions > 0.0, "{:?}", thread.id);
        }
    }

    #[test]
    fn same_seed_same_run(os in 0..4usize, seed in 0u64..1000, threads in 1u32..5) {
        let run = || {
            let mut e = engine(OS[os], RunMode::RestartUntilAllDone, &instances(&busy(), 3, threads, 0.03), seed);
            finish(&mut e, 3 * MS);
            (e.now_ps(), e.energy_j().to_bits(), totals(&e))
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn equal_programs_on_equal_cores_do_equally_well(seed in 0u64..1000) {
        let mut e = engine("linux", RunMode::Once, &instances(&program(), 4, 1, 0.1), seed);
        finish(&mut e, MS);
        let results = e.results();
        for result in &results {
            prop_assert_eq!(result.completions[0].end_s, results[0].completions[0].end_s);
        }
    }
}
