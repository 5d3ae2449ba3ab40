//! Topology discovery on described machines: what is found, how it is drawn, and
//! what holds for any machine.

mod skip;

use consort_core::topology::{Domain, Topology};
use consort_core::{PuId, PuSet};
use consort_linux::topology::{TopologyDiscovery, core_type_members, discover, draw};
use machines::{CoreGroup, Expect, GroupCache, Machine, Node};
use proptest::prelude::*;
use skip::skipped;

#[cfg(test)]
mod machines;

#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
fn discovered(machine: &Machine) -> TopologyDiscovery {
    let dir = machines::temp_dir();
    machine.write(dir.path());
    discover(dir.path()).unwrap()
}

fn found(d: &TopologyDiscovery) -> Expect {
    let t = &d.topology;
    let members = core_type_members(t).into_iter();
    Expect {
        packages: t.packages().len(),
        nodes: t.nodes().len(),
        llcs: t.llcs().len(),
        cores: t.cores().len(),
        smt: t.smt(),
        pus: t.pus().clone(),
        types: members
            .map(|(core_type, pus)| format!("{} {pus}", core_type.name))
            .collect(),
        sources: d
            .core_type_sources
            .iter()
            .map(ToString::to_string)
            .collect(),
        hypervisor: d.hypervisor.as_ref().map(|h| h.name.clone()),
        hidden_topology: d.hidden_topology,
        notes: d.notes.len(),
    }
}

#[test]
fn each_described_machine_is_found_as_expected() {
    let machines = machines::all();
    assert!(machines.len() >= 12, "only {} machines", machines.len());
    for (name, machine) in machines {
        let d = discovered(&machine);
        assert_eq!(found(&d), machine.expect, "{name}: {:?}", d.notes);
    }
}

#[test]
fn each_described_machine_is_drawn() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("machines/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, machine) in machines::all() {
        settings.bind(|| insta::assert_snapshot!(name, report(&discovered(&machine))));
    }
}

