//! The PUs that a thread's cpuset allows, from its cgroup.
//!
//! Version 1 hierarchies have `cpuset.effective_cpus` in every group. In
//! version 2 only groups with the controller enabled have
//! `cpuset.cpus.effective`; the nearest ancestor that has it counts
//! (kernel documentation, `admin-guide/cgroup-v2.rst`, "Cpuset"). Where
//! neither can be read, every online PU is taken to be allowed.

use consort_core::PuSet;
use std::path::{Path, PathBuf};

/// Where cgroup hierarchies that can hold a cpuset are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpusetMounts {
    v1: Option<CgroupMount>,
    v2: Option<CgroupMount>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CgroupMount {
    /// The group that is visible at the mount point.
    group: PathBuf,
    point: PathBuf,
}

impl CpusetMounts {
    /// Reads `/proc/self/mountinfo` under an injected root.
    pub(crate) fn read(root: &Path) -> Self {
        let text = std::fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(mountinfo: &str) -> Self {
        let mut mounts = Self::default();
        for (kind, options, mount) in mountinfo.lines().filter_map(parse_mount) {
            match kind {
                "cgroup" if options.split(',').any(|o| o == "cpuset") => mounts.v1 = Some(mount),
                "cgroup2" => mounts.v2 = Some(mount),
                _ => {}
            }
        }
        mounts
    }

    /// The PUs allowed to a thread whose `/proc/<pid>/task/<tid>/cgroup` is given.
    pub(crate) fn allowed(&self, root: &Path, cgroup: &str) -> Option<PuSet> {
        match group_of(cgroup, |controllers| {
            controllers.split(',').any(|c| c == "cpuset")
        }) {
            Some(group) => {
                self.v1
                    .as_ref()?
                    .nearest(root, group, &["cpuset.effective_cpus", "cpuset.cpus"])
            }
            None => self.v2.as_ref()?.nearest(
                root,
                group_of(cgroup, str::is_empty)?,
                &["cpuset.cpus.effective"],
            ),
        }
    }
}

/// Type, super options and place of one line of `mountinfo` (`proc_pid_mountinfo(5)`).
fn parse_mount(line: &str) -> Option<(&str, &str, CgroupMount)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let mount = CgroupMount {
        group: before.next()?.into(),
        point: before.next()?.into(),
    };
    let mut after = after.split(' ');
    Some((after.next()?, after.nth(1)?, mount))
}

/// The group in the first line of a cgroup file whose controllers are as wanted.
fn group_of(cgroup: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    let fields = |line: &'_ str| -> Option<(usize, usize)> {
        let first = line.find(':')?;
        let second = first + 1 + line[first + 1..].find(':')?;
        Some((first + 1, second))
    };
    cgroup.lines().find_map(|line| {
        let (start, end) = fields(line)?;
        wanted(&line[start..end]).then(|| &line[end + 1..])
    })
}

impl CgroupMount {
    /// The first of the files that the group or its nearest ancestor has.
    fn nearest(&self, root: &Path, group: &str, files: &[&str]) -> Option<PuSet> {
        let below = Path::new(group).strip_prefix(&self.group).ok()?;
        if below.components().any(|c| c.as_os_str() == "..") {
            return None;
        }
        let point = root.join(self.point.strip_prefix("/").ok()?);
        below
            .ancestors()
            .find_map(|dir| read_first(&point.join(dir), files))
    }
}

fn read_first(dir: &Path, files: &[&str]) -> Option<PuSet> {
    files.iter().find_map(|file| {
        let text = std::fs::read_to_string(dir.join(file)).ok()?;
        let pus: PuSet = text.parse().ok()?;
        (!pus.is_empty()).then_some(pus)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str =
        "31 27 0:26 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset";
    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

    fn check(mountinfo: &str, files: &[(&str, &str)], cgroup: &str, expect: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let allowed = CpusetMounts::parse(mountinfo).allowed(root.path(), cgroup);
        assert_eq!(allowed.map(|pus| pus.to_string()).as_deref(), expect);
    }

    #[test]
    fn version_one_has_the_list_in_every_group() {
        let files = [("sys/fs/cgroup/cpuset/a/cpuset.effective_cpus", "2-3\n")];
        check(V1, &files, "3:cpuset:/a\n0::/\n", Some("2-3"));
    }

    #[test]
    fn version_two_asks_the_nearest_ancestor() {
        let files = [
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("sys/fs/cgroup/a/cpuset.cpus.effective", "4-5\n"),
            ("sys/fs/cgroup/a/b/cgroup.procs", ""),
        ];
        check(V2, &files, "0::/a/b\n", Some("4-5"));
        check(V2, &files, "0::/c\n", Some("0-7"));
    }

    #[test]
    fn what_cannot_be_seen_is_unknown() {
        check(V2, &[], "0::/../other\n", None);
        check("", &[], "0::/\n", None);
        check(V1, &[], "garbage", None);
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount_point() {
        let mount = "30 23 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let files = [("sys/fs/cgroup/a/cpuset.cpus.effective", "1\n")];
        check(mount, &files, "0::/box/a\n", Some("1"));
    }
}
