//! The host's CPUs: present, online, isolated, and without ticks.
//!
//! Sources of the last two: Linux `Documentation/admin-guide/kernel-parameters.txt` (`isolcpus`,
//! `nohz_full`), `cgroup-v2.rst` (partitions) and `cgroup-v1/cpusets.rst` (`sched_load_balance`).
//!
//! Pitfall: containers may show an `online` of their own (lxcfs), with as many CPUs as the
//! container may use, counted from 0. Affinity and cpuset, which the kernel enforces, outrank it.

use super::DiscoveryNotes;
use crate::cgroup::{self, CgroupCpuset, CgroupVersion, CpusetHierarchies, CpusetLocation};
use crate::proc::ProcStatus;
use crate::read;
use consort_core::{PuId, PuSet};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const CPU_DIR: &str = "sys/devices/system/cpu";

/// The online CPUs as files show them, for cheap re-reading; `None` if no source lists any.
pub(crate) fn listed_pus(root: &Path) -> Option<PuSet> {
    read_listed_pus(root, &mut DiscoveryNotes::default())
}

/// The online CPUs as files show them, noting which stand-in was used if `online` is missing.
fn read_listed_pus(root: &Path, notes: &mut DiscoveryNotes) -> Option<PuSet> {
    let cpu_dir = root.join(CPU_DIR);
    if let Some(pus) = read::pus(&cpu_dir.join("online")) {
        return Some(pus);
    }
    let (pus, source) = find_stand_in(root)?;
    notes.add(format!(
        "{CPU_DIR}/online is missing or unreadable; took the CPUs of {source} as online"
    ));
    Some(pus)
}

/// The online CPUs, as files show them and as the kernel lets this process run.
pub(crate) fn detect_online_pus(
    root: &Path,
    bounds: &EnforcedPuLimits,
    notes: &mut DiscoveryNotes,
) -> Option<PuSet> {
    let enforced = bounds.pus();
    let Some(shown) = read_listed_pus(root, notes) else {
        if enforced.is_some() {
            notes.add("no file lists online CPUs; took what affinity and cpuset allow");
        }
        return enforced;
    };
    let Some(enforced) = enforced else {
        return Some(shown);
    };
    // An affinity may name CPUs that are possible and not online, so that each needs a witness: its
    // own folder, or the cpuset, from which the kernel takes CPUs that go offline.
    let in_cpuset = |pu| bounds.cpuset().is_some_and(|set| set.contains(pu));
    let is_there = |pu: &PuId| is_online(root, *pu).unwrap_or_else(|| in_cpuset(*pu));
    let unseen = enforced.difference(&shown);
    let mut hidden: PuSet = unseen.iter().filter(is_there).collect();
    let common = enforced.intersection(&shown);
    if hidden.is_empty() {
        if !common.is_empty() {
            return Some(shown);
        }
        hidden = unseen;
    }
    let mut online = hidden.union(&common);
    let folders = directories(root).unwrap_or_default();
    let alive = folders
        .iter()
        .filter(|pu| is_online(root, *pu) == Some(true));
    alive.for_each(|pu| online.insert(pu));
    notes.add(format!(
        "{CPU_DIR}/online shows {shown}, but affinity and cpuset, which the kernel enforces, allow {enforced}; took {online} as online"
    ));
    Some(online)
}

/// The online CPUs as [`detect_online_pus`] finds them for this process; empty if no source lists
/// any.
pub(crate) fn online_pus(root: &Path) -> PuSet {
    let bounds = EnforcedPuLimits::read(root, None);
    detect_online_pus(root, &bounds, &mut DiscoveryNotes::default()).unwrap_or_default()
}

/// State of a CPU by its own folder. The kernel removes the `topology` of a CPU that goes offline;
/// CPUs that cannot be switched off have no `online`. `None` if the folder shows neither.
pub(crate) fn is_online(root: &Path, pu: PuId) -> Option<bool> {
    let dir = read::pu_dir(root, pu);
    match read::value::<u32>(&dir.join("online")) {
        Some(switch) => Some(switch != 0),
        None => dir.join("topology").is_dir().then_some(true),
    }
}

/// The CPUs that are plugged in, online or not.
pub(crate) fn present_pus(root: &Path, online: &PuSet) -> PuSet {
    let reported = read::pus(&root.join(CPU_DIR).join("present"));
    reported.unwrap_or_default().union(online)
}

