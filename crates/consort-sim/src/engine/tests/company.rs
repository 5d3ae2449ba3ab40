//! Variation that threads have in common, and the delay until others feel that one has stopped.

use super::super::calendar::LAG_PS;
use super::super::testing::{engine, instances, program_with};
use super::super::thread::ThreadStatus;
use super::super::{Engine, RunMode};
use super::MS;

const BURSTS: &str = "[burstiness]\nlog_sd = 0.3\ncorrelation = 0.5\ninterval_ginstr = 0.01\n";
const BARRIERS: &str = "[threads]\ndefault = 4\nmax = 4\n\
    barrier = { spacing_minstr = 1.0, imbalance = 0.2 }";
const NO_BARRIERS: &str = "[threads]\ndefault = 4\nmax = 4\n";
const IO: &str = "[io]\nper_ginstr = 100.0\nblocked_us = 80.0";

/// Returns the intensities of a program's four threads after half a second.
fn intensities(threads: &str) -> Vec<f64> {
    let spec = program_with(&format!("{BURSTS}{threads}"));
    let mut e = engine("linux", RunMode::Once, &instances(&spec, 1, 4, 10.0), 1);
    e.run_until(500 * MS);
    e.threads().iter().map(|t| t.demand.intensity).collect()
}

#[test]
fn threads_with_barriers_vary_together() {
    let together = intensities(BARRIERS);
    assert!(together[0] != 1.0 && together.iter().all(|&i| i == together[0]));
    let apart = intensities(NO_BARRIERS);
    assert!(apart[1..].iter().all(|&i| i != apart[0]), "{apart:?}");
}

/// Programs at the instant at which the first of them sleeps, and how often rates were asked for.
fn one_sleeps(programs: usize) -> (Engine, u64) {
    let work = instances(&program_with(IO), programs, 1, 1.0);
    let mut e = engine("linux", RunMode::Once, &work, 1);
    let sleeps = |e: &Engine| {
        e.threads()
            .iter()
            .any(|t| matches!(t.status, ThreadStatus::Io(_)))
    };
    while !sleeps(&e) {
        e.run_until_activity(1000 * MS);
    }
    let requested = requested(&e);
    (e, requested)
}

fn requested(e: &Engine) -> u64 {
    let usage = e.memo_use();
    usage.hits + usage.misses
}

#[test]
fn stop_changes_own_core_at_once() {
    let (mut e, before) = one_sleeps(8);
    e.run_until(e.now_ps() + 2);
    assert_eq!(requested(&e), before + 1);
}

#[test]
fn stop_changes_other_cores_later() {
    let (mut e, before) = one_sleeps(2);
    let stopped = e.now_ps();
    e.run_until(stopped + LAG_PS - 1);
    assert_eq!(requested(&e), before);
    e.run_until(stopped + LAG_PS + 2);
    assert_eq!(requested(&e), before + 1);
}
