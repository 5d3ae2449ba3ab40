//! Phases of programs whose threads share their work.

use super::super::testing::{engine, instances, program_with};
use super::super::{Engine, RunMode};
use crate::engine::calendar::PS_PER_MS as MS;
use crate::program::ProgramSpec;

/// Two phases of 0.5·10⁹ instructions, the second with a share of 0.2 floating point.
fn phased(threads: &str) -> ProgramSpec {
    let mut spec = program_with(&format!("[threads]\ndefault = 4\nmax = 4\n{threads}"));
    spec.phases[0].length_ginstr = 0.5;
    spec.phases.push(spec.phases[0].clone());
    spec.phases[1].mix.int -= 0.2;
    spec.phases[1].mix.fp = 0.2;
    spec
}

/// Instructions of each thread in a whole run of 10⁹, in all and in floating point, 10⁶.
fn executed(engine: &Engine) -> Vec<[f64; 2]> {
    let totals = engine.threads.iter().map(|t| t.counters.total());
    totals
        .map(|c| [c.instructions / 1e6, c.classes.fp / 1e6])
        .collect()
}

fn run(spec: &ProgramSpec) -> Engine {
    let mut engine = engine("linux", RunMode::Once, &instances(spec, 1, 4, 1.0), 1);
    engine.run_until(100_000 * MS);
    assert!(engine.is_done());
    engine
}

fn is_near(all: &[[f64; 2]], expected: [[f64; 2]; 4]) -> bool {
    let pairs = all.iter().flatten().zip(expected.iter().flatten());
    all.len() == 4 && { pairs }.all(|(a, b)| (a - b).abs() < 1e-3)
}

#[test]
fn threads_share_each_phase() {
    let each = [250.0, 0.2 * 125.0];
    for threads in ["", "barrier = { spacing_minstr = 5.0, imbalance = 0.0 }"] {
        let all = executed(&run(&phased(threads)));
        assert!(is_near(&all, [each; 4]), "{all:?}");
    }
}

#[test]
fn short_run_is_the_program_in_small() {
    // 0.2·10⁹ instructions of a program of 10⁹, twice.
    let spec = phased("serial_share = 0.5");
    let mode = RunMode::RestartUntilAllDoneTimes(2);
    let mut engine = engine("linux", mode, &instances(&spec, 1, 4, 0.2), 1);
    engine.run_until(100_000 * MS);
    assert!(engine.is_done());
    let all = executed(&engine);
    let part = |all: f64| 0.4 * all;
    let other = [part(125.0), part(25.0)];
    assert!(
        is_near(&all, [[part(625.0), part(25.0)], other, other, other]),
        "{all:?}"
    );
}

#[test]
fn first_thread_has_phases_of_its_serial_section() {
    let all = executed(&run(&phased("serial_share = 0.5")));
    let other = [125.0, 0.2 * 125.0];
    // The first phase is its own, and a quarter of the second.
    let first = [625.0, 0.2 * 125.0];
    assert!(is_near(&all, [first, other, other, other]), "{all:?}");
}

#[test]
fn each_thread_passes_through_phases_of_undivided_work() {
    let all = executed(&run(&phased("divide_work = false")));
    assert!(is_near(&all, [[1000.0, 100.0]; 4]), "{all:?}");
}

#[test]
fn smaller_team_passes_through_the_rest_of_its_step() {
    let work = instances(&phased(""), 1, 4, 1.0);
    let mut engine = engine("linux", RunMode::Once, &work, 1);
    engine.run_until(20 * MS);
    engine.set_team(0, 2);
    engine.run_until(100_000 * MS);
    assert!(engine.is_done());
    let fp: f64 = executed(&engine).iter().map(|[_, fp]| fp).sum();
    assert!((fp - 100.0).abs() < 1e-3, "{fp}");
}
