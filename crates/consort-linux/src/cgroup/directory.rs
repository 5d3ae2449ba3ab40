//! The directory of a process's cgroup in one mounted hierarchy, for writing; and the limits of CPU
//! time that control groups set on their threads.
//!
//! Readers may make do with the nearest directory that a container shows; a writer that moves
//! processes must have the very one. So a path that does not lie within the mount has no directory
//! here.

use super::cpuset::{CgroupVersion, membership_text};
use super::{Mount, decode, memberships, mounts, text_of_file};
use crate::proc::{ProcError, unless_gone};
use crate::read;
use consort_core::Throttle;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// One mounted hierarchy of cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    root: PathBuf,
    mount: Mount,
    /// The version 1 controller of the hierarchy; `None` for version 2.
    controller: Option<&'static str>,
}

impl Hierarchy {
    /// The mounted hierarchy of a version 1 controller, or of version 2, below `root`.
    pub(crate) fn find(root: &Path, controller: Option<&'static str>) -> Option<Self> {
        let text = text_of_file(&root.join("proc/self/mountinfo"))?;
        let fits = |mount: &Mount| match controller {
            Some(name) => mount.kind == "cgroup" && mount.options.iter().any(|o| o == name),
            None => mount.kind == "cgroup2",
        };
        let mount = mounts(&text).into_iter().find(fits)?;
        Some(Self {
            root: root.to_owned(),
            mount,
            controller,
        })
    }

    /// Topmost directories of all mounted hierarchies, with their versions: version 2 first, then
    /// systemd's own, then those of version 1 controllers.
    ///
    /// # Errors
    /// If the list of mounts cannot be read although there is one.
    pub(crate) fn all_tops(root: &Path) -> Result<Vec<(PathBuf, CgroupVersion)>, ProcError> {
        let path = root.join("proc/self/mountinfo");
        let bytes = read::bytes(&path).map_err(|error| ProcError::io(&path, &error));
        let text = decode(&unless_gone(bytes)?.unwrap_or_default());
        let rank = |mount: &Mount| match mount.kind.as_str() {
            "cgroup2" => Some(0),
            "cgroup" if mount.options.iter().any(|o| o == "name=systemd") => Some(1),
            "cgroup" => Some(2),
            _ => None,
        };
        let mounts = mounts(&text).into_iter();
        let mut ranked: Vec<(u8, Mount)> = mounts.filter_map(|m| Some((rank(&m)?, m))).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let version = |rank| match rank {
            0 => CgroupVersion::V2,
            _ => CgroupVersion::V1,
        };
        let tops = ranked
            .iter()
            .map(|(rank, mount)| (mount.point_below(root), version(*rank)));
        let mut tops: Vec<(PathBuf, CgroupVersion)> = tops.collect();
        tops.dedup();
        Ok(tops)
    }

    /// Directory of the topmost cgroup that the mount shows.
    pub(crate) fn top(&self) -> PathBuf {
        self.mount.point_below(&self.root)
    }

    /// Directory of a thread's cgroup, given the text of its `cgroup` file; `None` if the mount
    /// does not show it.
    pub(crate) fn dir_of(&self, cgroup: &str) -> Option<PathBuf> {
        let all = memberships(cgroup);
        let own = all.iter().find(|m| match self.controller {
            Some(name) => m.controllers.iter().any(|c| c == name),
            None => m.unified,
        })?;
        let path = own.path();
        if path.components().any(|c| c == Component::ParentDir) {
            return None;
        }
        let below = path.strip_prefix(&self.mount.root).ok()?;
        Some(self.top().join(below))
    }

    /// Other controllers of the same hierarchy, given the text of any `cgroup` file.
    pub(crate) fn other_controllers(&self, cgroup: &str) -> Vec<String> {
        let Some(name) = self.controller else {
            return Vec::new();
        };
        let mut all = memberships(cgroup).into_iter();
        let own = all.find(|m| m.controllers.iter().any(|c| c == name));
        let names = own.map(|m| m.controllers).unwrap_or_default();
        names.into_iter().filter(|other| other != name).collect()
    }
}

