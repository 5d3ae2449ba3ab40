//! Places of the PUs: the package of each, and the PUs that share its core.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-devices-system-cpu`, files
//! below `cpuN/topology`. Pitfall: `core_id` is only unique within its die, and
//! on some Arm machines only within its cluster.

use super::DiscoveryNotes;
use super::partition::partition;
use crate::read;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;
use std::path::Path;

/// One PU's `topology` directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PuTopologyEntry {
    package: Option<u32>,
    /// PUs of the same package.
    package_pus: Option<PuSet>,
    /// Die, cluster and core id, which together with the package identify a core.
    ids: [Option<u32>; 3],
    siblings: Option<PuSet>,
}

/// Package number and claimed core siblings of every online PU.
#[derive(Debug)]
pub(crate) struct PackagesAndSiblings {
    /// Package of each PU.
    pub(crate) packages: BTreeMap<PuId, u32>,
    /// PUs that each PU names as sharing its core.
    pub(crate) siblings: BTreeMap<PuId, PuSet>,
}

/// Reads the `topology` directory of every online PU.
pub(crate) fn read_packages_and_siblings(
    root: &Path,
    online: &PuSet,
    notes: &mut DiscoveryNotes,
) -> PackagesAndSiblings {
    let places: BTreeMap<PuId, PuTopologyEntry> = online
        .iter()
        .map(|pu| (pu, read_pu_entry(root, pu)))
        .collect();
    let siblings =
        |(&pu, place): (&PuId, &PuTopologyEntry)| (pu, siblings(pu, place, &places, notes));
    let siblings = places.iter().map(siblings).collect();
    PackagesAndSiblings {
        packages: packages(&places, notes),
        siblings,
    }
}

fn read_pu_entry(root: &Path, pu: PuId) -> PuTopologyEntry {
    let dir = read::pu_dir(root, pu).join("topology");
    let pus = |lists: &[&str], masks: &[&str]| read::pus_in_dir(&dir, lists, masks);
    // Where a group has no number, the lowest of its PUs is as good a name.
    let first = |group: &str| {
        let (list, mask) = (format!("{group}_cpus_list"), format!("{group}_cpus"));
        Some(pus(&[&list], &[&mask])?.first()?.0)
    };
    let number = |name: &str| read::value(&dir.join(name));
    PuTopologyEntry {
        package: number("physical_package_id"),
        package_pus: pus(
            &["package_cpus_list", "core_siblings_list"],
            &["package_cpus", "core_siblings"],
        ),
        ids: [
            number("die_id").or_else(|| first("die")),
            number("cluster_id").or_else(|| first("cluster")),
            number("core_id"),
        ],
        siblings: pus(
            &["core_cpus_list", "thread_siblings_list"],
            &["core_cpus", "thread_siblings"],
        ),
    }
}

/// The package of each PU. Packages without a number, which some kernels write as -1, are counted
/// after the others, by the PUs that they name.
fn packages(
    places: &BTreeMap<PuId, PuTopologyEntry>,
    notes: &mut DiscoveryNotes,
) -> BTreeMap<PuId, u32> {
    let unnumbered = places.iter().filter(|(_, place)| place.package.is_none());
    let claims = unnumbered.filter_map(|(&pu, place)| Some((pu, place.package_pus.clone()?)));
    let by_pus = partition(&claims.collect()).group_of;
    let numbered = places.values().filter_map(|place| place.package);
    let next = numbered.max().map_or(0, |last| last.saturating_add(1));
    let mut package = |(&pu, place): (&PuId, &PuTopologyEntry)| {
        let package = match (place.package, by_pus.get(&pu)) {
            (Some(number), _) => number,
            (None, Some(group)) => next.saturating_add(*group),
            (None, None) => {
                notes.add_about_pu(pu, "no package shown; assumed package 0");
                0
            }
        };
        (pu, package)
    };
    places.iter().map(&mut package).collect()
}

fn siblings(
    pu: PuId,
    place: &PuTopologyEntry,
    all: &BTreeMap<PuId, PuTopologyEntry>,
    notes: &mut DiscoveryNotes,
) -> PuSet {
    if let Some(reported) = &place.siblings {
        return reported.clone();
    }
    if place.ids[2].is_none() {
        notes.add_about_pu(pu, "no core shown; assumed a core of its own");
        return pu.into();
    }
    notes.add_about_pu(pu, "no list of core siblings; cores told apart by core_id");
    let same = |other: &PuTopologyEntry| other.package == place.package && other.ids == place.ids;
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
        let mut notes = DiscoveryNotes::default();
        let places =
            read_packages_and_siblings(tree(files).path(), &"0-1".parse().unwrap(), &mut notes);
        (places.siblings[&PuId(0)].to_string(), notes.into_lines())
    }

    #[test]
    fn old_name_of_sibling_list_is_read() {
        let (siblings, _) = siblings_of_0(&[("cpu0/topology/thread_siblings_list", "0-1")]);
        assert_eq!(siblings, "0-1");
    }

    #[test]
    fn masks_of_siblings_and_packages_are_read() {
        let (siblings, _) = siblings_of_0(&[("cpu0/topology/thread_siblings", "00000003")]);
        assert_eq!(siblings, "0-1");
        let (siblings, _) = siblings_of_0(&[("cpu0/topology/core_cpus", "3\n\0")]);
        assert_eq!(siblings, "0-1");
        let files = [
            ("cpu0/topology/physical_package_id", "-1"),
            ("cpu1/topology/physical_package_id", "-1"),
            ("cpu0/topology/core_siblings", "1"),
            ("cpu1/topology/package_cpus", "2"),
        ];
        let mut notes = DiscoveryNotes::default();
        let places =
            read_packages_and_siblings(tree(&files).path(), &"0-1".parse().unwrap(), &mut notes);
        assert_eq!(
            places.packages,
            BTreeMap::from([(PuId(0), 0), (PuId(1), 1)])
        );
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
        assert!(notes.contains(&"PUs 0-1: no package shown; assumed package 0".to_owned()));
    }
}
