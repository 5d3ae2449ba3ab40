//! The directory of a process's cgroup in one mounted hierarchy, for writing.
//!
//! Readers may make do with the nearest directory that a container shows; a writer that moves
//! processes must have the very one. So a path that does not lie within the mount has no directory
//! here.

use super::cpuset::CgroupVersion;
use super::kernel_text::{Mount, decode, memberships, mounts, text_of_file};
use crate::proc::{ProcError, unless_gone};
use crate::read;
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
