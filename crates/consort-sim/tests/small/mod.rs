//! A small machine, whole and valid, for tests that change it.

use consort_sim::machine::MachineSpec;

/// Two LLC domains of two SMT2 cores each.
const MACHINE: &str = r#"
name = "small"
title = "small"
sources = {}
[layout]
packages = 1
nodes_per_package = 1
llc_domains_per_node = 2
cluster = [{ core_type = "big", l2_domains = 2, cores_per_l2 = 1 }]
[core_type.big]
pipeline = "out-of-order"
frequency_ghz = 2.0
dispatch_width = 4.0
rob_entries = 128
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
idle_fraction = 0.25
instruction_nj = { int = 0.1, fp = 0.2, vector = 0.3, load = 0.4, store = 0.5, branch = 0.6 }
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

pub fn machine() -> MachineSpec {
    toml::from_str(MACHINE).unwrap()
}
