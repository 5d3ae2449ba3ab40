//! Any valid description is solved, and runs: numbers are numbers and nothing exceeds what the
//! chip can do.
//!
//! The input names presets, and then values in them with a factor each; what is no longer valid
//! is left out.

use super::exact::{Exact, PlainEnergy};
use super::possible::{impossible, overload};
use consort_core::Machine;
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver};
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::machine::{self, MachineSpec};
use consort_sim::phase::Phase;
use consort_sim::program::{self, ProgramSpec};
use std::sync::Arc;
use toml::Value;

/// What a value is multiplied by, by the third byte of a change; 0 to beyond most ranges.
const FACTORS: [f64; 16] = [
    0.0, 1e-6, 1e-3, 0.01, 0.1, 0.25, 0.5, 0.9, 1.1, 2.0, 3.0, 4.0, 10.0, 100.0, 1e3, 1e6,
];
/// Chips with more CPUs are left out: they take long and show nothing new.
const MOST_PUS: usize = 256;
/// Quanta of the run.
const QUANTA: usize = 3;
/// Length of a quantum, ns.
const QUANTUM_NS: u64 = 1_000_000;

/// Solves and runs what the input describes; whether it was a valid description.
pub fn description(input: &[u8]) -> bool {
    let Some((&[which_machine, which_program, threads], changes)) = input.split_first_chunk::<3>()
    else {
        return false;
    };
    let (of_machine, of_program) = changes.split_at(changes.len() / 2);
    let spec = machine_of(which_machine, of_machine);
    let program = program_of(which_program, of_program);
    let (Some(spec), Some(program)) = (spec, program) else {
        return false;
    };
    let chip = Chip::new(&spec, None).expect("a valid machine has CPUs");
    if chip.places().len() > MOST_PUS {
        return false;
    }
    let chip = Arc::new(chip);
    let threads = 1 + usize::from(threads) % chip.places().len().min(8);
    check_solution(&chip, &program, threads);
    check_run(&chip, &program, threads);
    true
}

fn machine_of(which: u8, changes: &[u8]) -> Option<MachineSpec> {
    let mut names = machine::presets::names().cycle();
    let name = names.nth(usize::from(which))?;
    let spec = machine::presets::find(name).expect("presets are valid");
    machine::parse("fuzzed.toml", &changed(&spec, changes)).ok()
}

fn program_of(which: u8, changes: &[u8]) -> Option<ProgramSpec> {
    let mut names = program::presets::names().cycle();
    let name = names.nth(usize::from(which))?;
    let spec = program::presets::find(name).expect("presets are valid");
    program::parse("fuzzed.toml", &changed(&spec, changes)).ok()
}

/// A description as text, with the values that the changes name multiplied.
fn changed(spec: &impl serde::Serialize, changes: &[u8]) -> String {
    let mut value = Value::try_from(spec).expect("descriptions are TOML");
    let mut numbers = Vec::new();
    collect(&mut value, &mut numbers);
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % numbers.len();
        multiply(numbers[at], FACTORS[usize::from(change[2]) % FACTORS.len()]);
    }
    toml::to_string(&value).expect("descriptions are TOML")
}

/// All numbers of a description, in order.
fn collect<'a>(value: &'a mut Value, numbers: &mut Vec<&'a mut Value>) {
    match value {
        Value::Integer(_) | Value::Float(_) => numbers.push(value),
        Value::Array(items) => items.iter_mut().for_each(|item| collect(item, numbers)),
        Value::Table(table) => {
            let values = table.iter_mut().map(|(_, value)| value);
            values.for_each(|value| collect(value, numbers));
        }
        _ => {}
    }
}

fn multiply(value: &mut Value, factor: f64) {
    match value {
        Value::Integer(n) => *n = (*n as f64 * factor).round() as i64,
        Value::Float(x) => *x *= factor,
        _ => {}
    }
}

/// The threads on the first CPUs, each in another phase and on another node.
fn check_solution(chip: &Arc<Chip>, program: &ProgramSpec, threads: usize) {
    let demand = |i: usize| Demand {
        phase: Arc::new(Phase::new(&program.phases[i % program.phases.len()])),
        intensity: 1.0,
        program: (i / 2) as u32,
        text: (i / 4) as u32,
        shared_data: program.threads.as_ref().map_or(0.0, |t| t.shared_data),
        shared_code: program.threads.as_ref().map_or(0.0, |t| t.shared_code),
        lock: program.threads.as_ref().and_then(|t| t.lock),
        home_node: i % chip.domains().nodes,
    };
    let demands: Vec<Demand> = (0..threads).map(demand).collect();
    let placed = demands.iter().enumerate();
    let running: Vec<RunningThread<'_>> = placed
        .map(|(pu, demand)| RunningThread { pu, demand })
        .collect();
    let solution = Solver::new(Arc::clone(chip)).solve(&running);
    assert_eq!(impossible(&solution), None);
    assert_eq!(overload(chip, &running, &solution), None);
}

/// Time and work never run backwards and no thread has more time than there is.
fn check_run(chip: &Arc<Chip>, program: &ProgramSpec, threads: usize) {
    let instance = SimulatedProgram {
        program: Arc::new(program.clone()),
        threads: program.threads.as_ref().map_or(1, |t| t.default),
        instructions: 1e12,
        start_ms: 0.0,
    };
    let settings = SimulationSettings {
        seed: 1,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let (meter, source) = (Box::new(PlainEnergy), Box::new(Exact::default()));
    let instances = vec![instance; threads];
    let machine = SimMachine::new(
        Arc::clone(chip),
        &instances,
        &settings,
        QUANTUM_NS,
        meter,
        source,
    );
    let mut machine = machine.expect("a valid description runs");
    for _ in 0..QUANTA {
        let Some(seen) = machine.observe().expect("a valid description runs") else {
            return;
        };
        for thread in &seen.threads {
            let share = seen.cpu_share(thread);
            assert!((0.0..=1.0 + 1e-9).contains(&share), "{thread:?}");
        }
        for result in machine.results() {
            let values = [result.instructions, result.cycles];
            assert!(
                values.iter().all(|v| v.is_finite() && *v >= 0.0),
                "{result:?}"
            );
        }
    }
    assert!(machine.energy_j().is_finite() && machine.energy_j() > 0.0);
}
