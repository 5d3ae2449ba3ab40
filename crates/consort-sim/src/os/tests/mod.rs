//! Decisions of the models for the same threads.

use crate::engine::testing::{
    PlainEnergy, chip, chip_with_memory, engine, instances, program, program_with, settings,
};
use crate::engine::{Engine, RunMode, SimulatedThread};

mod ends;

const MS: u64 = 1_000_000_000;

/// Cores (of four, two CPUs each) of all threads after `ms`.
fn cores(os: &str, n: usize, seed: u64, ms: u64) -> Vec<usize> {
    let mut e = engine(os, RunMode::Once, &instances(&program(), n, 1, 9.0), seed);
    e.run_until(ms * MS);
    e.threads()
        .iter()
        .filter_map(|t| t.queue.pu)
        .map(|pu| pu / 2)
        .collect()
}

fn counts(cores: &[usize]) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..4)
        .map(|c| cores.iter().filter(|&&x| x == c).count())
        .collect();
    counts.sort_unstable();
    counts
}

#[test]
fn linux_gives_every_thread_a_core_then_every_thread_a_pu() {
    for seed in 0..20 {
        assert_eq!(counts(&cores("linux", 4, seed, 1)), [1, 1, 1, 1]);
        assert_eq!(counts(&cores("linux", 6, seed, 1)), [1, 1, 2, 2]);
        assert_eq!(counts(&cores("linux", 8, seed, 1)), [2, 2, 2, 2]);
    }
}

#[test]
fn where_threads_start_depends_on_the_seed_and_they_stay_there() {
    let starts: Vec<Vec<usize>> = (0..20).map(|seed| cores("linux", 4, seed, 1)).collect();
    assert!(starts.iter().any(|s| *s != starts[0]));
    for (seed, start) in starts.iter().enumerate() {
        assert_eq!(*start, cores("linux", 4, seed as u64, 3000));
    }
}

