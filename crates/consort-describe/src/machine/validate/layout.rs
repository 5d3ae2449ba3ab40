//! Limits of the nesting of packages, nodes, domains and cores.

use super::ValueRange;
use super::caches::SIZE_KIB;
use crate::describe::KeyScope;
use crate::machine::detail::PrefetchInto;
use crate::machine::{ChipLayout, L2Group, LlcDomainSpec, MachineSpec, PrefetchScope};

/// Most PUs that a machine may have.
pub const MAX_PUS: u64 = 4096;

/// Of each level within the one above.
const COUNT: ValueRange = (1.0, MAX_PUS as f64);

pub(super) fn check(spec: &MachineSpec, at: &mut KeyScope<'_>) {
    let layout = &spec.layout;
    let mut here = at.child("layout");
    check_counts(layout, &mut here);
    check_groups(spec, &layout.cluster, &mut here);
    for (index, domain) in layout.llc_domains.iter().enumerate() {
        check_domain(spec, domain, here.child(&format!("llc_domain[{index}]")));
    }
    check_size(spec, &mut here);
    for name in spec.core_types.keys() {
        let used = layout.groups().any(|group| group.core_type == *name);
        let message = "is in no layout.cluster; expected a core type that the chip has";
        at.child("core_type").require(used, name, message);
    }
}

fn check_counts(layout: &ChipLayout, here: &mut KeyScope<'_>) {
    here.check_range("packages", layout.packages, COUNT);
    here.check_range("nodes_per_package", layout.nodes_per_package, COUNT);
    if layout.llc_domains.is_empty() {
        here.check_range("llc_domains_per_node", layout.llc_domains_per_node, COUNT);
        here.require(!layout.cluster.is_empty(), "cluster", NO_CLUSTER);
        return;
    }
    let message = "is there with layout.llc_domain, which lists every domain; expected one of both";
    let none = layout.llc_domains_per_node == 0;
    here.require(none, "llc_domains_per_node", message);
    here.require(layout.cluster.is_empty(), "cluster", message);
}

const NO_CLUSTER: &str = "is empty; expected at least one { core_type, l2_domains, cores_per_l2 }";

fn check_groups(spec: &MachineSpec, groups: &[L2Group], here: &mut KeyScope<'_>) {
    for (index, group) in groups.iter().enumerate() {
        check_group(spec, group, here.child(&format!("cluster[{index}]")));
    }
}

fn check_domain(spec: &MachineSpec, domain: &LlcDomainSpec, mut here: KeyScope<'_>) {
    here.require(!domain.cluster.is_empty(), "cluster", NO_CLUSTER);
    check_groups(spec, &domain.cluster, &mut here);
    match domain.size_kib {
        None => {}
        Some(0.0) => check_without_llc(spec, domain, &mut here),
        Some(size_kib) => here.check_range("size_kib", size_kib, SIZE_KIB),
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
        let of_llc = core.prefetcher.as_ref().is_some_and(|prefetcher| {
            prefetcher.per == PrefetchScope::Llc || prefetcher.into == Some(PrefetchInto::Llc)
        });
        let message = format!("is 0, and core_type.{name} prefetches into an LLC; expected an LLC");
        here.require(!of_llc, "size_kib", message);
    }
}

fn check_group(spec: &MachineSpec, group: &L2Group, mut here: KeyScope<'_>) {
    here.check_range("l2_domains", group.l2_domains, COUNT);
    here.check_range("cores_per_l2", group.cores_per_l2, COUNT);
    let names = spec.core_types.keys().map(String::as_str);
    let known = spec.core_types.contains_key(&group.core_type);
    let hint = consort_core::hint(&group.core_type, names);
    let message = format!("'{}' is no [core_type]; {hint}", group.core_type);
    here.require(known, "core_type", message);
}

fn check_size(spec: &MachineSpec, here: &mut KeyScope<'_>) {
    let pus = count_pus(spec);
    let message = format!("makes {pus} PUs; expected at most {MAX_PUS}");
    here.require(pus <= MAX_PUS, "", message);
}

/// PUs of the machine; what overflows counts as the most.
fn count_pus(spec: &MachineSpec) -> u64 {
    let layout = &spec.layout;
    let group = |group: &L2Group| {
        let core = spec.core_types.get(&group.core_type);
        let ways = core.and_then(|c| c.smt.iter().map(|mode| mode.ways).max());
        product(&[group.l2_domains, group.cores_per_l2, ways.unwrap_or(1)])
    };
    let sum = |groups: &[L2Group]| groups.iter().map(group).fold(0, u64::saturating_add);
    let listed = layout.llc_domains.iter().map(|domain| sum(&domain.cluster));
    let alike = sum(&layout.cluster).saturating_mul(layout.llc_domains_per_node.into());
    let node = listed.fold(alike, u64::saturating_add);
    node.saturating_mul(product(&[layout.packages, layout.nodes_per_package]))
}

fn product(factors: &[u32]) -> u64 {
    let factors = factors.iter().map(|&f| u64::from(f));
    factors.fold(1, u64::saturating_mul)
}