// Version 2 has `cpu.max` and `cpu.stat`, version 1 `cpu.cfs_quota_us`, `cpu.cfs_period_us` and
// `cpu.stat` in the hierarchy of the controller `cpu`. A group's threads share the time of each
// period (100 ms by default) and wait for the next once it is used up. Limits of all ancestors hold
// as well. Source: Linux `Documentation/scheduler/sched-bwc.rst`.

/// Limit of one control group, with how often it has held the group's threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuLimit {
    /// Path of the group that sets the limit.
    pub group: String,
    /// The limit, CPUs.
    pub cpus: f64,
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Of these, the ones in which it used its time up.
    pub throttled: u64,
}

/// The mounted hierarchies that can limit CPU time.
#[derive(Clone, Debug)]
pub(crate) struct CpuLimits {
    hierarchies: Vec<Hierarchy>,
}

impl CpuLimits {
    /// Finds the hierarchies below `root`.
    pub(crate) fn find(root: &Path) -> Self {
        let found = [Some("cpu"), None].map(|controller| Hierarchy::find(root, controller));
        Self {
            hierarchies: found.into_iter().flatten().collect(),
        }
    }

    /// Directories of a thread's groups and all their ancestors, the nearest first, each with the
    /// path of the group, given the text of the thread's `cgroup` file.
    pub(crate) fn groups_of(&self, cgroup: &str) -> Vec<(PathBuf, String)> {
        let of_one = |hierarchy: &Hierarchy| {
            let top = hierarchy.top();
            let own = hierarchy.dir_of(cgroup);
            let dirs: Vec<PathBuf> = own
                .iter()
                .flat_map(|dir| dir.ancestors())
                .map(Path::to_owned)
                .collect();
            let named = dirs.into_iter().filter_map(move |dir| {
                let below = dir.strip_prefix(&top).ok()?;
                let group = format!("/{}", below.display());
                Some((dir, group))
            });
            named.collect::<Vec<_>>()
        };
        self.hierarchies.iter().flat_map(of_one).collect()
    }

    /// The limits that hold for a thread, given the text of its `cgroup` file.
    pub(crate) fn read_limits(&self, cgroup: &str) -> Vec<CpuLimit> {
        let groups = self.groups_of(cgroup).into_iter();
        groups
            .filter_map(|(dir, group)| read_limit(&dir, group))
            .collect()
    }
}

/// The limit of one group; `None` if it has none.
pub(crate) fn read_limit(dir: &Path, group: String) -> Option<CpuLimit> {
    // Version 2, for example `10000 100000`; `max` sets no limit.
    let version_2 = || {
        let text = read::text(&dir.join("cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        share(quota.parse().ok()?, period.parse().ok()?)
    };
    // Version 1; -1 sets no limit.
    let version_1 = || {
        let number = |name: &str| read::value::<i64>(&dir.join(name));
        share(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    };
    let cpus = version_2().or_else(version_1)?;
    let stat = read::text(&dir.join("cpu.stat")).unwrap_or_default();
    let numbers: BTreeMap<&str, u64> = stat
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name, value.parse().ok()?))
        })
        .collect();
    let number = |name| numbers.get(name).copied().unwrap_or(0);
    Some(CpuLimit {
        group,
        cpus,
        periods: number("nr_periods"),
        throttled: number("nr_throttled"),
    })
}

