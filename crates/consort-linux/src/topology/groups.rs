//! Package, node, core and cache domains of each CPU, as numbers that a topology takes.
//!
//! Pitfall: call [`PuGroups::repair_cores`] before [`PuGroups::facts`]; a topology refuses cores
//! whose CPUs lie in different places, which some hypervisors show.

use super::caches::{self, DiscoveredCache};
use super::pu_topology::partition;
use super::{DiscoveryNotes, pu_topology};
use crate::read;
use consort_core::topology::PuFacts;
use consort_core::{PuId, PuSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Groups of the online CPUs: for each kind of group, the number of every CPU's group.
pub(crate) struct PuGroups {
    package: BTreeMap<PuId, u32>,
    node: BTreeMap<PuId, u32>,
    core: BTreeMap<PuId, u32>,
    llc: BTreeMap<PuId, u32>,
    l2: BTreeMap<PuId, u32>,
}

impl PuGroups {
    /// Reads every group; `is_virtual` if there is a hypervisor.
    pub(crate) fn new(
        root: &Path,
        online: &PuSet,
        caches: &[DiscoveredCache],
        nodes: &[NumaNode],
        is_virtual: bool,
        notes: &mut DiscoveryNotes,
    ) -> Self {
        let mut places = pu_topology::read_packages_and_siblings(root, online, notes);
        let shows_sharers = |pu| caches::shows_sharers(root, pu);
        split(
            &mut places.siblings,
            caches,
            is_virtual,
            shows_sharers,
            notes,
        );
        caches::note_crossings(caches, notes);
        let llc = caches::last_level_sharers(caches, &places.packages, notes);
        Self {
            node: nodes_by_pu(nodes, online, notes),
            core: number_groups(&places.siblings, "core siblings", notes),
            llc: number_groups(&llc, "sharers of the last-level cache", notes),
            l2: number_groups(
                &caches::level_2_sharers(caches),
                "sharers of the level 2 cache",
                notes,
            ),
            package: places.packages,
        }
    }

    /// Gives all CPUs of a core the place of its first CPU; some hypervisors spread siblings over
    /// packages or nodes.
    pub(crate) fn repair_cores(&mut self, notes: &mut DiscoveryNotes) {
        let cores = self.cores();
        let maps = [
            (&mut self.package, "package"),
            (&mut self.node, "NUMA node"),
            (&mut self.llc, "LLC domain"),
        ];
        for (map, what) in maps {
            for core in &cores {
                let Some(&first) = core.first().and_then(|pu| map.get(&pu)) else {
                    continue;
                };
                for pu in core.iter() {
                    if map.insert(pu, first) != Some(first) {
                        let note = format!(
                            "shown in another {what} than its core's first CPU; took that one's"
                        );
                        notes.add_about_pu(pu, note);
                    }
                }
            }
        }
    }

    /// The CPUs of each core, in the order of the core numbers.
    pub(crate) fn cores(&self) -> Vec<PuSet> {
        let mut cores: BTreeMap<u32, PuSet> = BTreeMap::new();
        for (&pu, &core) in &self.core {
            cores.entry(core).or_default().insert(pu);
        }
        cores.into_values().collect()
    }

    /// The facts of every CPU, given the type of each core.
    pub(crate) fn facts(&self, type_of_core: &[usize]) -> Vec<PuFacts> {
        let of = |map: &BTreeMap<PuId, u32>, pu| map.get(&pu).copied().unwrap_or(0);
        let fact = |(&pu, &core): (&PuId, &u32)| PuFacts {
            pu,
            package: of(&self.package, pu),
            node: of(&self.node, pu),
            core,
            llc: of(&self.llc, pu),
            l2: self.l2.get(&pu).copied(),
            core_type: type_of_core.get(core as usize).copied().unwrap_or(0),
        };
        self.core.iter().map(fact).collect()
    }
}

fn number_groups(
    claims: &BTreeMap<PuId, PuSet>,
    what: &str,
    notes: &mut DiscoveryNotes,
) -> BTreeMap<PuId, u32> {
    let found = partition(claims);
    for pu in found.torn.iter() {
        notes.add_about_pu(pu, format!("others do not agree with its {what}"));
    }
    found.group_of
}

// POWER9 and POWER10 show the eight CPUs of a big core as siblings. Its even and its odd CPUs are a
// small core each, with caches of its own. Threads on different small cores compete
// for nothing, so CPUs that share the first level are the core. AMD's modules (family 15h), whose
// halves share the first level of instructions, stay cores.

/// Splits siblings into groups that share first-level caches, and notes which cores were split.
///
/// Hypervisors often show siblings, and caches of one CPU each, so that single CPUs are split off
/// on hardware only, and only if no cache at all is shared.
pub(super) fn split(
    siblings: &mut BTreeMap<PuId, PuSet>,
    caches: &[DiscoveredCache],
    is_virtual: bool,
    shows_sharers: impl Fn(PuId) -> bool,
    notes: &mut DiscoveryNotes,
) {
    let mut cores: BTreeMap<u32, PuSet> = BTreeMap::new();
    for (pu, core) in partition(siblings).group_of {
        cores.entry(core).or_default().insert(pu);
    }
    for core in cores.into_values().filter(|core| core.len() > 1) {
        let parts = parts(&core, caches);
        if parts.len() < 2 || !core.iter().all(&shows_sharers) {
            continue;
        }
        let single = parts.iter().all(|part| part.len() == 1);
        let shares_any = caches.iter().any(|c| c.pus.intersection(&core).len() > 1);
        if single && (is_virtual || shares_any) {
            for pu in core.iter() {
                notes.add_about_pu(
                    pu,
                    "shown as siblings of a core without a common first-level cache; the siblings were believed",
                );
            }
            continue;
        }
        for part in parts {
            for pu in part.iter() {
                notes.add_about_pu(
                    pu,
                    "shown as siblings of a core, parts of it without a common first-level cache; the caches were believed, so each part is a core",
                );
                siblings.insert(pu, part.clone());
            }
        }
    }
}

/// The groups of a core's CPUs that first-level caches, of data or of instructions, hold together;
/// the whole core if a CPU has no such cache.
fn parts(core: &PuSet, caches: &[DiscoveredCache]) -> Vec<PuSet> {
    let first: Vec<PuSet> = { caches.iter() }
        .filter(|cache| cache.level == 1)
        .map(|cache| cache.pus.intersection(core))
        .filter(|pus| !pus.is_empty())
        .collect();
    let covered = first.iter().fold(PuSet::new(), |all, pus| all.union(pus));
    // Without caches of all CPUs it is not known what the rest share.
    if covered != *core {
        return vec![core.clone()];
    }
    let mut parts: Vec<PuSet> = Vec::new();
    for pus in first {
        // Caches of data and of instructions may overlap, so parts that touch become one.
        let (apart, touching): (Vec<_>, Vec<_>) =
            (parts.into_iter()).partition(|part| part.intersection(&pus).is_empty());
        parts = apart;
        parts.push(touching.iter().fold(pus, |all, part| all.union(part)));
    }
    parts
}

/// One NUMA node; one without CPUs has memory only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Number that the kernel gives the node.
    pub node: u32,
    /// Online CPUs of the node.
    pub pus: PuSet,
    /// Relative memory latency to each node (10 is local); empty if it is not shown.
    pub distances: BTreeMap<u32, u32>,
}

