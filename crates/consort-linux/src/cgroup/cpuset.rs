//! Cpusets: the CPUs that a cgroup may use, and the file that lists them.
//!
//! The file is `cpuset.effective_cpus` in version 1 (before Linux 3.17 `cpuset.cpus`) and
//! `cpuset.cpus.effective` in version 2. Both versions may be mounted at the same time; cgroup
//! namespaces, and Android's mount without the `cpuset.` prefix, are read as well. Sources: Linux
//! `Documentation/admin-guide/cgroup-v1/cpusets.rst` and `cgroup-v2.rst`.
//!
//! Pitfalls: a version 2 cgroup has the file only if its parent hands the controller down, so the
//! nearest ancestor that has it counts. A container may see its host's path in `/proc/self/cgroup`
//! and only its own part of the tree mounted. A process outside its cgroup namespace sees a path
//! with `..`, whose files it cannot reach; its affinity still reflects them.

use super::{Membership, Mount, memberships, mounts, text_of_file};
use crate::proc::ProcError;
use crate::read;
use consort_core::PuSet;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Version of the cgroup hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// A version 1 hierarchy, with the controllers of its mount.
    V1,
    /// The unified hierarchy.
    V2,
}

/// The cpuset that holds for a cgroup, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupCpuset {
    pub(crate) pus: PuSet,
    /// Directory of the cgroup that sets it: the cgroup itself or an ancestor.
    pub(crate) by: PathBuf,
    pub(crate) version: CgroupVersion,
    pub(crate) place: CpusetLocation,
}

impl CgroupCpuset {
    /// Returns true if no other cgroup may use these CPUs: a partition of version 2, an exclusive
    /// cpuset of version 1. The files at the top of a hierarchy mean nothing of the kind, so it
    /// returns false there.
    pub(crate) fn is_exclusive(&self) -> bool {
        if self.by == self.place.point {
            return false;
        }
        let text = |name: &str| read::text(&self.by.join(name)).unwrap_or_default();
        match self.version {
            CgroupVersion::V1 => text("cpuset.cpu_exclusive").trim() == "1",
            CgroupVersion::V2 => {
                matches!(text("cpuset.cpus.partition").trim(), "root" | "isolated")
            }
        }
    }
}

/// The directory of a cgroup in one mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpusetLocation {
    point: PathBuf,
    below: PathBuf,
    names: &'static [&'static str],
}

const NAMES_1: &[&str] = &[
    "cpuset.effective_cpus",
    "cpuset.cpus",
    "effective_cpus",
    "cpus",
];
const NAMES_2: &[&str] = &["cpuset.cpus.effective"];

impl CpusetLocation {
    /// The cpuset of the cgroup, or of its nearest ancestor within the mount that has one.
    pub(crate) fn read(&self) -> Option<PuSet> {
        let found = self.find().ok().flatten();
        found.map(|(_, pus)| pus)
    }

    /// The same, with the directory that has it.
    ///
    /// # Errors
    /// If a file cannot be read for the moment: an ancestor's cpuset may be a larger one.
    fn find(&self) -> Result<Option<(PathBuf, PuSet)>, ProcError> {
        for dir in self.below.ancestors().map(|dir| self.point.join(dir)) {
            for path in self.names.iter().map(|name| dir.join(name)) {
                let bytes = match read::bytes(&path).map_err(|e| ProcError::io(&path, &e)) {
                    Err(error) if error.is_transient() => return Err(error),
                    read => read.ok(),
                };
                if let Some(pus) = bytes.and_then(|bytes| read::pus_in(&bytes)) {
                    return Ok(Some((dir, pus)));
                }
            }
        }
        Ok(None)
    }
}

/// The mounted hierarchies that can hold a cpuset.
#[derive(Clone, Debug)]
pub(crate) struct CpusetHierarchies {
    root: PathBuf,
    version_1: Vec<Mount>,
    version_2: Vec<Mount>,
}

