//! A described machine as a tree: packages, nodes, LLC domains, L2 domains, cores, PUs.
//!
//! ```text
//! 1 package, 1 node, 1 LLC domain, 6 L2 domains, 12 cores, 12 PUs
//! package 0 > node 0
//!   LLC 0, 4 MiB, 12 ns
//!     4 x L2 256 KiB, 8 cycles > 1 big core {1 PU}: 0-3
//!     2 x L2 512 KiB, 10 cycles > 4 small cores {1 PU}: 4-11
//! ```
//!
//! Equal neighbours are one entry; what is alone stands behind what is around it. The PUs of a core have
//! neighbouring numbers.

use super::caches::{capacity, cycles};
use consort_core::topology::Domain;
use consort_core::{PuId, PuSet};
use consort_sim::chip::{Chip, PuPlace};

pub(super) fn draw(chip: &Chip) -> Vec<String> {
    let topology = chip.topology();
    let mut lines = vec![summary(chip)];
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

fn summary(chip: &Chip) -> String {
    let domains = chip.domains();
    let l2s = chip.topology().l2s().len();
    let counts = [
        (domains.packages, "package"),
        (domains.nodes, "node"),
        (domains.llcs, "LLC domain"),
        (l2s, "L2 domain"),
        (domains.cores, "core"),
        (chip.places().len(), "PU"),
    ];
    let parts = counts.iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, what)| count(*n, what)).collect();
    parts.join(", ")
}

pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
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
    groups.map(group).collect()
}

fn group(places: &[(PuId, PuPlace)]) -> L2Cluster {
    let cores = places.chunk_by(|(_, a), (_, b)| a.core == b.core).count();
    L2Cluster {
        shape: L2ClusterShape {
            core_type: places[0].1.core_type,
            cores,
            pus: places.len(),
        },
        pus: places.iter().map(|(pu, _)| *pu).collect(),
    }
}

/// `4 x L2 256 KiB, 8 cycles > 1 big core {1 PU}: 0-3`; without an L2, `4 x big core {1 PU}: 0-3`.
fn run_text(chip: &Chip, run: &[L2Cluster]) -> String {
    let shape = run[0].shape;
    let core = &chip.core_types()[shape.core_type];
    let name = core_name(&chip.topology().core_types()[shape.core_type].name);
    let ways = count(shape.pus / shape.cores, "PU");
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

/// `big core` for `big`; types that are called cores already keep their name.
fn core_name(core_type: &str) -> String {
    if core_type.ends_with("core") {
        return core_type.to_owned();
    }
    format!("{core_type} core")
}
