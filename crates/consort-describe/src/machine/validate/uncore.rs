//! Limits outside the cores: LLC, interconnect, memory, links, the operating system's costs.

use super::ValueRange;
use super::caches::{LINES, SIZE_KIB, WAYS};
use super::power::{EVENT_NJ, STATIC_W};
use crate::describe::KeyScope;
use crate::machine::detail::DramSpec;
use crate::machine::{ChipLayout, LlcSpec, MachineSpec, MemorySpec, NumaSpec, OsCosts};

const LATENCY_NS: ValueRange = (0.1, 10_000.0);
const ADDED_NS: ValueRange = (0.0, 10_000.0);
const BANDWIDTH_GB_S: ValueRange = (0.01, 100_000.0);
const CONTROLLERS: ValueRange = (1.0, 64.0);
const LINE_BYTES: ValueRange = (16.0, 1024.0);
const BANKS: ValueRange = (1.0, 4096.0);
const ROW_KIB: ValueRange = (0.25, 1024.0);
const SLICE_MS: ValueRange = (0.01, 10_000.0);
const SWITCH_CYCLES: ValueRange = (0.0, 10_000_000.0);
const CALL_CYCLES: ValueRange = (0.0, 1_000_000.0);

pub(super) fn check(spec: &MachineSpec, at: &mut KeyScope<'_>) {
    let layout = &spec.layout;
    check_llc(&spec.llc, layout, at.child("llc"));
    check_larger(spec, at);
    let bandwidth = spec.interconnect.bandwidth_gb_s;
    at.child("interconnect")
        .check_range("bandwidth_gb_s", bandwidth, BANDWIDTH_GB_S);
    check_memory(&spec.memory, at.child("memory"));
    check_numa(spec.numa.as_ref(), layout, at);
    let watts = spec.uncore_power.static_w;
    at.child("uncore_power")
        .check_range("static_w", watts, STATIC_W);
    check_os(&spec.os, at.child("os"));
}

fn check_llc(llc: &LlcSpec, layout: &ChipLayout, mut at: KeyScope<'_>) {
    at.check_range("size_kib", llc.size_kib, SIZE_KIB);
    at.check_range("ways", llc.ways, WAYS);
    at.check_range("latency_ns", llc.latency_ns, LATENCY_NS);
    at.check_range("access_nj", llc.access_nj, EVENT_NJ);
    at.check_range("miss_queue", llc.miss_queue.unwrap_or(1), LINES);
    let bandwidth = llc.bandwidth_gb_s.unwrap_or(1.0);
    at.check_range("bandwidth_gb_s", bandwidth, BANDWIDTH_GB_S);
    let Some(remote) = llc.remote_latency_ns else {
        return;
    };
    at.check_range("remote_latency_ns", remote, LATENCY_NS);
    let local = llc.latency_ns;
    let message = format!("is {remote}; expected at least latency_ns, {local}");
    at.require(remote >= local, "remote_latency_ns", message);
    let per_node = layout.domains().take(2).count() as u64;
    let domains = u64::from(layout.nodes_per_package) * per_node;
    let message = "is there with one LLC domain per package; expected no such key";
    at.require(domains != 1, "remote_latency_ns", message);
}

/// An LLC below the L1 of a core type, or below its own cores' L2, cannot be the last level.
fn check_larger(spec: &MachineSpec, at: &mut KeyScope<'_>) {
    let layout = &spec.layout;
    if layout.llc_domains.is_empty() {
        for name in spec.core_types.keys() {
            check_larger_than(spec, name, spec.llc.size_kib, at.child("llc"));
        }
    }
    for (index, domain) in layout.llc_domains.iter().enumerate() {
        let size_kib = domain.size_kib.unwrap_or(spec.llc.size_kib);
        for group in domain.cluster.iter().filter(|_| size_kib != 0.0) {
            let here = at.child(&format!("layout.llc_domain[{index}]"));
            check_larger_than(spec, &group.core_type, size_kib, here);
        }
    }
}