impl CpusetHierarchies {
    /// Reads the mounted hierarchies from `/proc/self/mountinfo`; empty if it cannot be read.
    pub(crate) fn read(root: &Path) -> Self {
        let text = text_of_file(&root.join("proc/self/mountinfo")).unwrap_or_default();
        let kind = |kind: &'static str| mounts(&text).into_iter().filter(move |m| m.kind == kind);
        Self {
            root: root.to_owned(),
            version_1: kind("cgroup").filter(|m| has_cpuset(&m.options)).collect(),
            version_2: kind("cgroup2").collect(),
        }
    }

    /// The cpuset of a thread, given the text of its `cgroup` file; `None` if no hierarchy has one.
    ///
    /// # Errors
    /// If it cannot be read for the moment.
    pub(crate) fn cpuset_of(&self, cgroup: &str) -> Result<Option<CgroupCpuset>, ProcError> {
        let all = memberships(cgroup);
        let v1 = all.iter().find(|m| has_cpuset(&m.controllers));
        let v2 = all.iter().find(|m| m.unified);
        if let Some(of) = v1
            && let Some(found) = self.find_in_mounts(&self.version_1, of, CgroupVersion::V1)?
        {
            return Ok(Some(found));
        }
        match v2 {
            Some(of) => self.find_in_mounts(&self.version_2, of, CgroupVersion::V2),
            None => Ok(None),
        }
    }

    /// CPUs of `online` that cpusets keep out of balancing: isolated partitions of version 2, and
    /// what no balanced cpuset of version 1 has.
    pub(crate) fn unbalanced_pus(&self, online: &PuSet) -> PuSet {
        let point = |mount: &Mount| mount.point_below(&self.root);
        let mut found = PuSet::new();
        for mount in &self.version_2 {
            found = found.union(&isolated_pus_below(&point(mount), true));
        }
        for mount in &self.version_1 {
            // Only the top of the hierarchy shows all cpusets; one without the file has no
            // controller.
            let balanced = balanced_pus_below(&point(mount), online);
            if let Some(balanced) = balanced.filter(|_| mount.root == Path::new("/")) {
                found = found.union(&online.difference(&balanced));
            }
        }
        found.intersection(online)
    }

    /// Content of files at the tops of the hierarchies that change when [`Self::unbalanced_pus`] does:
    /// a partition takes its CPUs from the top. Reads no other directory, so that it is cheap
    /// however many cgroups there are.
    pub(crate) fn read_balancing_files(&self) -> String {
        let names = [
            "cpuset.cpus.isolated",
            "cpuset.cpus.effective",
            "cpuset.sched_load_balance",
        ];
        let mounts = self.version_1.iter().chain(&self.version_2);
        let files = mounts.flat_map(|mount| {
            let point = mount.point_below(&self.root);
            names.map(|name| read::text(&point.join(name)).unwrap_or_default())
        });
        files.collect::<Vec<_>>().join("|")
    }

