//! Detection of CPU hotplug and of changed cpusets.
//!
//! Usage: make a [`PuLimitWatch`] next to a discovery and call [`PuLimitWatch::poll`] once per
//! quantum; on a change discover again. A poll reads a few small files; the mount
//! table is read again only when the process has moved to another cgroup.

use super::pus;
use crate::cgroup::{self, CpusetHierarchies, CpusetLocation};
use consort_core::PuSet;
use std::path::{Path, PathBuf};

/// The limits that a watch compares.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PuLimits {
    /// Online PUs; empty while no source lists them.
    pub online: PuSet,
    /// PUs of the cgroup's cpuset, where there is one.
    pub cpuset: Option<PuSet>,
    /// Content of files that change when the kernel takes PUs into or out of balancing.
    pub balancing: String,
}

/// A reader of limits that remembers the last ones.
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
    /// as without free descriptors, there is no change: some PU is always online.
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
            online: pus::listed_pus(&self.root).unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[test]
    fn changes_are_told_once() {
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