fn check_larger_than(spec: &MachineSpec, core_type: &str, size_kib: f64, mut here: KeyScope<'_>) {
    let Some(core) = spec.core_types.get(core_type) else {
        return;
    };
    let l1d = core.l1d.size_kib;
    let before = core.l2.as_ref().map_or(l1d, |l2| l2.size_kib);
    let message = format!(
        "is {size_kib}; expected at least that of the cache before it, {before} in \
         core_type.{core_type}"
    );
    here.require(size_kib >= before, "size_kib", message);
}

fn check_memory(memory: &MemorySpec, mut at: KeyScope<'_>) {
    at.check_range("latency_ns", memory.latency_ns, LATENCY_NS);
    at.check_range("bandwidth_gb_s", memory.bandwidth_gb_s, BANDWIDTH_GB_S);
    let controllers = memory.controllers_per_node;
    at.check_range("controllers_per_node", controllers, CONTROLLERS);
    at.check_range("line_bytes", memory.line_bytes, LINE_BYTES);
    let message = format!("is {}; expected a power of two", memory.line_bytes);
    at.require(memory.line_bytes.is_power_of_two(), "line_bytes", message);
    at.check_range("access_nj", memory.access_nj, EVENT_NJ);
    if let Some(dram) = &memory.dram {
        check_dram(dram, memory, at.child("dram"));
    }
}

fn check_dram(dram: &DramSpec, memory: &MemorySpec, mut at: KeyScope<'_>) {
    at.check_range("banks", dram.banks, BANKS);
    at.check_range("row_kib", dram.row_kib, ROW_KIB);
    at.check_range("bank_cycle_ns", dram.bank_cycle_ns, ADDED_NS);
    let (saved, all) = (dram.row_hit_saves_ns, memory.latency_ns);
    let message = format!("is {saved}; expected 0 to less than latency_ns, {all}");
    at.require((0.0..all).contains(&saved), "row_hit_saves_ns", message);
}

fn check_numa(numa: Option<&NumaSpec>, layout: &ChipLayout, at: &mut KeyScope<'_>) {
    let nodes = u64::from(layout.packages) * u64::from(layout.nodes_per_package);
    let message = format!("makes {nodes} nodes; expected [numa] to say what lies between them");
    at.require(nodes <= 1 || numa.is_some(), "layout", message);
    let message = "is there with a single node; expected no [numa]";
    at.require(nodes != 1 || numa.is_none(), "numa", message);
    let Some(numa) = numa else { return };
    let mut at = at.child("numa");
    at.check_range("same_package_ns", numa.same_package_ns, ADDED_NS);
    at.check_range("other_package_ns", numa.other_package_ns, ADDED_NS);
    let bandwidth = numa.link_bandwidth_gb_s;
    at.check_range("link_bandwidth_gb_s", bandwidth, BANDWIDTH_GB_S);
    if let Some(with) = &numa.memory_nodes {
        check_memory_nodes(with, nodes, &mut at);
    }
}

fn check_memory_nodes(with: &[u32], nodes: u64, at: &mut KeyScope<'_>) {
    let message = "is empty; expected at least one node, or no such key where all have memory";
    at.require(!with.is_empty(), "memory_nodes", message);
    for (i, &node) in with.iter().enumerate() {
        let last = nodes.saturating_sub(1);
        let message = format!("names node {node}; expected 0 to {last}");
        at.require(u64::from(node) < nodes, "memory_nodes", message);
        let message = format!("names node {node} twice; expected each node once");
        at.require(!with[..i].contains(&node), "memory_nodes", message);
    }
}

fn check_os(os: &OsCosts, mut at: KeyScope<'_>) {
    at.check_range("slice_ms", os.slice_ms, SLICE_MS);
    at.check_range("switch_cycles", os.switch_cycles, SWITCH_CYCLES);
    at.check_range("call_cycles", os.call_cycles, CALL_CYCLES);
    at.check_range("wake_cycles", os.wake_cycles, CALL_CYCLES);
}