/// Returns all nodes, by number; empty if the kernel shows none.
pub(crate) fn nodes(root: &Path, online: &PuSet) -> Vec<NumaNode> {
    let dirs = read::numbered_entries(&root.join("sys/devices/system/node"), "node");
    let numbers: Vec<u32> = dirs.iter().map(|(number, _)| *number).collect();
    let node = |(node, dir): &(u32, PathBuf)| NumaNode {
        node: *node,
        pus: read::pus_in_dir(dir, &["cpulist"], &["cpumap"])
            .unwrap_or_default()
            .intersection(online),
        distances: distances(&dir.join("distance"), &numbers),
    };
    dirs.iter().map(node).collect()
}

fn distances(file: &Path, nodes: &[u32]) -> BTreeMap<u32, u32> {
    let text = read::text(file).unwrap_or_default();
    let row: Vec<u32> = text
        .split_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    // Such a row does not show which node a distance belongs to.
    if row.len() != nodes.len() {
        return BTreeMap::new();
    }
    nodes.iter().copied().zip(row).collect()
}

/// Returns the node of each online CPU; 0 if none is shown.
pub(crate) fn nodes_by_pu(
    nodes: &[NumaNode],
    online: &PuSet,
    notes: &mut DiscoveryNotes,
) -> BTreeMap<PuId, u32> {
    let mut node = |pu| {
        let reported = nodes.iter().find(|n| n.pus.contains(pu));
        if reported.is_none() {
            notes.add_about_pu(pu, "no NUMA node shown; assumed node 0");
        }
        reported.map_or(0, |n| n.node)
    };
    online.iter().map(|pu| (pu, node(pu))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::caches::CacheKind;
    use super::*;

    /// The cores that are left of one of CPUs 0-7 with these caches, each (level, kind, CPUs).
    fn cores(caches: &[(u32, CacheKind, &str)], is_virtual: bool) -> (Vec<String>, usize) {
        let set = |text: &str| text.parse::<PuSet>().unwrap();
        let caches: Vec<DiscoveredCache> = { caches.iter() }
            .map(|&(level, kind, pus)| DiscoveredCache {
                level,
                kind,
                pus: set(pus),
                size_bytes: None,
            })
            .collect();
        let mut siblings = (0..8).map(|pu| (PuId(pu), set("0-7"))).collect();
        let mut notes = DiscoveryNotes::default();
        split(&mut siblings, &caches, is_virtual, |_| true, &mut notes);
        let mut cores: Vec<String> = siblings.values().map(ToString::to_string).collect();
        cores.dedup();
        cores.sort_unstable();
        cores.dedup();
        (cores, notes.into_lines().len())
    }

    use CacheKind::{Data, Instruction, Unified};

    #[test]
    fn small_cores_of_a_big_core_are_cores() {
        let halves = [(1, Data, "0,2,4,6"), (1, Data, "1,3,5,7")];
        let expected = vec!["0,2,4,6".to_owned(), "1,3,5,7".to_owned()];
        assert_eq!(cores(&halves, false), (expected.clone(), 1));
        let shared_above = [halves[0], halves[1], (2, Unified, "0-7")];
        assert_eq!(cores(&shared_above, false), (expected.clone(), 1));
        assert_eq!(cores(&halves, true), (expected, 1), "in a partition");
    }

    #[test]
    fn halves_that_share_instructions_are_one_core() {
        let module = [(1, Data, "0-3"), (1, Data, "4-7"), (1, Instruction, "0-7")];
        assert_eq!(cores(&module, false), (vec!["0-7".to_owned()], 0));
        assert_eq!(cores(&[], false).0, ["0-7"]);
        assert_eq!(
            cores(&[(1, Data, "0-3")], false).0,
            ["0-7"],
            "not all shown"
        );
    }

    #[test]
    fn single_pu_caches_split_hardware_without_sharing() {
        let own: Vec<String> = (0..8).map(|pu| pu.to_string()).collect();
        let private: Vec<_> = own.iter().map(|pu| (1, Data, pu.as_str())).collect();
        assert_eq!(cores(&private, false).0, own);
        assert_eq!(cores(&private, true), (vec!["0-7".to_owned()], 1));
        let with_l3 = [&private[..], &[(3, Unified, "0-7")]].concat();
        assert_eq!(cores(&with_l3, false), (vec!["0-7".to_owned()], 1));
    }
}

#[cfg(test)]
mod nodes_tests {
    use super::*;
    use std::fs;

    #[test]
    fn nodes_with_holes_keep_their_numbers_and_distances() {
        let dir = tempfile::tempdir().unwrap();
        let files = [(0, "0-1", "10 80"), (8, "", "80 10")];
        for (node, cpus, distance) in files {
            let node = dir
                .path()
                .join(format!("sys/devices/system/node/node{node}"));
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("cpulist"), cpus).unwrap();
            fs::write(node.join("distance"), distance).unwrap();
        }
        let online = "0,2".parse().unwrap();
        let nodes = nodes(dir.path(), &online);
        assert_eq!(nodes[0].pus.to_string(), "0");
        assert_eq!(nodes[0].distances, BTreeMap::from([(0, 10), (8, 80)]));
        assert!(nodes[1].pus.is_empty());
        let mut notes = DiscoveryNotes::default();
        let of = nodes_by_pu(&nodes, &online, &mut notes);
        assert_eq!(of, BTreeMap::from([(PuId(0), 0), (PuId(2), 0)]));
        assert_eq!(
            notes.into_lines(),
            ["CPUs 2: no NUMA node shown; assumed node 0"]
        );
    }

    #[test]
    fn distance_row_of_other_length_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("distance");
        fs::write(&file, "10 21 31").unwrap();
        assert!(distances(&file, &[0, 1]).is_empty());
        assert_eq!(distances(&file, &[0, 1, 4])[&4], 31);
    }
}
