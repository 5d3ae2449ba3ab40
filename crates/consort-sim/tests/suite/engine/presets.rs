//! Every preset.

use super::build::{finish, instances, machine};
use consort_core::Machine;
use consort_sim::engine::RunMode;
use consort_sim::{machine as machines, program};

const MS: u64 = 1_000_000;

#[test]
fn every_program_does_its_work_with_one_thread_and_with_several() {
    for name in program::presets::names() {
        let spec = program::presets::find(name).unwrap();
        let threads = spec.threads.as_ref().map_or(1, |t| t.max.min(6));
        for n in [1, threads] {
            let work = instances(&[(name, n)], 0.02);
            let mut m = machine("power8", Some(2), "linux", RunMode::Once, &work, 10 * MS);
            finish(&mut m);
            let result = &m.results()[0];
            let divided = spec.threads.as_ref().is_none_or(|t| t.divide_work);
            let least = 0.02e9 * (1.0 - 1e-9);
            assert!(result.instructions >= least, "{name}@{n}: {result:?}");
            if divided || n == 1 {
                let whole = result.instructions / 0.02e9;
                assert!((whole - 1.0).abs() < 1e-9, "{name}@{n}: {whole}");
            }
            assert!(result.completions[0].energy_j > 0.0);
        }
    }
}

#[test]
fn every_machine_runs_more_threads_than_it_has_pus() {
    for name in machines::presets::names() {
        let mut m = machine(
            name,
            None,
            "linux",
            RunMode::Once,
            &instances(&[("gcc", 1)], 0.01),
            MS,
        );
        let pus = m.topology().pus().len();
        finish(&mut m);
        let programs: Vec<(&str, u32)> = ["mcf", "hmmer"].into_iter().map(|p| (p, 1)).collect();
        let work = instances(&programs.repeat(pus.div_ceil(2) + 1), 0.003);
        let mut m = machine(name, None, "linux", RunMode::Once, &work, 10 * MS);
        finish(&mut m);
        for result in m.results() {
            let done = result.completions[0].instructions;
            assert!((done / 0.003e9 - 1.0).abs() < 1e-9, "{name}: {done}");
        }
    }
}

#[test]
fn kernels_that_know_core_types_start_on_the_big_core() {
    let work = instances(&[("hmmer", 1)], 0.05);
    let mut m = machine("acmp-1+3", None, "linux-itmt", RunMode::Once, &work, MS);
    let seen = m.observe().unwrap().unwrap();
    let types = m.topology().core_types();
    let pu = seen.threads[0].last_pu.unwrap();
    let core = m.topology().core_of(pu).unwrap();
    let capacity = types[m.topology().cores()[core].core_type].capacity;
    assert_eq!(Some(capacity), types.iter().map(|t| t.capacity).max());
}
