//! Places of the CPUs: the package of each, and the CPUs that share its core.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-devices-system-cpu`, files
//! below `cpuN/topology`. Pitfall: `core_id` is only unique within its die, and
//! on some Arm machines only within its cluster.

use super::DiscoveryNotes;
use crate::read;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;
use std::path::Path;

/// One CPU's `topology` directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PuTopologyEntry {
    package: Option<u32>,
    /// CPUs of the same package.
    package_pus: Option<PuSet>,
    /// Die, cluster and core id, which together with the package identify a core.
    ids: [Option<u32>; 3],
    siblings: Option<PuSet>,
}

/// Package number and claimed core siblings of every online CPU.
#[derive(Debug)]
pub(crate) struct PackagesAndSiblings {
    /// Package of each CPU.
    pub(crate) packages: BTreeMap<PuId, u32>,
    /// CPUs that each CPU names as sharing its core.
    pub(crate) siblings: BTreeMap<PuId, PuSet>,
}

/// Reads the `topology` directory of every online CPU.
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
    // Where a group has no number, the lowest of its CPUs is as good a name.
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

/// The package of each CPU. Packages without a number, which some kernels write as -1, are counted
/// after the others, by the CPUs that they name.
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
    notes.add_about_pu(
        pu,
        "no list of core siblings; cores distinguished by core_id",
    );
    let same = |other: &PuTopologyEntry| other.package == place.package && other.ids == place.ids;
    let members = all.iter().filter(|(_, other)| same(other));
    members.map(|(&pu, _)| pu).collect()
}

/// Each CPU's group, and the CPUs with a claim that does not hold.
pub(crate) struct Partition {
    /// Number of each CPU's group, counted from 0 in the order of the groups' lowest CPUs.
    pub(crate) group_of: BTreeMap<PuId, u32>,
    /// CPUs whose claim differs from their group.
    pub(crate) torn: PuSet,
}

/// Partitions the CPUs that make claims, each with the CPUs that it names.
pub(crate) fn partition(claims: &BTreeMap<PuId, PuSet>) -> Partition {
    let online: PuSet = claims.keys().copied().collect();
    let lowest =
        |pu: PuId, claim: &PuSet| claim.intersection(&online).first().unwrap_or(pu).min(pu);
    let keys: BTreeMap<PuId, PuId> = claims.iter().map(|(&pu, c)| (pu, lowest(pu, c))).collect();
    let mut members: BTreeMap<PuId, PuSet> = BTreeMap::new();
    for (&pu, &key) in &keys {
        members.entry(key).or_default().insert(pu);
    }
    let number = |key: PuId| members.range(..key).count() as u32;
    let differs = |(&pu, claim): (&PuId, &PuSet)| {
        let claimed = claim.intersection(&online).union(&PuSet::from(pu));
        (claimed != members[&keys[&pu]]).then_some(pu)
    };
    Partition {
        group_of: keys.iter().map(|(&pu, &key)| (pu, number(key))).collect(),
        torn: claims.iter().filter_map(differs).collect(),
    }
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
            &"CPUs 0-1: no list of core siblings; cores distinguished by core_id".to_owned()
        ));
        let other_die = [both[0], both[1], ("cpu1/topology/die_id", "1")];
        assert_eq!(siblings_of_0(&other_die).0, "0");
    }

    #[test]
    fn package_minus_one_is_unknown() {
        let (_, notes) = siblings_of_0(&[("cpu0/topology/physical_package_id", "-1")]);
        assert!(notes.contains(&"CPUs 0-1: no package shown; assumed package 0".to_owned()));
    }
}

#[cfg(test)]
mod partition_tests {
    use super::*;
    use proptest::prelude::*;

    fn claims(lists: &[&str]) -> BTreeMap<PuId, PuSet> {
        let pus = (0..).map(PuId);
        pus.zip(lists.iter().map(|l| l.parse().unwrap())).collect()
    }

    fn groups(p: &Partition) -> Vec<u32> {
        p.group_of.values().copied().collect()
    }

    #[test]
    fn agreeing_claims_are_the_partition() {
        let p = partition(&claims(&["0,2", "1,3", "0,2", "1,3"]));
        assert_eq!(groups(&p), [0, 1, 0, 1]);
        assert!(p.torn.is_empty());
    }

    #[test]
    fn claims_about_offline_pus_do_not_count() {
        let p = partition(&claims(&["0,8", "1,9"]));
        assert_eq!(groups(&p), [0, 1]);
        assert!(p.torn.is_empty());
    }

    #[test]
    fn disagreement_is_noted() {
        let p = partition(&claims(&["0-1", "1"]));
        assert_eq!(groups(&p), [0, 1]);
        assert_eq!(p.torn.to_string(), "0");
    }

    proptest! {
        #[test]
        fn the_pus_of_an_agreed_group_are_what_each_claims(
            lists in prop::collection::vec(prop::collection::btree_set(0u32..12, 0..6), 1..10),
        ) {
            let claims: BTreeMap<PuId, PuSet> = (0..).map(PuId)
                .zip(lists.into_iter().map(|l| l.into_iter().map(PuId).collect()))
                .collect();
            let p = partition(&claims);
            prop_assert!(p.group_of.keys().eq(claims.keys()));
            let groups: std::collections::BTreeSet<u32> = p.group_of.values().copied().collect();
            prop_assert!(groups.iter().copied().eq(0..groups.len() as u32));
            for (&pu, claim) in claims.iter().filter(|(pu, _)| !p.torn.contains(**pu)) {
                for other in claim.iter().filter(|o| claims.contains_key(o)) {
                    prop_assert_eq!(p.group_of[&pu], p.group_of[&other]);
                }
            }
        }
    }
}
