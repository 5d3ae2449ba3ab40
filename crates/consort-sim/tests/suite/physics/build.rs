//! Machines and programs for the checks: plain ones, changed where a check needs it.

use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solution, Solver};
use consort_sim::machine::{self, CoreSpec, MachineSpec, PipelineSpec, SmtMode};
use consort_sim::phase::Phase;
use consort_sim::program::{self, PhaseSpec};
use std::sync::Arc;

const MACHINE: &str = include_str!("../../../../consort-describe/tests/small/machine.toml");
const PROGRAM: &str = include_str!("../../../../consort-describe/tests/small/program.toml");

/// One LLC domain of four SMT2 out-of-order cores, 4 wide with a shared window of 128 entries.
pub fn machine() -> MachineSpec {
    machine::parse("small", MACHINE).unwrap()
}

/// The machine with its big core changed.
pub fn machine_with(change: impl FnOnce(&mut CoreSpec)) -> MachineSpec {
    let mut machine = machine();
    change(machine.core_types.get_mut("big").unwrap());
    machine
}

/// The machine with small in-order cores instead.
pub fn in_order(width: f64) -> MachineSpec {
    machine_with(|core| {
        core.pipeline = PipelineSpec::InOrder;
        core.rob_entries = None;
        core.dispatch_width = width;
        core.smt = vec![SmtMode {
            ways: 1,
            thread_dispatch_width: width,
        }];
        core.outstanding_misses = 4;
    })
}

/// Integer code that lives in registers and the L1, with plenty of parallelism.
pub fn compute() -> PhaseSpec {
    let program = program::parse("small", PROGRAM).unwrap();
    program.phases[0].clone()
}

pub fn phase(change: impl FnOnce(&mut PhaseSpec)) -> PhaseSpec {
    let mut phase = compute();
    change(&mut phase);
    phase
}

/// A chain of loads, each of which misses every cache.
pub fn chaser() -> PhaseSpec {
    phase(|p| {
        p.mix.load = 0.35;
        p.mix.int = 0.5;
        p.ilp.a = 1.0;
        p.ilp.b = 0.0;
        p.ilp.use_distance = 1.0;
        p.data_mpki = vec![330.0; 14];
    })
}

/// Loads at random addresses that do not depend on each other.
pub fn random_loads() -> PhaseSpec {
    phase(|p| {
        p.data_mpki = vec![30.0; 14];
        p.mlp.value = 4.0;
        p.mlp.window_exponent = 0.7;
        p.ilp.use_distance = 3.0;
    })
}

/// A stream through much more memory than any cache has.
pub fn streamer() -> PhaseSpec {
    phase(|p| {
        p.data_mpki = vec![40.0; 14];
        p.mlp.value = 6.0;
        p.mlp.window_exponent = 0.7;
        p.writeback_share = 0.3;
    })
}

pub fn demand(phase: &PhaseSpec, program: u32) -> Demand {
    Demand {
        phase: Arc::new(Phase::new(phase)),
        intensity: 1.0,
        program,
        text: program,
        shared_data: 0.0,
        shared_code: 0.0,
        lock: None,
        home_node: 0,
    }
}

/// Solves with one program per CPU given.
pub fn solve(machine: &MachineSpec, threads: &[(usize, &PhaseSpec)]) -> Solution {
    let chip = Arc::new(Chip::new(machine, None).unwrap());
    let demands: Vec<Demand> = threads
        .iter()
        .enumerate()
        .map(|(i, (_, phase))| demand(phase, i as u32))
        .collect();
    let running: Vec<RunningThread<'_>> = threads
        .iter()
        .zip(&demands)
        .map(|((pu, _), demand)| RunningThread { pu: *pu, demand })
        .collect();
    Solver::new(chip).solve(&running)
}

/// Instructions per cycle of a phase alone on CPU 0.
pub fn alone(machine: &MachineSpec, phase: &PhaseSpec) -> f64 {
    1.0 / solve(machine, &[(0, phase)]).threads[0].cpi
}

/// Slowdown of the first beside the second on one core.
pub fn slowdown(machine: &MachineSpec, first: &PhaseSpec, second: &PhaseSpec) -> f64 {
    let pair = solve(machine, &[(0, first), (1, second)]);
    assert!(pair.converged, "residual {}", pair.residual);
    pair.threads[0].cpi * alone(machine, first)
}