    fn find_in_mounts(
        &self,
        mounts: &[Mount],
        of: &Membership,
        version: CgroupVersion,
    ) -> Result<Option<CgroupCpuset>, ProcError> {
        for mount in mounts {
            let found = read_in_mount(&self.root, mount, &of.path(), version)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn has_cpuset(names: &[String]) -> bool {
    names.iter().any(|name| name == "cpuset")
}

/// CPUs of the isolated partitions in a directory of version 2. The top lists them all since Linux
/// 6.7; before that, a partition lies below others only, up to the top.
fn isolated_pus_below(dir: &Path, is_top: bool) -> PuSet {
    if let Some(pus) = read::value(&dir.join("cpuset.cpus.isolated")) {
        return pus;
    }
    let kind = read::text(&dir.join("cpuset.cpus.partition")).unwrap_or_default();
    match kind.as_str() {
        "isolated" => read::pus(&dir.join("cpuset.cpus.effective")).unwrap_or_default(),
        "root" => subdirectories(dir).fold(PuSet::new(), |all, dir| {
            all.union(&isolated_pus_below(&dir, false))
        }),
        _ if is_top => subdirectories(dir).fold(PuSet::new(), |all, dir| {
            all.union(&isolated_pus_below(&dir, false))
        }),
        _ => PuSet::new(),
    }
}

/// CPUs that the kernel balances by a directory of version 1 and those below it: a balanced cpuset
/// counts as a whole, else the balanced ones in it. `None` if the directory is no cpuset.
fn balanced_pus_below(dir: &Path, online: &PuSet) -> Option<PuSet> {
    let flag = ["cpuset.sched_load_balance", "sched_load_balance"];
    let flag: u32 = flag.iter().find_map(|name| read::value(&dir.join(name)))?;
    if flag != 0 {
        let pus = NAMES_1.iter().find_map(|name| read::pus(&dir.join(name)));
        return Some(pus.unwrap_or_else(|| online.clone()));
    }
    let inner = subdirectories(dir).filter_map(|dir| balanced_pus_below(&dir, online));
    Some(inner.fold(PuSet::new(), |all, pus| all.union(&pus)))
}

fn subdirectories(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path())
}

/// Finds and reads the cpuset of this process.
pub(crate) fn cpuset(root: &Path) -> Option<CgroupCpuset> {
    let cpuset = CpusetHierarchies::read(root).cpuset_of(&membership_text(root)?);
    cpuset.ok().flatten()
}

/// Text of `/proc/self/cgroup` as it is now.
pub(crate) fn membership_text(root: &Path) -> Option<String> {
    text_of_file(&root.join("proc/self/cgroup"))
}

fn read_in_mount(
    root: &Path,
    mount: &Mount,
    cgroup: &Path,
    version: CgroupVersion,
) -> Result<Option<CgroupCpuset>, ProcError> {
    let Some(below) = below_mount(mount, cgroup) else {
        return Ok(None);
    };
    let place = CpusetLocation {
        point: mount.point_below(root),
        below,
        names: match version {
            CgroupVersion::V1 => NAMES_1,
            CgroupVersion::V2 => NAMES_2,
        },
    };
    Ok(place.find()?.map(|(by, pus)| CgroupCpuset {
        pus,
        by,
        version,
        place,
    }))
}

/// The cgroup's directory relative to the mount point; the mount point itself where a
/// container shows the host's path but mounts only its own cgroup; `None` outside the namespace.
fn below_mount(mount: &Mount, cgroup: &Path) -> Option<PathBuf> {
    if cgroup.components().any(|c| c == Component::ParentDir) {
        return None;
    }
    let below = cgroup.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    Some(below.strip_prefix("/").unwrap_or(below).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn check(cgroup: &str, mountinfo: &str, files: &[(&str, &str)], expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let own = [
            ("proc/self/cgroup", cgroup),
            ("proc/self/mountinfo", mountinfo),
        ];
        for (name, content) in own.iter().chain(files) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let found = cpuset(dir.path());
        let shown = found.map_or("none".into(), |c| format!("{:?} {}", c.version, c.pus));
        assert_eq!(shown, expected);
    }

    #[test]
    fn no_cgroups_no_cpuset() {
        assert_eq!(cpuset(tempfile::tempdir().unwrap().path()), None);
        check("0::/\n", "", &[], "none");
        check("0::/\n", V2, &[], "none");
    }

    #[test]
    fn version_1_prefers_what_is_effective() {
        let dir = "sys/fs/cgroup/cpuset/job";
        let (cpus, effective) = (
            format!("{dir}/cpuset.cpus"),
            format!("{dir}/cpuset.effective_cpus"),
        );
        check("3:cpuset:/job\n", V1, &[(&cpus, "0-3")], "V1 0-3");
        check(
            "3:cpuset:/job\n",
            V1,
            &[(&cpus, "0-3"), (&effective, "0-1")],
            "V1 0-1",
        );
    }

    #[test]
    fn version_2_takes_nearest_ancestor_with_controller() {
        let files = [
            ("sys/fs/cgroup/unified/cpuset.cpus.effective", "0-7"),
            ("sys/fs/cgroup/unified/a/cpuset.cpus.effective", "2-5"),
            ("sys/fs/cgroup/unified/a/b/c/pids.max", "max"),
        ];
        check("0::/a/b/c\n", V2, &files, "V2 2-5");
        check("0::/z\n", V2, &files, "V2 0-7");
    }

    #[test]
    fn with_both_mounted_the_controller_decides() {
        let v1 = ("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1");
        let v2 = ("sys/fs/cgroup/unified/cpuset.cpus.effective", "0-3");
        let both = [V1, V2].concat();
        check("3:cpuset:/\n0::/\n", &both, &[v1, v2], "V1 0-1");
        check("5:pids:/\n0::/\n", &both, &[v1, v2], "V2 0-3");
        check("3:cpuset:/\n0::/\n", V2, &[v2], "V2 0-3");
    }

    #[test]
    fn container_with_own_cgroup_mount_is_found() {
        let mount = V1.replace(" / /sys", " /docker/x /sys");
        let file = ("sys/fs/cgroup/cpuset/cpuset.cpus", "4");
        check("3:cpuset:/docker/x\n", &mount, &[file], "V1 4");
        check("3:cpuset:/\n", &mount, &[file], "V1 4");
        let inner = ("sys/fs/cgroup/cpuset/in/cpuset.cpus", "5");
        check("3:cpuset:/docker/x/in\n", &mount, &[file, inner], "V1 5");
    }

    #[test]
    fn outside_cgroup_namespace_nothing_is_known() {
        let file = ("sys/fs/cgroup/unified/cpuset.cpus.effective", "0-3");
        check("0::/../other\n", V2, &[file], "none");
    }

    #[test]
    fn android_has_no_prefix() {
        let mount = "9 8 0:1 / /dev/cpuset rw - cgroup none rw,cpuset,noprefix\n";
        check(
            "2:cpuset:/fg\n",
            mount,
            &[("dev/cpuset/fg/cpus", "0-6")],
            "V1 0-6",
        );
    }

    /// CPUs of 0-7 that are out of balancing with these files below /sys/fs/cgroup.
    fn unbalanced(mountinfo: &str, files: &[(&str, &str)]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: String, content: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write("proc/self/mountinfo".into(), mountinfo);
        for (name, content) in files {
            write(format!("sys/fs/cgroup/{name}"), content);
        }
        let online = "0-7".parse().unwrap();
        CpusetHierarchies::read(dir.path())
            .unbalanced_pus(&online)
            .to_string()
    }

    #[test]
    fn isolated_partitions_are_out_of_balancing() {
        let partition = [
            ("unified/job/cpuset.cpus.partition", "isolated\n"),
            ("unified/job/cpuset.cpus.effective", "4-5\n"),
            ("unified/outer/cpuset.cpus.partition", "root\n"),
            ("unified/outer/in/cpuset.cpus.partition", "isolated\n"),
            ("unified/outer/in/cpuset.cpus.effective", "7\n"),
            (
                "unified/bad/cpuset.cpus.partition",
                "isolated invalid (x)\n",
            ),
            ("unified/bad/cpuset.cpus.effective", "0-3\n"),
        ];
        assert_eq!(unbalanced(V2, &partition), "4-5,7");
        let listed = [partition[0], ("unified/cpuset.cpus.isolated", "2-3\n")];
        assert_eq!(unbalanced(V2, &listed), "2-3");
        assert_eq!(
            unbalanced(V2, &[("unified/cpuset.cpus.isolated", "\n")]),
            ""
        );
        assert_eq!(unbalanced(V2, &[]), "");
    }

    #[test]
    fn version_1_balances_what_a_balanced_cpuset_has() {
        let files = |root: &'static str| {
            [
                ("cpuset/cpuset.sched_load_balance", root),
                ("cpuset/cpuset.cpus", "0-7\n"),
                ("cpuset/a/cpuset.sched_load_balance", "1\n"),
                ("cpuset/a/cpuset.cpus", "0-3\n"),
                ("cpuset/b/cpuset.sched_load_balance", "0\n"),
                ("cpuset/b/cpuset.cpus", "4-7\n"),
            ]
        };
        assert_eq!(unbalanced(V1, &files("1\n")), "");
        assert_eq!(unbalanced(V1, &files("0\n")), "4-7");
        let part = V1.replace(" / /sys", " /docker /sys");
        assert_eq!(unbalanced(&part, &files("0\n")), "", "the rest is not seen");
    }
}