fn find_stand_in(root: &Path) -> Option<(PuSet, &'static str)> {
    let present = read::pus(&root.join(CPU_DIR).join("present"));
    let without_offline = |pus: PuSet| {
        let pus = pus.iter().filter(|pu| is_online(root, *pu) != Some(false));
        Some(pus.collect()).filter(|pus: &PuSet| !pus.is_empty())
    };
    // `/proc/cpuinfo` lists online CPUs only.
    let cpuinfo = read::text(&root.join("proc/cpuinfo"));
    let listed = cpuinfo.and_then(|text| {
        let processors = super::identity::processors(&text).into_iter();
        set(processors.map(|p| p.pu.0))
    });
    let sources = [
        (listed, "proc/cpuinfo"),
        (present.and_then(without_offline), "present"),
        (
            directories(root).and_then(without_offline),
            "the cpu* directories",
        ),
    ];
    sources
        .into_iter()
        .find_map(|(pus, source)| Some((pus?, source)))
}

fn directories(root: &Path) -> Option<PuSet> {
    let entries = read::numbered_entries(&root.join(CPU_DIR), "cpu").into_iter();
    set(entries.map(|(number, _)| number))
}

fn set(numbers: impl Iterator<Item = u32>) -> Option<PuSet> {
    let set: PuSet = numbers.map(PuId).collect();
    (!set.is_empty()).then_some(set)
}

/// Online CPUs that the kernel does not balance: a thread there stays on the CPU that it is on,
/// even if another is idle.
pub(crate) fn isolated_pus(root: &Path, online: &PuSet) -> PuSet {
    let by_boot = read::pus(&root.join(CPU_DIR).join("isolated")).unwrap_or_default();
    let by_cpusets = CpusetHierarchies::read(root).unbalanced_pus(online);
    by_boot.intersection(online).union(&by_cpusets)
}

/// Online CPUs that the kernel interrupts by no tick while one thread runs there.
pub(crate) fn nohz_full_pus(root: &Path, online: &PuSet) -> PuSet {
    // Without the boot parameter the kernel writes "(null)".
    let pus = read::pus(&root.join(CPU_DIR).join("nohz_full")).unwrap_or_default();
    pus.intersection(online)
}

// A poll reads a few small files; the mount table is read again only when the process has moved to
// another cgroup.

/// The limits that a watch compares.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PuLimits {
    /// Online CPUs; empty while no source lists them.
    pub online: PuSet,
    /// CPUs of the cgroup's cpuset, where there is one.
    pub cpuset: Option<PuSet>,
    /// Content of files that change when the kernel takes CPUs into or out of balancing.
    pub balancing: String,
}

/// A reader of limits that remembers the last ones. Make one at each discovery, poll it once per
/// quantum, and discover again when it reports a change.
#[derive(Debug)]
pub struct PuLimitWatch {
    root: PathBuf,
    hierarchies: CpusetHierarchies,
    cgroup: Option<String>,
    place: Option<CpusetLocation>,
    last: PuLimits,
}

impl PuLimitWatch {
    /// A watch that begins with the limits as they are now.
    pub fn new(root: &Path) -> Self {
        let mut watch = Self {
            root: root.to_owned(),
            hierarchies: CpusetHierarchies::read(root),
            cgroup: None,
            place: None,
            last: PuLimits::default(),
        };
        watch.last = watch.read();
        watch
    }

    /// Reads again; returns the new limits if they differ from the last. Where nothing can be read,
    /// as without free descriptors, there is no change: some CPU is always online.
    pub fn poll(&mut self) -> Option<&PuLimits> {
        let now = self.read();
        if now == self.last || now.online.is_empty() {
            return None;
        }
        self.last = now;
        Some(&self.last)
    }

    fn read(&mut self) -> PuLimits {
        PuLimits {
            online: listed_pus(&self.root).unwrap_or_default(),
            cpuset: self.read_cpuset(),
            balancing: self.hierarchies.read_balancing_files(),
        }
    }

    fn read_cpuset(&mut self) -> Option<PuSet> {
        let cgroup = cgroup::membership_text(&self.root);
        if cgroup == self.cgroup
            && let Some(pus) = self.place.as_ref().and_then(CpusetLocation::read)
        {
            return Some(pus);
        }
        let found = cgroup::cpuset(&self.root);
        self.cgroup = cgroup;
        self.place = found.as_ref().map(|c| c.place.clone());
        found.map(|c| c.pus)
    }
}

/// The CPUs that the process may use, and the limits that they follow from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsablePus {
    /// CPUs that are online, and allowed by affinity and cpuset.
    pub pus: PuSet,
    /// CPUs that the affinity allows; all online CPUs if it cannot be read.
    pub by_affinity: PuSet,
    /// CPUs that the cgroup's cpuset allows, where there is one.
    pub by_cpuset: Option<PuSet>,
    /// Version of cgroups that the cpuset belongs to.
    pub cgroup_version: Option<CgroupVersion>,
}

