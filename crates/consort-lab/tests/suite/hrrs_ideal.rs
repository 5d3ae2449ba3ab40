//! Simulated `hrrs` against its closed form: equal threads, moves that cost nothing.

use consort_experiment::{Contender, Experiment, measure_alone};
use consort_lab::studies::IdealRoundRobin;
use consort_sim::chip::Chip;
use consort_sim::machine::{MachineSpec, presets as machines};
use consort_sim::program::presets as programs;
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

const SEED: u64 = 1;
/// Work of each thread: what the large core does in this time, s. Longer than a hundred rounds of
/// 16 quanta, so that the last, begun round is below one percent.
const ALONE_S: f64 = 0.8;

fn thread(number: u32) -> ProgramInstance {
    let program = programs::find("pure-int").expect("a preset");
    ProgramInstance {
        name: format!("pure-int#{number}"),
        program: Arc::new(program),
        threads: 1,
        start_ms: 0.0,
    }
}

/// Instructions per second alone on the core of this number.
fn ips(spec: &MachineSpec, core: usize) -> f64 {
    let chip = Chip::with_cores(spec, None, &|number| number == core).expect("a core");
    let work = measure_alone(&Arc::new(chip), &thread(0), 1.0, SEED).expect("it runs");
    work.instructions
}

/// The machine with its small cores' clock such that the large core, the first, is `ratio` times
/// as fast.
fn machine(name: &str, ratio: f64) -> MachineSpec {
    let mut spec = machines::find(name).expect("a preset");
    let given = ips(&spec, 0) / ips(&spec, 1);
    let small = spec.core_types.get_mut("small").expect("asymmetric");
    small.frequency_ghz *= given / ratio;
    spec
}

/// Simulated time over the closed form's, for the first and for the last thread to finish.
fn simulated_over_ideal(name: &str, cores: u32, ratio: f64) -> [f64; 2] {
    let spec = machine(name, ratio);
    let model = IdealRoundRobin {
        large_ips: ips(&spec, 0),
        small_ips: ips(&spec, 1),
        cores,
    };
    assert!((model.large_ips / model.small_ips / ratio - 1.0).abs() < 1e-3);
    let workload = Workload {
        text: format!("{cores}*pure-int"),
        entries: (1..=cores).map(thread).collect(),
    };
    let experiment = Experiment {
        free_migration: true,
        ..Experiment::new(
            &Arc::new(Chip::new(&spec, None).expect("a machine")),
            workload,
            ALONE_S,
        )
    };
    let large = Chip::with_cores(&spec, None, &|number| number == 0).expect("a core");
    let work = measure_alone(&Arc::new(large), &thread(0), ALONE_S, SEED).expect("it runs");
    let hrrs = Contender::new("hrrs", "linux").expect("a policy");
    let all = vec![work; cores as usize];
    let run = experiment.run(&hrrs, &all, SEED, None).expect("it runs");
    let times = run.programs.iter().map(|p| p.together_s);
    let ideal = model.time_s(work.instructions, cores);
    let first = times.clone().fold(f64::INFINITY, f64::min);
    [first / ideal, times.fold(0.0, f64::max) / ideal]
}

fn check(name: &str, cores: u32) {
    for ratio in [1.0, 1.5, 2.0, 3.0, 4.0] {
        let both = simulated_over_ideal(name, cores, ratio);
        for over in both {
            assert!((over - 1.0).abs() < 0.01, "{name}, L/S {ratio}: {both:?}");
        }
    }
}

#[test]
fn one_large_and_one_small_core() {
    check("acmp-1+1", 2);
}

#[test]
fn one_large_and_three_small_cores() {
    check("acmp-1+3", 4);
}

#[test]
fn one_large_and_seven_small_cores() {
    check("acmp-1+7", 8);
}

#[test]
fn one_large_and_fifteen_small_cores() {
    check("acmp-1+15", 16);
}
