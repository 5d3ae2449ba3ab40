//! A described machine in words: as a tree, and the numbers of its cores, caches, memory and PMU.
//!
//! ```text
//! 1 package, 1 node, 1 LLC domain, 6 L2 domains, 12 cores, 12 CPUs
//! package 0 > node 0
//!   LLC 0, 4 MiB, 12 ns
//!     4 x L2 256 KiB, 8 cycles > 1 big core {1 CPU}: 0-3
//!     2 x L2 512 KiB, 10 cycles > 4 small cores {1 CPU}: 4-11
//! ```
//!
//! Equal neighbours are one entry; an only child stands behind its parent. The CPUs of a core have
//! neighbouring numbers.

use super::{CoreTypeRow, core_types};
use crate::output::{self, OutputColumn, count, text};
use consort_core::topology::Domain;
use consort_core::{PuId, PuSet};
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::machine::{
    CacheSpec, CoreSpec, MachineSpec, MemorySpec, NumaSpec, PmuEventSpec, Scope, UnitSpec,
};
use serde::Serialize;

pub(super) fn draw_tree(chip: &Chip) -> Vec<String> {
    let topology = chip.topology();
    let domains = chip.domains();
    let counts = [
        (domains.packages, "package"),
        (domains.nodes, "node"),
        (domains.llcs, "LLC domain"),
        (topology.l2s().len(), "L2 domain"),
        (domains.cores, "core"),
        (chip.places().len(), "CPU"),
    ];
    let counts = counts.iter().filter(|(n, _)| *n > 0);
    let counts: Vec<String> = counts.map(|(n, what)| count(*n, what)).collect();
    let mut lines = vec![counts.join(", ")];
    for package in topology.packages() {
        let heading = format!("package {}", package.key);
        let nodes: Vec<&Domain> = domains_within(topology.nodes(), package).collect();
        if let [node] = nodes[..] {
            lines.push(format!("{heading} > node {}", node.key));
            lines.extend(llcs(chip, node, "  "));
            continue;
        }
        lines.push(heading);
        for node in nodes {
            lines.push(format!("  node {}", node.key));
            lines.extend(llcs(chip, node, "    "));
        }
    }
    lines
}

/// The domains that lie in another.
fn domains_within<'a>(
    domains: &'a [Domain],
    around: &'a Domain,
) -> impl Iterator<Item = &'a Domain> {
    let inside = |domain: &&Domain| domain.pus.is_subset(&around.pus);
    domains.iter().filter(inside)
}

fn llcs(chip: &Chip, node: &Domain, indent: &str) -> Vec<String> {
    let latency_ns = chip.spec().llc.latency_ns;
    let mut lines = Vec::new();
    for llc in domains_within(chip.topology().llcs(), node) {
        let key = llc.key;
        let heading = match chip.llc_kib(key as usize) {
            0.0 => format!("{indent}cores without an LLC ({key})"),
            kib => format!("{indent}LLC {key}, {}, {latency_ns} ns", capacity(kib)),
        };
        let groups = groups(chip, llc);
        let runs: Vec<&[L2Cluster]> = groups.chunk_by(|a, b| a.shape == b.shape).collect();
        if let [run] = runs[..] {
            lines.push(format!("{heading} > {}", run_text(chip, run)));
            continue;
        }
        lines.push(heading);
        let runs = runs.into_iter().map(|run| run_text(chip, run));
        lines.extend(runs.map(|run| format!("{indent}  {run}")));
    }
    lines
}

/// The cores that share an L2.
struct L2Cluster {
    shape: L2ClusterShape,
    pus: PuSet,
}

/// Shape that equal groups have in common.
#[derive(Clone, Copy, PartialEq)]
struct L2ClusterShape {
    core_type: usize,
    cores: usize,
    pus: usize,
}

/// The groups of an LLC domain, in order.
fn groups(chip: &Chip, llc: &Domain) -> Vec<L2Cluster> {
    let places: Vec<(PuId, PuPlace)> = llc
        .pus
        .iter()
        .map(|pu| (pu, chip.places()[pu.0 as usize]))
        .collect();
    let groups = places.chunk_by(|(_, a), (_, b)| a.l2 == b.l2);
    let cluster = |places: &[(PuId, PuPlace)]| L2Cluster {
        shape: L2ClusterShape {
            core_type: places[0].1.core_type,
            cores: places.chunk_by(|(_, a), (_, b)| a.core == b.core).count(),
            pus: places.len(),
        },
        pus: places.iter().map(|(pu, _)| *pu).collect(),
    };
    groups.map(cluster).collect()
}