/// The limits on the process that the kernel enforces, as far as they can be read.
pub(crate) struct EnforcedPuLimits {
    affinity: Option<PuSet>,
    cpuset: Option<CgroupCpuset>,
}

impl EnforcedPuLimits {
    /// Reads the limits. `affinity` takes the place of the process's own.
    pub(crate) fn read(root: &Path, affinity: Option<&PuSet>) -> Self {
        // `Cpus_allowed_list` may have any length and lie below any root, unlike the answer of
        // `sched_getaffinity`. Old kernels have only the mask `Cpus_allowed`.
        let own_affinity = || {
            let status = ProcStatus::read(&root.join("proc/self/status")).ok()?;
            let list: Option<PuSet> = status.value("Cpus_allowed_list");
            list.or_else(|| read::mask_in(status.field("Cpus_allowed")?))
                .filter(|set| !set.is_empty())
        };
        Self {
            affinity: affinity.cloned().or_else(own_affinity),
            cpuset: cgroup::cpuset(root),
        }
    }

    /// CPUs of the cpuset.
    pub(crate) fn cpuset(&self) -> Option<&PuSet> {
        self.cpuset.as_ref().map(|cpuset| &cpuset.pus)
    }

    /// CPUs within both limits; `None` if there is none. Where they have nothing in common, one was
    /// read before a change and the other after it: then the affinity counts, which the kernel
    /// keeps within the cpuset.
    pub(crate) fn pus(&self) -> Option<PuSet> {
        match (&self.affinity, self.cpuset()) {
            (Some(affinity), Some(cpuset)) => {
                let common = affinity.intersection(cpuset);
                Some(if common.is_empty() {
                    affinity.clone()
                } else {
                    common
                })
            }
            (affinity, cpuset) => affinity.as_ref().or(cpuset).cloned(),
        }
    }

    /// The limits on a machine with these online CPUs.
    pub(crate) fn into_usable_pus(self, online: &PuSet) -> UsablePus {
        let pus = self.pus().map(|pus| pus.intersection(online));
        UsablePus {
            pus: pus.unwrap_or_else(|| online.clone()),
            by_affinity: self.affinity.unwrap_or_else(|| online.clone()),
            cgroup_version: self.cpuset.as_ref().map(|c| c.version),
            by_cpuset: self.cpuset.map(|c| c.pus),
        }
    }
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
            let mut notes = DiscoveryNotes::default();
            let online = read_listed_pus(dir.path(), &mut notes).map(|s| s.to_string());
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
        fs::write(cpu.join("online"), "garbage\n").unwrap();
        check(Some("0"), true);
        let online = "0,2".parse().unwrap();
        assert_eq!(present_pus(dir.path(), &online).to_string(), "0-3");
    }

    #[test]
    fn offline_folders_are_no_stand_in() {
        let dir = tempfile::tempdir().unwrap();
        for (pu, online) in [(0, None), (1, Some("0\n")), (2, Some("1\n"))] {
            let folder = dir.path().join(CPU_DIR).join(format!("cpu{pu}"));
            fs::create_dir_all(&folder).unwrap();
            let switch = online.map(|text| fs::write(folder.join("online"), text));
            switch.transpose().unwrap();
        }
        assert_eq!(listed_pus(dir.path()).unwrap().to_string(), "0,2");
    }

    /// Online CPUs below a root whose `online` shows `shown`, where the kernel allows `affinity`,
    /// and these CPUs have folders with these switches.
    fn reconciled(
        shown: &str,
        affinity: &str,
        cpuset: Option<&str>,
        folders: &[(u32, &str)],
    ) -> String {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write(&format!("{CPU_DIR}/online"), shown);
        for (pu, switch) in folders {
            let folder = format!("{CPU_DIR}/cpu{pu}");
            match *switch {
                "topology" => write(&format!("{folder}/topology/core_id"), "0"),
                switch => write(&format!("{folder}/online"), switch),
            }
        }
        if let Some(pus) = cpuset {
            write("proc/self/cgroup", "0::/\n");
            let mount = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
            write("proc/self/mountinfo", mount);
            write("sys/fs/cgroup/cpuset.cpus.effective", pus);
        }
        let bounds = EnforcedPuLimits::read(dir.path(), Some(&affinity.parse().unwrap()));
        let mut notes = DiscoveryNotes::default();
        let online = detect_online_pus(dir.path(), &bounds, &mut notes)
            .unwrap()
            .to_string();
        match &notes.into_lines()[..] {
            [] => online,
            notes => format!("{online}, {} note", notes.len()),
        }
    }

    #[test]
    fn enforced_pus_outrank_a_masked_list() {
        let four: Vec<(u32, &str)> = (0..4).map(|pu| (pu, "topology")).collect();
        assert_eq!(reconciled("0-1", "2-3", None, &four), "0-3, 1 note");
        assert_eq!(reconciled("0-1", "1-2", None, &four), "0-3, 1 note");
        assert_eq!(
            reconciled("0-1", "2-3", None, &[]),
            "2-3, 1 note",
            "no folders"
        );
        assert_eq!(reconciled("0-1", "1-2", Some("1-2"), &[]), "1-2, 1 note");
        assert_eq!(reconciled("garbage", "2-3", None, &[]), "2-3, 1 note");
        assert_eq!(reconciled("", "0-6:1/3", None, &[]), "0,3,6, 1 note");
    }

    #[test]
    fn possible_pus_in_an_affinity_are_not_online() {
        let offline = [(0, "topology"), (1, "1"), (2, "0")];
        assert_eq!(reconciled("0-1", "0-7", None, &offline), "0-1");
        assert_eq!(reconciled("0-1", "0-7", Some("0-2"), &offline), "0-1");
    }
}

