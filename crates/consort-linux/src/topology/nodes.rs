//! NUMA nodes and their distances.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-devices-node`. A `distance`
//! file has one number per online node, in ascending order of the nodes; 10 is
//! local, as in ACPI's SLIT.

use super::DiscoveryNotes;
use crate::read;
use consort_core::{PuId, PuSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One NUMA node; one without PUs has memory only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Number that the kernel gives the node.
    pub node: u32,
    /// Online PUs of the node.
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
    if row.len() != nodes.len() {
        return BTreeMap::new();
    }
    nodes.iter().copied().zip(row).collect()
}

/// Returns the node of each online PU; 0 if none is shown.
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
            ["PUs 2: no NUMA node shown; assumed node 0"]
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
