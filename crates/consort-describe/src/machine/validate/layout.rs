//! Limits of the nesting of packages, nodes, domains and cores.

use super::Range;
use crate::describe::Within;
use crate::machine::{L2Group, Layout, MachineSpec};

/// Most PUs that a machine may have.
pub const MAX_PUS: u64 = 4096;

/// Of each level within the one above.
const COUNT: Range = (1.0, MAX_PUS as f64);

pub(super) fn check(spec: &MachineSpec, at: &mut Within<'_>) {
    let layout = &spec.layout;
    let mut here = at.at("layout");
    counts(layout, &mut here);
    for (index, group) in layout.cluster.iter().enumerate() {
        check_group(spec, group, here.at(&format!("cluster[{index}]")));
    }
    size(spec, &mut here);
    for name in spec.core_types.keys() {
        let used = layout.cluster.iter().any(|group| group.core_type == *name);
        let message = "is in no layout.cluster; expected a core type that the chip has";
        at.at("core_type").require(used, name, message);
    }
}

fn counts(layout: &Layout, here: &mut Within<'_>) {
    here.range("packages", layout.packages, COUNT);
    here.range("nodes_per_package", layout.nodes_per_package, COUNT);
    here.range("llc_domains_per_node", layout.llc_domains_per_node, COUNT);
    let message = "is empty; expected at least one { core_type, l2_domains, cores_per_l2 }";
    here.require(!layout.cluster.is_empty(), "cluster", message);
}

fn check_group(spec: &MachineSpec, group: &L2Group, mut here: Within<'_>) {
    here.range("l2_domains", group.l2_domains, COUNT);
    here.range("cores_per_l2", group.cores_per_l2, COUNT);
    let names = spec.core_types.keys().map(String::as_str);
    let known = spec.core_types.contains_key(&group.core_type);
    let hint = consort_core::hint(&group.core_type, names);
    let message = format!("'{}' is no [core_type]; {hint}", group.core_type);
    here.require(known, "core_type", message);
}

fn size(spec: &MachineSpec, here: &mut Within<'_>) {
    let pus = pus(spec);
    let message = format!("makes {pus} PUs; expected at most {MAX_PUS}");
    here.require(pus <= MAX_PUS, "", message);
}

/// PUs of the machine; what overflows counts as the most.
fn pus(spec: &MachineSpec) -> u64 {
    let layout = &spec.layout;
    let group = |group: &L2Group| {
        let core = spec.core_types.get(&group.core_type);
        let ways = core.and_then(|c| c.smt.iter().map(|mode| mode.ways).max());
        product(&[group.l2_domains, group.cores_per_l2, ways.unwrap_or(1)])
    };
    let domain = layout.cluster.iter().map(group);
    let domain = domain.fold(0, u64::saturating_add);
    let domains = product(&[
        layout.packages,
        layout.nodes_per_package,
        layout.llc_domains_per_node,
    ]);
    domain.saturating_mul(domains)
}

fn product(factors: &[u32]) -> u64 {
    let factors = factors.iter().map(|&f| u64::from(f));
    factors.fold(1, u64::saturating_mul)
}
