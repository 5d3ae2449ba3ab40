//! Cores whose siblings share no cache.
//!
//! POWER9 and POWER10 show the eight PUs of a big core as siblings. Its even and its odd PUs are a
//! small core each, with caches of its own. Threads on different small cores compete
//! for nothing, so PUs that share the first level are the core. AMD's modules (family 15h), whose
//! halves share the first level of instructions, stay cores.

use super::DiscoveryNotes;
use super::caches::DiscoveredCache;
use super::partition::partition;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;

/// Splits siblings into groups that share first-level caches, and notes which cores were split.
///
/// Hypervisors often show siblings, and caches of one PU each, so that single PUs are split off on
/// hardware only, and only if no cache at all is shared.
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

/// The groups of a core's PUs that first-level caches, of data or of instructions, hold together;
/// the whole core if a PU has no such cache.
fn parts(core: &PuSet, caches: &[DiscoveredCache]) -> Vec<PuSet> {
    let first: Vec<PuSet> = { caches.iter() }
        .filter(|cache| cache.level == 1)
        .map(|cache| cache.pus.intersection(core))
        .filter(|pus| !pus.is_empty())
        .collect();
    let covered = first.iter().fold(PuSet::new(), |all, pus| all.union(pus));
    if covered != *core {
        return vec![core.clone()];
    }
    let mut parts: Vec<PuSet> = Vec::new();
    for pus in first {
        let (apart, touching): (Vec<_>, Vec<_>) =
            (parts.into_iter()).partition(|part| part.intersection(&pus).is_empty());
        parts = apart;
        parts.push(touching.iter().fold(pus, |all, part| all.union(part)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::caches::CacheKind;
    use super::*;

    /// The cores that are left of one of PUs 0-7 with these caches, each (level, kind, PUs).
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