/// `4 x L2 256 KiB, 8 cycles > 1 big core {1 CPU}: 0-3`; without an L2, `4 x big core {1 CPU}:
/// 0-3`.
fn run_text(chip: &Chip, run: &[L2Cluster]) -> String {
    let shape = run[0].shape;
    let core = &chip.core_types()[shape.core_type];
    let mut name = chip.topology().core_types()[shape.core_type].name.clone();
    if !name.ends_with("core") {
        name += " core";
    }
    let ways = count(shape.pus / shape.cores, "CPU");
    let pus = run.iter().fold(PuSet::new(), |all, g| all.union(&g.pus));
    let Some(l2) = &core.l2 else {
        let cores = run.len() * shape.cores;
        return format!("{cores} x {name} {{{ways}}}: {pus}");
    };
    let (size, latency) = (capacity(l2.size_kib), cycles(l2.latency_cycles));
    let cores = count(shape.cores, &name);
    let n = run.len();
    format!("{n} x L2 {size}, {latency} > {cores} {{{ways}}}: {pus}")
}

/// Returns the word for a value in machine files.
fn word<T: Serialize>(value: T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn lines(chip: &Chip) -> Vec<String> {
    let spec = chip.spec();
    let mut lines: Vec<String> = core_types(chip.topology())
        .iter()
        .zip(chip.core_types())
        .flat_map(|(row, core)| core_type_lines(row, core))
        .collect();
    let link = &spec.interconnect;
    let (kind, bandwidth) = (word(link.kind), link.bandwidth_gb_s);
    lines.push(llc(chip));
    lines.push(format!(
        "interconnect: {kind}, {bandwidth} GB/s per package"
    ));
    lines.push(memory(&spec.memory));
    lines.extend(spec.numa.as_ref().map(numa));
    let static_w = spec.uncore_power.static_w;
    lines.push(format!("power of the rest: {static_w} W per package"));
    let (slice_ms, switch) = (spec.os.slice_ms, spec.os.switch_cycles);
    lines.push(format!(
        "operating system: slices of {slice_ms} ms, {switch} cycles per switch"
    ));
    lines.push(pmu(spec));
    lines
}

fn core_type_lines(row: &CoreTypeRow, core: &CoreSpec) -> Vec<String> {
    let (name, capacity, pus) = (&row.name, row.capacity, &row.pus);
    let cores = count(row.cores, "core");
    let mut lines = vec![format!(
        "core type {name}: {cores}, capacity {capacity}, CPUs {pus}"
    )];
    let l1s = [("L1I", &core.l1i), ("L1D", &core.l1d)];
    let l1s = l1s.map(|(name, cache)| cache_line(name, cache, owner(cache.per)));
    let l2 = core.l2.as_ref();
    let l2 = l2.map(|l2| cache_line("L2", l2, "per L2 domain"));
    let mut details = vec![pipeline(core), units(core)];
    details.extend(l1s.into_iter().chain(l2));
    details.push(power(core));
    lines.extend(details.iter().map(|detail| format!("  {detail}")));
    lines
}

fn pipeline(core: &CoreSpec) -> String {
    let (kind, ghz, width) = (word(core.pipeline), core.frequency_ghz, core.dispatch_width);
    let mut parts = vec![format!("{kind}, {ghz} GHz, {width} instructions per cycle")];
    parts.extend(
        core.rob_entries
            .map(|n| format!("{n} reorder-buffer entries")),
    );
    parts.push(format!("{} outstanding misses", core.outstanding_misses));
    parts.join(", ")
}

fn units(core: &CoreSpec) -> String {
    let units = &core.units;
    let all = [
        ("int", Some(&units.int)),
        ("fp", Some(&units.fp)),
        ("load/store", Some(&units.load_store)),
        ("branch", units.branch.as_ref()),
        ("vector", units.vector.as_ref()),
    ];
    let text = |(name, unit): (&str, Option<&UnitSpec>)| {
        let unit = unit?;
        let (n, latency, per) = (unit.count, cycles(unit.latency_cycles), owner(unit.per));
        Some(format!("{n} {name} {per} ({latency})"))
    };
    let texts: Vec<String> = all.into_iter().filter_map(text).collect();
    format!("units: {}", texts.join(", "))
}

fn power(core: &CoreSpec) -> String {
    let power = &core.power;
    let idle_w = power.static_w * power.idle_fraction;
    let nj = &power.instruction_nj;
    let (static_w, int, fp, load) = (power.static_w, nj.int, nj.fp, nj.load);
    format!(
        "power: {static_w} W busy, {idle_w:.2} W idle, per instruction {int} nJ int, {fp} nJ fp, {load} nJ load"
    )
}

fn llc(chip: &Chip) -> String {
    let llc = &chip.spec().llc;
    let (ways, latency_ns) = (llc.ways, llc.latency_ns);
    let domains = 0..chip.domains().llcs;
    let mut sizes: Vec<String> = domains.map(|n| capacity(chip.llc_kib(n))).collect();
    sizes.dedup();
    let per_domain = match &sizes[..] {
        [size] => format!("{size} per LLC domain"),
        sizes => format!("{} by LLC domain", sizes.join(", ")),
    };
    let mut line = format!("LLC {per_domain}, {ways}-way, {latency_ns} ns");
    if let Some(remote_ns) = llc.remote_latency_ns {
        line.push_str(&format!(", in another domain {remote_ns} ns"));
    }
    line
}

fn memory(memory: &MemorySpec) -> String {
    let (latency_ns, each) = (memory.latency_ns, memory.bandwidth_gb_s);
    let controllers = count(memory.controllers_per_node as usize, "controller");
    let line_bytes = memory.line_bytes;
    format!(
        "memory per node: {latency_ns} ns, {controllers} of {each} GB/s, lines of {line_bytes} bytes"
    )
}

fn numa(numa: &NumaSpec) -> String {
    let (near, far, link) = (
        numa.same_package_ns,
        numa.other_package_ns,
        numa.link_bandwidth_gb_s,
    );
    let between = format!(
        "between nodes: {near} ns more within a package, {far} ns more to another, {link} GB/s out of each"
    );
    match &numa.memory_nodes {
        Some(nodes) => format!("{between}; memory on {nodes:?} alone"),
        None => between,
    }
}

fn pmu(spec: &MachineSpec) -> String {
    let fixed = spec.pmu.events.iter().filter(|event| event.fixed).count();
    let fixed = count(fixed, "fixed counter");
    let (programmable, noise) = (spec.pmu.programmable, 100.0 * spec.pmu.read_noise);
    format!("PMU per CPU: {fixed}, {programmable} programmable, read noise {noise:.1} %")
}

const EVENT_COLUMNS: &[OutputColumn<PmuEventSpec>] = &[
    text("event", |e| e.name.clone()),
    text("counts", |e| word(e.counts)),
    text("counter", |e| {
        if e.fixed { "fixed" } else { "programmable" }.to_owned()
    }),
];

/// The events of the PMU as a table.
pub(super) fn events(spec: &MachineSpec) -> String {
    output::table(EVENT_COLUMNS, &spec.pmu.events)
}

/// A capacity in the largest unit that it fills.
fn capacity(size_kib: f64) -> String {
    if size_kib >= 1024.0 {
        return format!("{} MiB", size_kib / 1024.0);
    }
    format!("{size_kib} KiB")
}

fn cache_line(name: &str, cache: &CacheSpec, scope: &str) -> String {
    let (size, ways) = (capacity(cache.size_kib), cache.ways);
    let latency = cycles(cache.latency_cycles);
    format!("{name} {size} {scope}, {ways}-way, {latency}")
}

fn cycles(n: f64) -> String {
    format!("{n} cycle{}", if n == 1.0 { "" } else { "s" })
}

fn owner(scope: Scope) -> &'static str {
    match scope {
        Scope::Pu => "per CPU",
        Scope::Core => "per core",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_have_the_largest_unit_that_they_fill() {
        assert_eq!(capacity(32.0), "32 KiB");
        assert_eq!(capacity(1024.0), "1 MiB");
        assert_eq!(capacity(1536.0), "1.5 MiB");
    }
}
