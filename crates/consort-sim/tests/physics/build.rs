//! Machines and programs for the checks: plain ones, changed where a check needs it.

use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, Running, Solution, Solver};
use consort_sim::machine::MachineSpec;
use consort_sim::program::{Phase, PhaseSpec};
use std::sync::Arc;

/// One SMT2 out-of-order core, 4 wide with 128 entries, of a chip of four.
const MACHINE: &str = r#"
name = "test"
title = "test"
sources = {}
[layout]
packages = 1
nodes_per_package = 1
llc_domains_per_node = 1
cluster = [{ core_type = "big", l2_domains = 4, cores_per_l2 = 1 }]
[core_type.big]
pipeline = "out-of-order"
frequency_ghz = 2.0
dispatch_width = 4.0
rob_entries = 128
rob_sharing = "shared"
pipeline_depth_cycles = 12.0
outstanding_misses = 16
smt = [{ ways = 1, thread_dispatch_width = 4.0 }, { ways = 2, thread_dispatch_width = 4.0 }]
l1i = { size_kib = 32.0, ways = 8, latency_cycles = 3.0 }
l1d = { size_kib = 32.0, ways = 8, latency_cycles = 3.0 }
l2 = { size_kib = 256.0, ways = 8, latency_cycles = 10.0 }
tlb = { entries = 1024, page_kib = 4.0, walk_cycles = 20.0 }
branch_predictor = { size_kib = 32.0 }
[core_type.big.units]
int = { count = 4, latency_cycles = 1.0, interval_cycles = 1.0, per = "core" }
fp = { count = 2, latency_cycles = 4.0, interval_cycles = 1.0, per = "core" }
load_store = { count = 2, latency_cycles = 1.0, interval_cycles = 1.0, per = "core" }
[core_type.big.power]
static_w = 2.0
idle_fraction = 0.3
instruction_nj = { int = 0.1, fp = 0.2, vector = 0.2, load = 0.1, store = 0.1, branch = 0.1 }
l1_nj = 0.02
l2_nj = 0.1
[llc]
size_kib = 8192.0
ways = 16
latency_ns = 15.0
access_nj = 0.5
[interconnect]
kind = "ring"
bandwidth_gb_s = 100.0
[memory]
latency_ns = 70.0
bandwidth_gb_s = 10.0
controllers_per_node = 2
line_bytes = 64
access_nj = 20.0
[uncore_power]
static_w = 5.0
[os]
slice_ms = 4.0
switch_cycles = 2000.0
[pmu]
programmable = 4
read_noise = 0.0
events = [{ name = "CYCLES", counts = "cycles", fixed = true }]
"#;

/// Integer code that lives in registers and the L1, with plenty of parallelism.
const COMPUTE: &str = r#"
length_ginstr = 1.0
mix = { fp = 0.0, vector = 0.0, int = 0.6, load = 0.25, store = 0.1, branch = 0.05 }
ilp = { a = 1.2, b = 0.5, use_distance = 4.0 }
branch = { mpki = 0.0, capacity_exponent = 0.3 }
data_mpki = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
instruction_mpki = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
mlp = { value = 1.0, window_exponent = 0.0 }
writeback_share = 0.0
page_spread = 0.0
"#;

pub fn machine() -> MachineSpec {
    toml::from_str(MACHINE).unwrap()
}

/// The machine with its big core changed.
pub fn machine_with(change: impl FnOnce(&mut consort_sim::machine::CoreSpec)) -> MachineSpec {
    let mut machine = machine();
    change(machine.core_types.get_mut("big").unwrap());
    machine
}

/// The machine with small in-order cores instead.
pub fn in_order(width: f64) -> MachineSpec {
    machine_with(|core| {
        core.pipeline = consort_sim::machine::Pipeline::InOrder;
        core.rob_entries = None;
        core.dispatch_width = width;
        core.smt = vec![consort_sim::machine::SmtMode {
            ways: 1,
            thread_dispatch_width: width,
        }];
        core.outstanding_misses = 4;
    })
}

pub fn compute() -> PhaseSpec {
    toml::from_str(COMPUTE).unwrap()
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
        shared_data: 0.0,
        shared_code: 0.0,
        lock: None,
        home_node: 0,
    }
}

/// Solves with one program per PU given.
pub fn solve(machine: &MachineSpec, threads: &[(usize, &PhaseSpec)]) -> Solution {
    let chip = Arc::new(Chip::new(machine, None).unwrap());
    let demands: Vec<Demand> = threads
        .iter()
        .enumerate()
        .map(|(i, (_, phase))| demand(phase, i as u32))
        .collect();
    let running: Vec<Running<'_>> = threads
        .iter()
        .zip(&demands)
        .map(|((pu, _), demand)| Running { pu: *pu, demand })
        .collect();
    Solver::new(chip).solve(&running)
}

/// Instructions per cycle of a phase alone on PU 0.
pub fn alone(machine: &MachineSpec, phase: &PhaseSpec) -> f64 {
    1.0 / solve(machine, &[(0, phase)]).threads[0].cpi
}

/// Slowdown of the first beside the second on one core.
pub fn slowdown(machine: &MachineSpec, first: &PhaseSpec, second: &PhaseSpec) -> f64 {
    let pair = solve(machine, &[(0, first), (1, second)]);
    assert!(pair.converged, "residual {}", pair.residual);
    pair.threads[0].cpi * alone(machine, first)
}
