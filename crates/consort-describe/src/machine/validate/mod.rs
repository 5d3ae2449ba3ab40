//! Limits of a machine: ranges of every number, and parts that do not fit together.
//!
//! Ranges are those of physics and of anything that was ever built, with room to spare. They stop slips
//! of the pen (a latency in ns where cycles are meant), not daring, and keep the solver's numbers finite.

mod cores;

use super::Quantity;
use super::detail::PrefetchInto;
use super::spec::{
    ChipLayout, L2Group, LlcDomainSpec, LlcSpec, MachineSpec, MemorySpec, NumaSpec, PmuSpec,
    PrefetchScope,
};
use crate::describe::{KeyScope, Problems, ValueRange};
use std::collections::BTreeSet;

/// Most CPUs that a machine may have.
pub const MAX_PUS: u64 = 4096;

/// Members of each level of the layout within the one above.
const COUNT: ValueRange = (1.0, MAX_PUS as f64);
/// Capacities from a few lines to more than any chip has, KiB.
const SIZE_KIB: ValueRange = (0.5, 8_388_608.0);
const CACHE_WAYS: ValueRange = (1.0, 4096.0);
const LINES: ValueRange = (1.0, 65_536.0);
const LATENCY_NS: ValueRange = (0.1, 10_000.0);
const ADDED_NS: ValueRange = (0.0, 10_000.0);
const BANDWIDTH_GB_S: ValueRange = (0.01, 100_000.0);
/// Watts of a core or a package.
const STATIC_W: ValueRange = (0.0, 2000.0);
/// Energy of one event, nJ: the Pentium 4, the worst there was, took about 50 nJ per instruction.
const EVENT_NJ: ValueRange = (0.0, 1000.0);
/// Events that can be listed; a slip of a generating script, not a PMU, makes more.
const EVENTS: usize = 1024;

const NAME_RULE: &str =
    "is no name; expected 1 to 64 of a-z, 0-9, '-', '+', '_', the first a letter or a digit";
const NO_CLUSTER: &str = "is empty; expected at least one { core_type, l2_domains, cores_per_l2 }";

/// Notes all that is wrong with a machine.
pub fn validate(spec: &MachineSpec, problems: &mut Problems) {
    let mut at = KeyScope::new(problems, "");
    // Names are used on command lines, in options and in key paths.
    at.require(is_name(&spec.name), "name", NAME_RULE);
    let message = "is empty; expected a line that says what the machine is";
    at.require(!spec.title.trim().is_empty(), "title", message);
    for name in spec.core_types.keys() {
        at.child("core_type")
            .require(is_name(name), name, NAME_RULE);
    }
    check_layout(spec, &mut at);
    for (name, core) in &spec.core_types {
        cores::check(core, at.child("core_type").child(name));
    }
    check_llc(&spec.llc, &spec.layout, at.child("llc"));
    check_llc_sizes(spec, &mut at);
    let bandwidth = spec.interconnect.bandwidth_gb_s;
    at.check_range("interconnect.bandwidth_gb_s", bandwidth, BANDWIDTH_GB_S);
    let buses = f64::from(spec.interconnect.buses.unwrap_or(1));
    at.check_range("interconnect.buses", buses, (1.0, 64.0));
    check_memory(&spec.memory, at.child("memory"));
    check_numa(spec.numa.as_ref(), &spec.layout, &mut at);
    let watts = spec.uncore_power.static_w;
    at.check_range("uncore_power.static_w", watts, STATIC_W);
    let os = &spec.os;
    at.check_range("os.slice_ms", os.slice_ms, (0.01, 10_000.0));
    at.check_range("os.switch_cycles", os.switch_cycles, (0.0, 10_000_000.0));
    at.check_range("os.call_cycles", os.call_cycles, (0.0, 1_000_000.0));
    at.check_range("os.wake_cycles", os.wake_cycles, (0.0, 1_000_000.0));
    at.check_range("os.fault_cycles", os.fault_cycles, (0.0, 1_000_000.0));
    check_pmu(&spec.pmu, at.child("pmu"));
}

fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 64
        && name.starts_with(word)
        && name
            .chars()
            .all(|c| word(c) || matches!(c, '-' | '+' | '_'))
}