fn share(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

impl CpuLimit {
    /// The limit that holds this process most often; `None` if no group of it has one.
    pub fn read_own(root: &Path) -> Option<Self> {
        let cgroup = membership_text(root)?;
        let limits = CpuLimits::find(root).read_limits(&cgroup).into_iter();
        // Among groups that hold equally often the tightest one, which is the first to do so.
        limits.max_by(|a, b| {
            let tighter = b.cpus.total_cmp(&a.cpus);
            a.share().total_cmp(&b.share()).then(tighter)
        })
    }

    /// Share of the periods in which the group used its time up, 0 to 1.
    fn share(&self) -> f64 {
        self.throttled as f64 / self.periods.max(1) as f64
    }
}

impl fmt::Display for CpuLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let throttle = Throttle {
            group: self.group.as_str().into(),
            cpus: self.cpus,
            share: self.share(),
        };
        throttle.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(mountinfo: &str, controller: Option<&'static str>) -> Option<Hierarchy> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        let found = Hierarchy::find(dir.path(), controller)?;
        Some(Hierarchy {
            root: "/x".into(),
            ..found
        })
    }

    const BOTH: &str = "1 1 0:1 / /cg/freezer rw - cgroup cgroup rw,freezer\n\
                        2 1 0:2 /a /cg/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_directory_is_that_of_the_hierarchy() {
        let one = hierarchy(BOTH, Some("freezer")).unwrap();
        let two = hierarchy(BOTH, None).unwrap();
        let cgroup = "4:freezer:/job\n0::/a/b c\n";
        assert_eq!(one.dir_of(cgroup), Some("/x/cg/freezer/job".into()));
        assert_eq!(two.dir_of(cgroup), Some("/x/cg/unified/b c".into()));
        assert_eq!(hierarchy(BOTH, Some("cpuset")), None);
    }

    #[test]
    fn cgroup_outside_the_mount_has_no_directory() {
        let two = hierarchy(BOTH, None).unwrap();
        assert_eq!(two.dir_of("0::/b\n"), None);
        assert_eq!(two.dir_of("0::/a/../b\n"), None);
        assert_eq!(two.dir_of("4:freezer:/a\n"), None);
    }

    #[test]
    fn companions_are_the_other_controllers() {
        let one = hierarchy(BOTH, Some("freezer")).unwrap();
        assert_eq!(
            one.other_controllers("4:cpuset,freezer:/\n0::/\n"),
            ["cpuset"]
        );
        assert!(one.other_controllers("4:freezer:/\n").is_empty());
    }
}

#[cfg(test)]
mod cpu_limit_tests {
    use super::*;

    /// A tree with both versions: a limit of version 1 at `/job`, of version 2 at `/pod`.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(
            "proc/self/mountinfo",
            "1 1 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             2 1 0:2 / /cg/unified rw - cgroup2 cgroup2 rw\n",
        );
        put("cg/cpu/cpu.cfs_quota_us", "-1\n");
        put("cg/cpu/job/cpu.cfs_quota_us", "10000\n");
        put("cg/cpu/job/cpu.cfs_period_us", "100000\n");
        put(
            "cg/cpu/job/cpu.stat",
            "nr_periods 56\nnr_throttled 55\nthrottled_time 9\n",
        );
        put("cg/cpu/job/step/cpu.cfs_quota_us", "-1\n");
        put("cg/cpu/job/step/cpu.cfs_period_us", "100000\n");
        put("cg/unified/pod/cpu.max", "150000 100000\n");
        put(
            "cg/unified/pod/cpu.stat",
            "usage_usec 5\nnr_periods 10\nnr_throttled 2\nthrottled_usec 7\n",
        );
        put("cg/unified/pod/free/cpu.max", "max 100000\n");
        root
    }

    #[test]
    fn limits_of_ancestors_and_of_both_versions_hold() {
        let root = tree();
        let limits = CpuLimits::find(root.path());
        let found = limits.read_limits("4:cpu,cpuacct:/job/step\n0::/pod/free\n");
        let expected = [("/job", 0.1, 56, 55), ("/pod", 1.5, 10, 2)];
        let expected = expected.map(|(group, cpus, periods, throttled)| CpuLimit {
            group: group.to_owned(),
            cpus,
            periods,
            throttled,
        });
        assert_eq!(found, expected);
        assert!(limits.read_limits("4:cpu,cpuacct:/\n0::/\n").is_empty());
        assert!(
            limits.read_limits("4:cpu:/job/../..\n").is_empty(),
            "not shown by the mount"
        );
    }

    #[test]
    fn own_limit_is_the_one_that_holds_most() {
        let root = tree();
        let own = root.path().join("proc/self/cgroup");
        std::fs::write(&own, "4:cpu,cpuacct:/job/step\n0::/pod/free\n").unwrap();
        assert_eq!(CpuLimit::read_own(root.path()).unwrap().group, "/job");
        std::fs::write(&own, "4:cpu,cpuacct:/\n0::/\n").unwrap();
        assert_eq!(CpuLimit::read_own(root.path()), None);
    }
}
