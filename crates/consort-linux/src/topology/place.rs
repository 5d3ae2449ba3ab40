//! Places of the PUs: the package of each, and the PUs that share its core.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-devices-system-cpu`, files
//! below `cpuN/topology`. Pitfall: `core_id` is only unique within its die, and
//! on some Arm machines only within its cluster.

use super::notes::Notes;
use crate::read;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;
use std::path::Path;

/// One PU's `topology` directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    package: Option<u32>,
    /// Die, cluster and core id, which together with the package identify a core.
    ids: [Option<u32>; 3],
    siblings: Option<PuSet>,
}

/// Package number and claimed core siblings of every online PU.
#[derive(Debug)]
pub(crate) struct Places {
    /// Package of each PU.
    pub(crate) packages: BTreeMap<PuId, u32>,
    /// PUs that each PU names as sharing its core.
    pub(crate) siblings: BTreeMap<PuId, PuSet>,
}

/// Reads the `topology` directory of every online PU.
pub(crate) fn places(root: &Path, online: &PuSet, notes: &mut Notes) -> Places {
    let places: BTreeMap<PuId, Place> = online.iter().map(|pu| (pu, place(root, pu))).collect();
    let siblings = |(&pu, place): (&PuId, &Place)| (pu, siblings(pu, place, &places, notes));
    let siblings = places.iter().map(siblings).collect();
    Places {
        packages: places
            .iter()
            .map(|(&pu, place)| (pu, package(pu, place, notes)))
            .collect(),
        siblings,
    }
}

fn place(root: &Path, pu: PuId) -> Place {
    let dir = read::pu_dir(root, pu).join("topology");
    let list = |name: &str| read::pus(&dir.join(name));
    Place {
        package: read::value(&dir.join("physical_package_id")),
        ids: ["die_id", "cluster_id", "core_id"].map(|name| read::value(&dir.join(name))),
        siblings: list("core_cpus_list").or_else(|| list("thread_siblings_list")),
    }
}

fn package(pu: PuId, place: &Place, notes: &mut Notes) -> u32 {
    place.package.unwrap_or_else(|| {
        notes.about(pu, "no package told; assumed package 0");
        0
    })
}

fn siblings(pu: PuId, place: &Place, all: &BTreeMap<PuId, Place>, notes: &mut Notes) -> PuSet {
    if let Some(told) = &place.siblings {
        return told.clone();
    }
    if place.ids[2].is_none() {
        notes.about(pu, "no core told; assumed a core of its own");
        return pu.into();
    }
    notes.about(pu, "no list of core siblings; cores told apart by core_id");
    let same = |other: &Place| other.package == place.package && other.ids == place.ids;
    let members = all.iter().filter(|(_, other)| same(other));
    members.map(|(&pu, _)| pu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join("sys/devices/system/cpu").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    fn siblings_of_0(files: &[(&str, &str)]) -> (String, Vec<String>) {
        let mut notes = Notes::default();
        let places = places(tree(files).path(), &"0-1".parse().unwrap(), &mut notes);
        (places.siblings[&PuId(0)].to_string(), notes.into_lines())
    }

    #[test]
    fn the_old_name_of_the_sibling_list_is_read_too() {
        let (siblings, _) = siblings_of_0(&[("cpu0/topology/thread_siblings_list", "0-1")]);
        assert_eq!(siblings, "0-1");
    }

    #[test]
    fn core_ids_stand_in_within_a_die() {
        let both = [
            ("cpu0/topology/core_id", "4"),
            ("cpu1/topology/core_id", "4"),
        ];
        let (siblings, notes) = siblings_of_0(&both);
        assert_eq!(siblings, "0-1");
        assert!(notes.contains(
            &"PUs 0-1: no list of core siblings; cores told apart by core_id".to_owned()
        ));
        let other_die = [both[0], both[1], ("cpu1/topology/die_id", "1")];
        assert_eq!(siblings_of_0(&other_die).0, "0");
    }

    #[test]
    fn a_package_of_minus_one_is_not_told() {
        let (_, notes) = siblings_of_0(&[("cpu0/topology/physical_package_id", "-1")]);
        assert!(notes.contains(&"PUs 0-1: no package told; assumed package 0".to_owned()));
    }
}