#[test]
fn pinned_deals_in_turn() {
    let mut found = cores("pinned", 8, 1, 1);
    found.sort_unstable();
    assert_eq!(found, [0, 0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn random_places_anew_every_quantum_and_evenly() {
    let mut e = engine(
        "random",
        RunMode::Once,
        &instances(&program(), 8, 1, 9.0),
        1,
    );
    let mut seen = std::collections::BTreeSet::new();
    for quantum in 1..10 {
        e.begin_quantum();
        e.run_until(quantum * 10 * MS);
        let pus: Vec<usize> = e.threads().iter().filter_map(|t| t.queue.pu).collect();
        let mut sorted = pus.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        seen.insert(pus);
    }
    assert!(seen.len() > 7);
}

/// Crowded on one core by masks that are then lifted.
fn released(os: &str, n: usize) -> Engine {
    let mut e = engine(os, RunMode::Once, &instances(&program(), n, 1, 9.0), 1);
    (0..n).for_each(|t| e.restrict(t, "0-1".parse().unwrap()));
    e.enforce_masks();
    e.run_until(10 * MS);
    (0..n).for_each(|t| e.restrict(t, "0-7".parse().unwrap()));
    e.run_until(1000 * MS);
    e
}

#[test]
fn linux_evens_out_runnable_counts() {
    for n in [2, 4, 8] {
        let e = released("linux", n);
        let cores: Vec<usize> = e
            .threads()
            .iter()
            .filter_map(|t| t.queue.pu)
            .map(|pu| pu / 2)
            .collect();
        let most = counts(&cores)[3];
        assert_eq!(most, n.div_ceil(4), "{n}: {cores:?}");
    }
}

#[test]
fn two_nodes_share_the_load() {
    for seed in 0..5 {
        let work = instances(&program(), 8, 1, 9.0);
        let settings = settings("linux", RunMode::Once, seed);
        let mut e = Engine::new(chip(2), &work, &settings, Box::new(PlainEnergy)).unwrap();
        e.run_until(MS);
        let near = e
            .threads()
            .iter()
            .filter(|t| t.queue.pu.is_some_and(|pu| pu < 8))
            .count();
        assert_eq!(near, 4);
        let at_home = |t: &SimulatedThread| t.queue.pu.map(|pu| pu / 8) == Some(t.demand.home_node);
        assert!(e.threads().iter().all(at_home));
    }
}

#[test]
fn memory_comes_to_lie_where_there_is_any() {
    let work = instances(&program(), 8, 1, 9.0);
    let settings = settings("linux", RunMode::Once, 1);
    let chip = chip_with_memory(2, Some(vec![1]));
    let mut e = Engine::new(chip, &work, &settings, Box::new(PlainEnergy)).unwrap();
    e.run_until(MS);
    let homes = e.threads().iter().map(|t| t.demand.home_node);
    assert_eq!(homes.collect::<Vec<_>>(), [1; 8]);
}

#[test]
fn above_a_hardware_scheduler_all_cores_are_alike() {
    let sharing = |logical_cores| {
        let mut settings = settings("linux", RunMode::Once, 1);
        settings.logical_cores = logical_cores;
        let on_one_core = (0..20).filter(|&seed| {
            settings.seed = seed;
            let work = instances(&program(), 2, 1, 9.0);
            let mut e = Engine::new(chip(1), &work, &settings, Box::new(PlainEnergy)).unwrap();
            e.run_until(MS);
            let pus: Vec<usize> = e.threads().iter().filter_map(|t| t.queue.pu).collect();
            pus[0] / 2 == pus[1] / 2
        });
        on_one_core.count()
    };
    assert_eq!(sharing(false), 0);
    assert!(sharing(true) > 0);
}

#[test]
fn programs_begin_when_they_are_to() {
    let mut work = instances(&program(), 2, 1, 0.1);
    work[1].start_ms = 7.5;
    let mut e = engine("linux", RunMode::Once, &work, 1);
    e.run_until(1000 * MS);
    let begun: Vec<f64> = e
        .results()
        .iter()
        .map(|r| r.completions[0].start_s)
        .collect();
    assert_eq!(begun, [0.0, 0.0075]);
}

/// Threads that block, spin and sleep, more of them than CPUs, so that the system has to move some.
fn restless() -> Vec<crate::engine::SimulatedProgram> {
    let spec = program_with(
        "[io]\nper_ginstr = 500.0\nblocked_us = 80.0\n\
         [threads]\ndefault = 2\nmax = 64\nspin_us = 20.0\n\
         barrier = { spacing_minstr = 1.0, imbalance = 0.3 }",
    );
    instances(&spec, 7, 3, 0.02)
}

/// The LLC domains (of two) that each thread was seen in.
fn domains(os: &str) -> Vec<Vec<usize>> {
    let settings = settings(os, RunMode::RestartUntilAllDone, 3);
    let mut e = Engine::new(chip(2), &restless(), &settings, Box::new(PlainEnergy)).unwrap();
    let mut seen = vec![std::collections::BTreeSet::new(); e.threads().len()];
    for ms in 1..200 {
        e.run_until(ms * MS);
        let pus = e.threads().iter().map(|t| t.queue.pu);
        let note = |(seen, pu): (&mut std::collections::BTreeSet<usize>, Option<usize>)| {
            seen.extend(pu.map(|pu| pu / 8));
        };
        seen.iter_mut().zip(pus).for_each(note);
    }
    seen.into_iter().map(|s| s.into_iter().collect()).collect()
}

#[test]
fn grouped_keeps_threads_in_the_domain_where_they_began() {
    let kept = domains("linux-grouped");
    assert!(kept.iter().all(|seen| seen.len() == 1), "{kept:?}");
    let home = |llc| kept.iter().filter(|seen| seen[0] == llc).count();
    assert_eq!(home(0).abs_diff(home(1)), 1);
    // The plain model does move threads across.
    assert!(domains("linux").iter().any(|seen| seen.len() == 2));
}

#[test]
fn grouped_is_linux_on_a_machine_with_one_domain() {
    let run = |os| {
        let mut e = engine(os, RunMode::RestartUntilAllDone, &restless(), 3);
        let mut reported = Vec::new();
        for ms in 1..200 {
            e.run_until(ms * MS);
            let threads = e.threads().iter();
            reported.push(
                threads
                    .map(|t| (t.queue.pu, t.counters.total()))
                    .collect::<Vec<_>>(),
            );
        }
        format!("{reported:?} {:?} {}", e.results(), e.energy_j())
    };
    assert!(run("linux-grouped") == run("linux"));
}

#[test]
fn grouped_places_a_thread_anew_that_may_no_longer_run_in_its_domain() {
    let settings = settings("linux-grouped", RunMode::Once, 1);
    let work = instances(&program(), 1, 1, 9.0);
    let mut e = Engine::new(chip(2), &work, &settings, Box::new(PlainEnergy)).unwrap();
    e.run_until(MS);
    let other = 1 - e.threads()[0].queue.pu.unwrap() / 8;
    let pus = |llc: usize| format!("{}-{}", 8 * llc, 8 * llc + 7).parse().unwrap();
    e.restrict(0, pus(other));
    e.enforce_masks();
    assert_eq!(e.threads()[0].queue.pu.map(|pu| pu / 8), Some(other));
    // It is there to stay.
    e.restrict(0, "0-15".parse().unwrap());
    e.enforce_masks();
    e.run_until(500 * MS);
    assert_eq!(e.threads()[0].queue.pu.map(|pu| pu / 8), Some(other));
}

/// One large core, CPU 0, and three small ones; the first thread comes to the large one.
fn asymmetric(work: &[crate::engine::SimulatedProgram], logical_cores: bool) -> Engine {
    asymmetric_from(4, work, logical_cores)
}

/// The same, with a seed.
fn asymmetric_from(
    seed: u64,
    work: &[crate::engine::SimulatedProgram],
    logical_cores: bool,
) -> Engine {
    let mut settings = settings("linux-acmp", RunMode::Once, seed);
    settings.logical_cores = logical_cores;
    let spec = crate::machine::presets::find("acmp-1+3").unwrap();
    let chip = std::sync::Arc::new(crate::chip::Chip::new(&spec, None).unwrap());
    Engine::new(chip, work, &settings, Box::new(PlainEnergy)).unwrap()
}

/// A thread that sleeps for long and runs for more than a quantum in between, and one that begins
/// after it and never sleeps.
fn sleeper_and_worker() -> Vec<crate::engine::SimulatedProgram> {
    let sleeper = program_with("[io]\nper_ginstr = 20.0\nblocked_us = 20000.0");
    let mut work = instances(&sleeper, 1, 1, 9.0);
    work.extend(instances(&program(), 1, 1, 9.0));
    work[1].start_ms = 0.5;
    work
}

/// For every step of 0.1 ms until an instant, ms, the CPU of the worker, and how long the sleeper
/// has slept, ms.
fn watched(e: &mut Engine, ms: u64) -> Vec<(Option<usize>, f64)> {
    let mut asleep_ms = 0.0;
    let step = |tenth: u64| {
        e.run_until(tenth * MS / 10);
        let [sleeper, worker] = [&e.threads()[0], &e.threads()[1]];
        asleep_ms = if sleeper.is_runnable() {
            0.0
        } else {
            asleep_ms + 0.1
        };
        (worker.queue.pu, asleep_ms)
    };
    (10..=10 * ms).map(step).collect()
}

#[test]
fn acmp_deals_in_turn_and_keeps_threads_there() {
    let parallel = program_with("[threads]\ndefault = 8\nmax = 8\nspin_us = 5.0");
    let work = instances(&parallel, 1, 8, 9.0);
    for first in 0..4 {
        let mut e = asymmetric_from(8 + first as u64, &work, false);
        for ms in 1..100 {
            e.run_until(ms * MS);
            let pus: Vec<_> = e.threads().iter().filter_map(|t| t.queue.pu).collect();
            let expect: Vec<_> = (0..8).map(|n| (first + n) % 4).collect();
            assert_eq!(pus, expect);
        }
    }
}

#[test]
fn acmp_s_large_core_takes_a_running_thread_at_the_fourth_idle_quantum() {
    let seen = watched(&mut asymmetric(&sleeper_and_worker(), false), 500);
    let mut helped = 0;
    for (at, pair) in seen.windows(2).enumerate() {
        let [(before, asleep_ms), (after, _)] = pair else {
            unreachable!()
        };
        if before != after {
            // Steps begin at 1 ms.
            assert_eq!((at + 10) % 40, 39, "a move between the ends of quanta");
        }
        if before != after && *after == Some(0) {
            helped += 1;
            // Three quanta after the first attempt, which may come as soon as it sleeps.
            assert!(*asleep_ms > 11.9, "{asleep_ms}");
        }
    }
    assert!(helped > 5, "{helped}");
}

#[test]
fn acmp_s_large_core_leaves_running_threads_at_short_waits() {
    let spec = program_with(
        "[threads]\ndefault = 4\nmax = 4\nspin_us = 5.0\n\
         barrier = { spacing_minstr = 2.0, imbalance = 0.0 }",
    );
    let mut e = asymmetric(&instances(&spec, 1, 4, 9.0), false);
    e.run_until(500 * MS);
    let totals = e.threads().iter().map(|t| t.counters.total());
    let moved: Vec<_> = totals.map(|c| (c.migrations, c.blocked_s > 0.05)).collect();
    // The large core's own thread waits at every barrier, for less than a quantum.
    assert_eq!(moved[0], (0, true));
    assert!(
        moved.iter().all(|(migrations, _)| *migrations <= 4),
        "{moved:?}"
    );
}

#[test]
fn acmp_takes_nothing_where_all_cores_are_alike() {
    let seen = watched(&mut asymmetric(&sleeper_and_worker(), true), 500);
    assert!(seen.iter().all(|(pu, _)| *pu == Some(1)));
}

/// Time that three threads wait on a CPU each of two LLC domains, of which each sleeps 0.1 ms after
/// some 0.1 ms of work; and their moves.
fn waits_and_moves(os: &str) -> (f64, u64) {
    let io = "[io]\nper_ginstr = 2000.0\nblocked_us = 100.0";
    let work = instances(&program_with(io), 3, 1, 1000.0);
    let settings = settings(os, RunMode::Once, 1);
    let mut e = Engine::new(chip(2), &work, &settings, Box::new(PlainEnergy)).unwrap();
    (0..3).for_each(|t| e.restrict(t, "0,8".parse().unwrap()));
    e.enforce_masks();
    e.run_until(1000 * MS);
    let totals: Vec<_> = { e.threads().iter() }.map(|t| t.counters.total()).collect();
    let moves = totals.iter().map(|c| c.migrations).sum();
    (totals.iter().map(|c| c.wait_s).sum(), moves)
}

/// A CPU that is idle for 0.1 ms at a time pulls no thread from the other LLC domain, for all that
/// moving one is taken to cost 0.5 ms.
#[test]
fn short_idle_times_pull_no_thread() {
    let (now, then) = (waits_and_moves("linux"), waits_and_moves("linux-2.6"));
    assert!(then.1 * 10 < now.1, "{now:?} {then:?}");
    assert!(then.0 > now.0, "{now:?} {then:?}");
}

#[test]
fn kernels_differ_in_nothing_without_sleep() {
    for seed in 0..5 {
        assert_eq!(
            cores("linux-2.6", 6, seed, 100),
            cores("linux", 6, seed, 100)
        );
    }
}