#[cfg(test)]
mod watch_tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn changes_are_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let cpuset = "sys/fs/cgroup/job/cpuset.cpus.effective";
        write(root, "sys/devices/system/cpu/online", "0-3");
        write(root, "proc/self/cgroup", "0::/job\n");
        write(
            root,
            "proc/self/mountinfo",
            "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 none rw\n",
        );
        write(root, cpuset, "0-3");
        let mut watch = PuLimitWatch::new(root);
        assert_eq!(watch.poll(), None);

        write(root, cpuset, "0-1");
        assert_eq!(watch.poll().unwrap().cpuset, Some("0-1".parse().unwrap()));
        assert_eq!(watch.poll(), None);

        write(root, "sys/fs/cgroup/cpuset.cpus.isolated", "2");
        assert!(watch.poll().is_some(), "an isolated partition");
        assert_eq!(watch.poll(), None);

        write(root, "sys/devices/system/cpu/online", "0,2");
        assert_eq!(watch.poll().unwrap().online, "0,2".parse().unwrap());

        write(root, "sys/fs/cgroup/new/cpuset.cpus.effective", "3");
        write(root, "proc/self/cgroup", "0::/new\n");
        assert_eq!(watch.poll().unwrap().cpuset, Some("3".parse().unwrap()));

        write(root, "sys/fs/cgroup/cpuset.cpus.effective", "0-3");
        assert_eq!(watch.poll().unwrap().cpuset, Some("3".parse().unwrap()));
        assert_eq!(watch.poll(), None);
        fs::remove_file(root.join("sys/fs/cgroup/new/cpuset.cpus.effective")).unwrap();
        assert_eq!(watch.poll().unwrap().cpuset, Some("0-3".parse().unwrap()));
        write(root, "sys/fs/cgroup/new/cpuset.cpus.effective", "1");
        assert_eq!(watch.poll().unwrap().cpuset, Some("1".parse().unwrap()));

        fs::remove_dir_all(root.join("sys/fs/cgroup")).unwrap();
        assert_eq!(watch.poll().unwrap().cpuset, None);

        fs::remove_dir_all(root.join("sys")).unwrap();
        assert_eq!(watch.poll(), None, "unreadable is not changed");
    }
}

#[cfg(test)]
mod allowed_tests {
    use super::*;
    use std::fs;

    #[test]
    fn affinity_defaults_to_process_then_everything() {
        let dir = tempfile::tempdir().unwrap();
        let online: PuSet = "0-3".parse().unwrap();
        let bounds = |given: Option<&PuSet>| EnforcedPuLimits::read(dir.path(), given);
        let pus = |given: Option<&PuSet>| bounds(given).into_usable_pus(&online).pus.to_string();
        assert_eq!(pus(None), "0-3");
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(
            dir.path().join("proc/self/status"),
            "Name:\tx\nCpus_allowed_list:\t2-9\n",
        )
        .unwrap();
        assert_eq!(pus(None), "2-3");
        assert_eq!(pus(Some(&"1,7".parse().unwrap())), "1");
        fs::write(
            dir.path().join("proc/self/status"),
            "Name:\tx\nCpus_allowed:\t00000000,0000000c\n",
        )
        .unwrap();
        assert_eq!(pus(None), "2-3");
    }
}
