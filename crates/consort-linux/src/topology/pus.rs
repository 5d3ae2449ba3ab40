//! PUs of the host that are present, and those that are online.

use super::notes::Notes;
use crate::read;
use consort_core::{PuId, PuSet};
use std::path::Path;

const CPU_DIR: &str = "sys/devices/system/cpu";

/// The online PUs alone, for cheap re-reading; none where no source lists any.
pub(crate) fn online(root: &Path) -> Option<PuSet> {
    online_with(root, &mut Notes::default())
}

/// The online PUs, noting which stand-in was used where `online` is missing.
pub(crate) fn online_with(root: &Path, notes: &mut Notes) -> Option<PuSet> {
    let cpu_dir = root.join(CPU_DIR);
    if let Some(pus) = read::pus(&cpu_dir.join("online")) {
        return Some(pus);
    }
    let (pus, source) = stand_in(root)?;
    notes.add(format!(
        "{CPU_DIR}/online is missing; took the PUs of {source} as online"
    ));
    Some(pus)
}

/// The PUs that are plugged in, online or not.
pub(crate) fn present(root: &Path, online: &PuSet) -> PuSet {
    let told = read::pus(&root.join(CPU_DIR).join("present"));
    told.unwrap_or_default().union(online)
}

fn stand_in(root: &Path) -> Option<(PuSet, &'static str)> {
    let cpu_dir = root.join(CPU_DIR);
    let dirs = || set(read::numbered(&cpu_dir, "cpu").into_iter().map(|(n, _)| n));
    let sources = [
        (in_cpuinfo(root), "proc/cpuinfo"),
        (read::pus(&cpu_dir.join("present")), "present"),
        (dirs(), "the cpu* directories"),
    ];
    sources
        .into_iter()
        .find_map(|(pus, source)| Some((pus?, source)))
}

/// The PUs of `/proc/cpuinfo`, which lists online ones only.
fn in_cpuinfo(root: &Path) -> Option<PuSet> {
    let text = read::text(&root.join("proc/cpuinfo"))?;
    set(super::cpuinfo::processors(&text)
        .into_iter()
        .map(|p| p.pu.0))
}

fn set(numbers: impl Iterator<Item = u32>) -> Option<PuSet> {
    let set: PuSet = numbers.map(PuId).collect();
    (!set.is_empty()).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_source_stands_in_for_a_missing_one() {
        let dir = tempfile::tempdir().unwrap();
        let cpu = dir.path().join(CPU_DIR);
        let check = |expected: Option<&str>, noted: bool| {
            let mut notes = Notes::default();
            let online = online_with(dir.path(), &mut notes).map(|s| s.to_string());
            assert_eq!(online.as_deref(), expected);
            assert_eq!(!notes.into_lines().is_empty(), noted);
        };
        check(None, false);
        fs::create_dir_all(cpu.join("cpu3")).unwrap();
        check(Some("3"), true);
        fs::write(cpu.join("present"), "0-3\n").unwrap();
        check(Some("0-3"), true);
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(dir.path().join("proc/cpuinfo"), "processor : 0\n").unwrap();
        check(Some("0"), true);
        fs::write(cpu.join("online"), "0,2\n").unwrap();
        check(Some("0,2"), false);
        assert_eq!(online(dir.path()).unwrap().to_string(), "0,2");
        let online = "0,2".parse().unwrap();
        assert_eq!(present(dir.path(), &online).to_string(), "0-3");
    }
}