/// Everything that the explicit expectations leave out.
fn report(d: &TopologyDiscovery) -> String {
    let mut lines = draw(&d.topology);
    lines.push(format!(
        "present {}, online {}, affinity {}, cpuset {:?} {:?}",
        d.present,
        d.machine.pus(),
        d.allowed.by_affinity,
        d.allowed.by_cpuset,
        d.allowed.cgroup_version
    ));
    for node in &d.nodes {
        let distances: Vec<String> = node
            .distances
            .iter()
            .map(|(n, d)| format!("{n}:{d}"))
            .collect();
        lines.push(format!(
            "node {} CPUs {} distances {}",
            node.node,
            node.pus,
            distances.join(" ")
        ));
    }
    let l2s: Vec<String> = d
        .machine
        .l2s()
        .iter()
        .map(|l2| l2.pus.to_string())
        .collect();
    lines.push(format!("L2 {}", l2s.join(" | ")));
    for identity in &d.identities {
        lines.push(format!(
            "{}: {} {:?}",
            identity.pus, identity.identity, identity.model_name
        ));
    }
    lines.extend(d.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}

#[test]
fn sizes_of_caches_are_found() {
    let machines = machines::all();
    let (_, machine) = machines
        .iter()
        .find(|(name, _)| name == "hybrid-two-types")
        .unwrap();
    let d = discovered(machine);
    let level = |level| d.caches.iter().filter(move |c| c.level == level);
    let level_3: Vec<_> = level(3).collect();
    assert_eq!(level_3.len(), 1);
    assert_eq!(level_3[0].size_bytes, Some(30 << 20));
    assert_eq!(
        level(2).filter(|c| c.size_bytes == Some(2 << 20)).count(),
        2
    );
}

#[test]
fn the_host_is_discovered() {
    let root = std::path::Path::new("/");
    if !root.join("proc/self/status").exists() {
        skipped("no /proc on this host");
        return;
    }
    let d = discover(root).unwrap();
    partitions(&d.machine);
    assert!(d.topology.pus().is_subset(d.machine.pus()));
    assert!(!draw(&d.topology).is_empty());
}

/// Every kind of group holds every CPU exactly once, and every core lies in one of each.
fn partitions(t: &Topology) {
    let sets = |domains: &[Domain]| domains.iter().map(|d| d.pus.clone()).collect::<Vec<_>>();
    let cores: Vec<PuSet> = t
        .cores()
        .iter()
        .map(|c| c.pus.iter().copied().collect())
        .collect();
    for groups in [
        cores.clone(),
        sets(t.packages()),
        sets(t.nodes()),
        sets(t.llcs()),
    ] {
        let total: usize = groups.iter().map(PuSet::len).sum();
        assert_eq!(total, t.pus().len());
        let union = groups.iter().fold(PuSet::new(), |all, g| all.union(g));
        assert_eq!(&union, t.pus());
        for core in &cores {
            assert_eq!(groups.iter().filter(|g| core.is_subset(g)).count(), 1);
        }
    }
}

/// Packages of equal cores; each package is a node, each `llc_cores` cores share a cache.
fn regular(packages: u32, cores: u32, ways: u32, llc_cores: usize, adjacent: bool) -> Machine {
    let size = cores * ways;
    let pus = |p: u32| (p * size..(p + 1) * size).map(PuId).collect::<PuSet>();
    let cache = GroupCache {
        level: 3,
        kind: "Unified".into(),
        size: None,
        cores: Some(llc_cores),
    };
    Machine {
        cores: (0..packages)
            .map(|p| CoreGroup {
                pus: pus(p),
                ways: Some(ways as usize),
                adjacent,
                package: p.into(),
                caches: vec![cache.clone()],
                ..CoreGroup::default()
            })
            .collect(),
        nodes: (0..packages)
            .map(|id| Node {
                id,
                pus: pus(id),
                distances: Vec::new(),
            })
            .collect(),
        ..Machine::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn regular_machines_come_back(
        packages in 1u32..3, cores in 1u32..5, ways in 1u32..5, llc_cores in 1usize..4, adjacent: bool,
    ) {
        let machine = regular(packages, cores, ways, llc_cores, adjacent);
        let t = discovered(&machine).machine;
        let described: Vec<PuSet> = machine.cores.iter().flat_map(CoreGroup::members).collect();
        for core in t.cores() {
            prop_assert!(described.contains(&core.pus.iter().copied().collect()));
        }
        prop_assert_eq!(t.cores().len(), described.len());
        prop_assert_eq!(t.packages().len(), packages as usize);
        prop_assert_eq!(t.llcs().len(), packages as usize * (cores as usize).div_ceil(llc_cores));
        partitions(&t);
    }

    #[test]
    fn missing_and_strange_files_are_never_fatal(
        removed in prop::collection::vec(prop::sample::select(vec![
            "cache", "topology", "topology/core_id", "topology/core_cpus_list",
            "topology/physical_package_id", "cache/index0/shared_cpu_list", "cache/index0/level",
        ]), 0..4),
        strange in prop::collection::vec((0u32..8, prop::sample::select(vec![
            "topology/core_cpus", "topology/core_cpus_list", "topology/physical_package_id", "topology/core_id",
            "cache/index0/shared_cpu_list", "cache/index0/level", "cpu_capacity",
        ]), "(-1|0-7|3|1,5|99999|x|)"), 0..8),
    ) {
        let mut machine = regular(2, 2, 2, 2, false);
        let cpu = |pu: &str, file: &str| format!("sys/devices/system/cpu/cpu{pu}/{file}");
        machine.missing = removed.iter().map(|file| cpu("*", file)).collect();
        machine.files = strange.into_iter()
            .map(|(pu, file, content)| (cpu(&pu.to_string(), file), content))
            .collect();
        let t = discovered(&machine).machine;
        prop_assert_eq!(t.pus(), &machine.online());
        partitions(&t);
    }
}

proptest! {
    // Few cases: the largest machine is a tree of thousands of files.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_pus_of_a_described_machine_may_be_online(
        which in 0usize..100, keep in prop::collection::vec(any::<bool>(), 16),
    ) {
        let mut machines = machines::all();
        let which = which % machines.len();
        let (_, mut machine) = machines.swap_remove(which);
        let all = machine.online();
        let kept = all.iter().zip(keep.iter().cycle()).filter(|(_, keep)| **keep);
        let online: PuSet = kept.map(|(pu, _)| pu).collect();
        prop_assume!(!online.is_empty());
        machine.online = Some(online.clone());
        machine.files.clear();
        let t = discovered(&machine).machine;
        prop_assert_eq!(t.pus(), &online);
        partitions(&t);
    }
}