fn check_layout(spec: &MachineSpec, at: &mut KeyScope<'_>) {
    let layout = &spec.layout;
    let mut here = at.child("layout");
    here.check_range("packages", layout.packages, COUNT);
    here.check_range("nodes_per_package", layout.nodes_per_package, COUNT);
    if layout.llc_domains.is_empty() {
        here.check_range("llc_domains_per_node", layout.llc_domains_per_node, COUNT);
        here.require(!layout.cluster.is_empty(), "cluster", NO_CLUSTER);
    } else {
        let message =
            "is there with layout.llc_domain, which lists every domain; expected one of both";
        let none = layout.llc_domains_per_node == 0;
        here.require(none, "llc_domains_per_node", message);
        here.require(layout.cluster.is_empty(), "cluster", message);
    }
    check_groups(spec, &layout.cluster, &mut here);
    for (index, domain) in layout.llc_domains.iter().enumerate() {
        let mut here = here.child(&format!("llc_domain[{index}]"));
        here.require(!domain.cluster.is_empty(), "cluster", NO_CLUSTER);
        check_groups(spec, &domain.cluster, &mut here);
        match domain.size_kib {
            None => {}
            Some(0.0) => check_without_llc(spec, domain, &mut here),
            Some(size_kib) => here.check_range("size_kib", size_kib, SIZE_KIB),
        }
    }
    let pus = count_pus(spec);
    let message = format!("makes {pus} CPUs; expected at most {MAX_PUS}");
    here.require(pus <= MAX_PUS, "", message);
    for name in spec.core_types.keys() {
        let used = layout.groups().any(|group| group.core_type == *name);
        let message = "is in no layout.cluster; expected a core type that the chip has";
        at.child("core_type").require(used, name, message);
    }
}

fn check_groups(spec: &MachineSpec, groups: &[L2Group], here: &mut KeyScope<'_>) {
    for (index, group) in groups.iter().enumerate() {
        let mut here = here.child(&format!("cluster[{index}]"));
        here.check_range("l2_domains", group.l2_domains, COUNT);
        here.check_range("cores_per_l2", group.cores_per_l2, COUNT);
        let names = spec.core_types.keys().map(String::as_str);
        let known = spec.core_types.contains_key(&group.core_type);
        let hint = consort_core::hint(&group.core_type, names);
        let message = format!("'{}' is no [core_type]; {hint}", group.core_type);
        here.require(known, "core_type", message);
    }
}

/// Cores without a last-level cache are those of one L2, which is their last cache: an operating
/// system takes it for the cache of the domain.
fn check_without_llc(spec: &MachineSpec, domain: &LlcDomainSpec, here: &mut KeyScope<'_>) {
    let l2s = domain
        .cluster
        .iter()
        .map(|group| u64::from(group.l2_domains));
    let message = "is 0 with several L2 domains; expected an LLC domain for each of them";
    here.require(l2s.sum::<u64>() == 1, "size_kib", message);
    let message = "is 0 with llc.remote_latency_ns; expected one of both";
    here.require(spec.llc.remote_latency_ns.is_none(), "size_kib", message);
    for group in &domain.cluster {
        let Some(core) = spec.core_types.get(&group.core_type) else {
            continue;
        };
        let name = &group.core_type;
        let message = format!("is 0, and core_type.{name} has no L2; expected an LLC or an L2");
        here.require(core.l2.is_some(), "size_kib", message);
        let uses_llc = core.prefetcher.as_ref().is_some_and(|prefetcher| {
            prefetcher.per == PrefetchScope::Llc || prefetcher.into == Some(PrefetchInto::Llc)
        });
        let message = format!("is 0, and core_type.{name} prefetches into an LLC; expected an LLC");
        here.require(!uses_llc, "size_kib", message);
    }
}

/// CPUs of the machine; what overflows counts as the most.
fn count_pus(spec: &MachineSpec) -> u64 {
    let product = |factors: &[u32]| {
        let factors = factors.iter().map(|&factor| u64::from(factor));
        factors.fold(1, u64::saturating_mul)
    };
    let group_pus = |group: &L2Group| {
        let core = spec.core_types.get(&group.core_type);
        let ways = core.and_then(|core| core.smt.iter().map(|mode| mode.ways).max());
        product(&[group.l2_domains, group.cores_per_l2, ways.unwrap_or(1)])
    };
    let sum = |groups: &[L2Group]| groups.iter().map(group_pus).fold(0, u64::saturating_add);
    let layout = &spec.layout;
    let listed = layout.llc_domains.iter().map(|domain| sum(&domain.cluster));
    let alike = sum(&layout.cluster).saturating_mul(layout.llc_domains_per_node.into());
    let node = listed.fold(alike, u64::saturating_add);
    node.saturating_mul(product(&[layout.packages, layout.nodes_per_package]))
}

