//! Caches, the CPUs that share them, and the last level.
//!
//! Source: Linux `Documentation/ABI/testing/sysfs-devices-system-cpu`, files below
//! `cpuN/cache/indexM`. The last-level cache of a CPU is its highest-level cache that holds data,
//! from level 2 up; CPUs of one machine may differ in the level (some low-power cores have no level
//! 3). If a CPU shows no such cache, its package stands in.

use super::DiscoveryNotes;
use crate::read;
use consort_core::{PuId, PuSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DiscoveredCache {
    /// Level, 1 nearest to the core.
    pub level: u32,
    /// Contents of the cache.
    pub kind: CacheKind,
    /// The online CPUs that share it.
    pub pus: PuSet,
    /// Capacity, bytes; `None` if it is not shown.
    pub size_bytes: Option<u64>,
}

impl DiscoveredCache {
    fn holds_data_beyond_level_1(&self) -> bool {
        self.level >= 2 && self.kind != CacheKind::Instruction
    }
}

/// Every distinct cache of the online CPUs, by level, kind and lowest CPU.
pub(crate) fn caches(root: &Path, online: &PuSet) -> Vec<DiscoveredCache> {
    // Each CPU lists a shared cache; the set keeps one of the equal entries.
    let mut all = BTreeSet::new();
    for pu in online.iter() {
        let indices = read::numbered_entries(&read::pu_dir(root, pu).join("cache"), "index");
        all.extend(indices.iter().filter_map(|(_, dir)| cache(dir, pu, online)));
    }
    all.into_iter().collect()
}

/// Reads one index directory; a cache whose sharers are not shown is the CPU's own.
fn cache(dir: &Path, pu: PuId, online: &PuSet) -> Option<DiscoveredCache> {
    let kind = match read::text(&dir.join("type")).as_deref() {
        Some("Data") => CacheKind::Data,
        Some("Instruction") => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    let sharers =
        read::pus_in_dir(dir, &["shared_cpu_list"], &["shared_cpu_map"]).unwrap_or_default();
    Some(DiscoveredCache {
        level: read::value(&dir.join("level"))?,
        kind,
        pus: sharers.intersection(online).union(&pu.into()),
        size_bytes: read::text(&dir.join("size")).and_then(|text| size_bytes(&text)),
    })
}

/// Returns true if the CPU's first-level caches show their sharers.
pub(crate) fn shows_sharers(root: &Path, pu: PuId) -> bool {
    let indices = read::numbered_entries(&read::pu_dir(root, pu).join("cache"), "index");
    let mut first = indices
        .iter()
        .filter(|(_, dir)| read::value(&dir.join("level")) == Some(1));
    first.all(|(_, dir)| read::pus_in_dir(dir, &["shared_cpu_list"], &["shared_cpu_map"]).is_some())
}

/// Notes lower caches that reach beyond a higher one. Hardware does not build that, so one of the
/// two is wrong.
pub(crate) fn note_crossings(caches: &[DiscoveredCache], notes: &mut DiscoveryNotes) {
    let data = |c: &&DiscoveredCache| c.holds_data_beyond_level_1();
    for low in caches.iter().filter(data) {
        let above =
            |c: &&DiscoveredCache| c.level > low.level && !c.pus.intersection(&low.pus).is_empty();
        let highs: Vec<&DiscoveredCache> = caches.iter().filter(data).filter(above).collect();
        if let Some(high) = highs.iter().find(|high| !low.pus.is_subset(&high.pus)) {
            notes.add(format!(
                "the level {} cache of CPUs {} reaches beyond the level {} cache of CPUs {}; the highest level counts as the LLC domain",
                low.level, low.pus, high.level, high.pus
            ));
        }
    }
}

/// Returns the CPUs that share each CPU's last-level cache; those of its package if no cache is
/// shown.
pub(crate) fn last_level_sharers(
    caches: &[DiscoveredCache],
    packages: &BTreeMap<PuId, u32>,
    notes: &mut DiscoveryNotes,
) -> BTreeMap<PuId, PuSet> {
    let mut without_cache = PuSet::new();
    let mut sharers = BTreeMap::new();
    for &pu in packages.keys() {
        let usable = caches.iter().filter(|c| c.holds_data_beyond_level_1());
        let highest = usable
            .filter(|c| c.pus.contains(pu))
            .max_by_key(|c| c.level);
        match highest {
            Some(cache) => drop(sharers.insert(pu, cache.pus.clone())),
            None => without_cache.insert(pu),
        }
    }
    for pu in without_cache.iter() {
        notes.add_about_pu(
            pu,
            "no cache beyond level 1 shown; assumed one LLC domain per package",
        );
        let in_package = without_cache
            .iter()
            .filter(|other| packages.get(other) == packages.get(&pu));
        sharers.insert(pu, in_package.collect());
    }
    sharers
}

/// The CPUs that share each CPU's level 2 cache, for the CPUs that have one.
pub(crate) fn level_2_sharers(caches: &[DiscoveredCache]) -> BTreeMap<PuId, PuSet> {
    let level_2 = |c: &&DiscoveredCache| c.level == 2 && c.kind != CacheKind::Instruction;
    let caches = caches.iter().filter(level_2);
    caches
        .flat_map(|c| c.pus.iter().map(|pu| (pu, c.pus.clone())))
        .collect()
}

/// Capacity, bytes, of the last-level cache that all of these CPUs share; of the level 2 cache if
/// `level` is 2. `None` if they share none, or its size is not shown.
pub(crate) fn shared_size(
    caches: &[DiscoveredCache],
    pus: &PuSet,
    level: Option<u32>,
) -> Option<u64> {
    let usable = caches.iter().filter(|c| c.holds_data_beyond_level_1());
    let shared = usable.filter(|c| pus.is_subset(&c.pus) && level.is_none_or(|l| c.level == l));
    shared.max_by_key(|c| (c.level, c.size_bytes))?.size_bytes
}

/// A size as the kernel writes it: `48K`, also `2M`, `1G` or plain bytes.
fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cache(level: u32, kind: CacheKind, pus: &str) -> DiscoveredCache {
        DiscoveredCache {
            level,
            kind,
            pus: pus.parse().unwrap(),
            size_bytes: None,
        }
    }

    fn last_levels(caches: &[DiscoveredCache], packages: &[u32]) -> (Vec<String>, Vec<String>) {
        let packages = (0..).map(PuId).zip(packages.iter().copied()).collect();
        let mut notes = DiscoveryNotes::default();
        let sharers = last_level_sharers(caches, &packages, &mut notes);
        (
            sharers.values().map(ToString::to_string).collect(),
            notes.into_lines(),
        )
    }

    #[test]
    fn the_last_level_may_differ_between_pus() {
        let caches = [
            cache(2, CacheKind::Unified, "0"),
            cache(2, CacheKind::Unified, "2-3"),
            cache(3, CacheKind::Unified, "0-1"),
            cache(4, CacheKind::Instruction, "0-3"),
        ];
        let (sharers, notes) = last_levels(&caches, &[0, 0, 0, 0]);
        assert_eq!(sharers, ["0-1", "0-1", "2-3", "2-3"]);
        assert!(notes.is_empty());
    }

    #[test]
    fn a_first_level_is_not_a_last_level() {
        let caches = [
            cache(1, CacheKind::Data, "0"),
            cache(2, CacheKind::Unified, "3"),
        ];
        let (sharers, notes) = last_levels(&caches, &[0, 0, 1, 1]);
        assert_eq!(sharers, ["0-1", "0-1", "2", "3"]);
        assert_eq!(
            notes,
            ["CPUs 0-2: no cache beyond level 1 shown; assumed one LLC domain per package"]
        );
    }

    #[test]
    fn level_2_across_two_level_3_is_noted() {
        let mut caches = vec![
            cache(2, CacheKind::Unified, "0-11"),
            cache(3, CacheKind::Unified, "0-5"),
            cache(3, CacheKind::Unified, "6-11"),
        ];
        let noted = |caches: &[DiscoveredCache]| {
            let mut notes = DiscoveryNotes::default();
            note_crossings(caches, &mut notes);
            notes.into_lines()
        };
        let note = "the level 2 cache of CPUs 0-11 reaches beyond the level 3 cache of CPUs 0-5; the highest level counts as the LLC domain";
        assert_eq!(noted(&caches), [note]);
        caches[0].pus = "0-5".parse().unwrap();
        assert!(noted(&caches).is_empty());
    }

    #[test]
    fn sizes_are_read() {
        let sizes = [
            "32K",
            "2M",
            "1G",
            "512",
            "",
            "K",
            "-1K",
            "99999999999999999999K",
            "18446744073709551615K",
            "7é",
        ];
        let bytes = sizes.map(size_bytes);
        assert_eq!(
            bytes[..4],
            [Some(32 << 10), Some(2 << 20), Some(1 << 30), Some(512)]
        );
        assert_eq!(bytes[4..], [None; 6]);
    }

    proptest! {
        #[test]
        fn any_size_text_is_read_without_failing(text in "[0-9]{0,22}.{0,3}") {
            let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
            if let Some(bytes) = size_bytes(&text) {
                prop_assert!(bytes >= digits.parse::<u64>().unwrap_or(0));
            }
        }

        #[test]
        fn kilobytes_come_back(kib in 0u64..1 << 50) {
            prop_assert_eq!(size_bytes(&format!("{kib}K\n")), Some(kib << 10));
        }
    }
}