fn check_llc(llc: &LlcSpec, layout: &ChipLayout, mut at: KeyScope<'_>) {
    at.check_range("size_kib", llc.size_kib, SIZE_KIB);
    at.check_range("ways", llc.ways, CACHE_WAYS);
    at.check_range("latency_ns", llc.latency_ns, LATENCY_NS);
    at.check_range("access_nj", llc.access_nj, EVENT_NJ);
    at.check_optional("miss_queue", llc.miss_queue, LINES);
    at.check_optional("bandwidth_gb_s", llc.bandwidth_gb_s, BANDWIDTH_GB_S);
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
fn check_llc_sizes(spec: &MachineSpec, at: &mut KeyScope<'_>) {
    let layout = &spec.layout;
    if layout.llc_domains.is_empty() {
        for name in spec.core_types.keys() {
            check_llc_size(spec, name, spec.llc.size_kib, at.child("llc"));
        }
    }
    for (index, domain) in layout.llc_domains.iter().enumerate() {
        let size_kib = domain.size_kib.unwrap_or(spec.llc.size_kib);
        for group in domain.cluster.iter().filter(|_| size_kib != 0.0) {
            let here = at.child(&format!("layout.llc_domain[{index}]"));
            check_llc_size(spec, &group.core_type, size_kib, here);
        }
    }
}

fn check_llc_size(spec: &MachineSpec, core_type: &str, size_kib: f64, mut here: KeyScope<'_>) {
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
    at.check_range("controllers_per_node", controllers, (1.0, 64.0));
    at.check_range("line_bytes", memory.line_bytes, (16.0, 1024.0));
    let message = format!("is {}; expected a power of two", memory.line_bytes);
    at.require(memory.line_bytes.is_power_of_two(), "line_bytes", message);
    at.check_range("access_nj", memory.access_nj, EVENT_NJ);
    if let Some(dram) = &memory.dram {
        let mut at = at.child("dram");
        at.check_range("banks", dram.banks, (1.0, 4096.0));
        at.check_range("row_kib", dram.row_kib, (0.25, 1024.0));
        at.check_range("bank_cycle_ns", dram.bank_cycle_ns, ADDED_NS);
        let (saved, all) = (dram.row_hit_saves_ns, memory.latency_ns);
        let message = format!("is {saved}; expected 0 to less than latency_ns, {all}");
        at.require((0.0..all).contains(&saved), "row_hit_saves_ns", message);
    }
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
    let Some(with) = &numa.memory_nodes else {
        return;
    };
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

fn check_pmu(pmu: &PmuSpec, mut at: KeyScope<'_>) {
    at.check_range("programmable", pmu.programmable, (0.0, 256.0));
    // Above a third of the value, a count means nothing.
    at.check_range("read_noise", pmu.read_noise, (0.0, 0.3));
    let count = pmu.events.len();
    let message = format!("has {count} entries; expected at most {EVENTS}");
    at.require(count <= EVENTS, "events", message);
    // Without these no sample has a time base.
    for (quantity, name) in [
        (Quantity::Cycles, "cycles"),
        (Quantity::Instructions, "instructions"),
    ] {
        let counted = pmu.events.iter().any(|event| event.counts == quantity);
        let message = format!("has none that counts {name}; expected one");
        at.require(counted, "events", message);
    }
    let all_fixed = pmu.events.iter().all(|event| event.fixed);
    let message = "is 0 with events that need a counter; expected at least 1";
    at.require(pmu.programmable > 0 || all_fixed, "programmable", message);
    let (mut seen, mut fixed) = (BTreeSet::new(), BTreeSet::new());
    for (index, event) in pmu.events.iter().enumerate() {
        let mut here = at.child(&format!("events[{index}]"));
        let message = "is empty; expected the vendor's name of the event";
        here.require(!event.name.trim().is_empty(), "name", message);
        let message = format!("'{}' is there twice; expected each name once", event.name);
        here.require(seen.insert(&event.name), "name", message);
        let once = !event.fixed || fixed.insert(event.counts);
        let message = "counts what another fixed event counts; expected one fixed counter for it";
        here.require(once, "counts", message);
    }
}
