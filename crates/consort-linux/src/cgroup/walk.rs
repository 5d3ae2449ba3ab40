//! Walks through a hierarchy of control groups that visit only what a pattern can match: their cost
//! grows with what is managed, not with the host.

use super::cpuset::CgroupVersion;
use super::{decode, path_of};
use crate::proc::{ProcError, ProcStatus, threads_of, unless_gone};
use crate::read;
use glob::Pattern;
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{metadata, read_dir};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most groups that one walk lists.
pub(super) const MOST_GROUPS: usize = 20_000;

/// One part of a pattern's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternStep {
    /// The group of this name.
    Name(String),
    /// The groups whose names match.
    Names(Pattern),
    /// All groups below, at any depth; steps after this one do not bound the walk.
    All,
}

/// The steps of a pattern. A part that is no pattern by itself, such as a class that contains `/`,
/// does not bound the walk.
pub(super) fn steps(pattern: &str) -> Vec<PatternStep> {
    let step = |part: &str| match Pattern::new(part) {
        _ if !part.contains(['*', '?', '[', ']']) => PatternStep::Name(part.to_owned()),
        Ok(names) if part != "**" => PatternStep::Names(names),
        _ => PatternStep::All,
    };
    pattern.split('/').map(step).collect()
}

/// Groups that patterns may match, and those below.
pub(super) struct GroupWalk<'a> {
    top: &'a Path,
    /// Groups that are passed over with all below.
    is_excluded: &'a dyn Fn(&str) -> bool,
    /// Directory of each group by its path.
    pub(super) groups: BTreeMap<String, PathBuf>,
    /// Number of groups that may still be listed.
    left: usize,
    /// True if there were more groups than that.
    pub(super) is_cut: bool,
    /// Groups that could not be looked into although they may be there, by path.
    pub(super) unseen: BTreeMap<String, ProcError>,
}

impl<'a> GroupWalk<'a> {
    /// A walk through the hierarchy with this topmost directory.
    pub(super) fn new(top: &'a Path, is_excluded: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            top,
            is_excluded,
            groups: BTreeMap::new(),
            left: MOST_GROUPS,
            is_cut: false,
            unseen: BTreeMap::new(),
        }
    }

    /// Adds the groups that these steps lead to, and all below them.
    pub(super) fn follow(&mut self, steps: &[PatternStep]) {
        self.descend(self.top, "", steps);
    }

    fn descend(&mut self, dir: &Path, path: &str, steps: &[PatternStep]) {
        match steps {
            [] => self.add_with_all_below(path, dir),
            [PatternStep::All, ..] => self.add_all_below(path, dir),
            [PatternStep::Name(name), rest @ ..] => {
                let (child, below) = (dir.join(path_of(name)), join_path(path, name));
                match metadata(&child) {
                    Ok(found) if found.is_dir() => self.descend(&child, &below, rest),
                    Ok(_) => {}
                    Err(error) => self.note_error(&below, &child, &error),
                }
            }
            [PatternStep::Names(names), rest @ ..] => {
                for (name, child) in self.groups_in(path, dir) {
                    if names.matches(&name) {
                        self.descend(&child, &join_path(path, &name), rest);
                    }
                }
            }
        }
    }

    fn add_with_all_below(&mut self, path: &str, dir: &Path) {
        let is_new = !self.groups.contains_key(path) && !(self.is_excluded)(path);
        if is_new {
            self.groups.insert(path.to_owned(), dir.to_owned());
            self.add_all_below(path, dir);
        }
    }

    fn add_all_below(&mut self, path: &str, dir: &Path) {
        for (name, child) in self.groups_in(path, dir) {
            self.add_with_all_below(&join_path(path, &name), &child);
        }
    }

    /// Names and directories of the groups in one.
    fn groups_in(&mut self, path: &str, dir: &Path) -> Vec<(String, PathBuf)> {
        // Two links mean no folder inside (`kernfs_refresh_inode` in the kernel's
        // `fs/kernfs/inode.c`). To list a group takes long, as it contains dozens of files.
        if metadata(dir).is_ok_and(|dir| dir.nlink() == 2) {
            return Vec::new();
        }
        let listed: io::Result<Vec<_>> = read_dir(dir).and_then(Iterator::collect);
        let entries = listed.unwrap_or_else(|error| {
            self.note_error(path, dir, &error);
            Vec::new()
        });
        let dirs = entries
            .into_iter()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let named = dirs.map(|entry| (decode(entry.file_name().as_bytes()), entry.path()));
        let mut groups: Vec<(String, PathBuf)> = named.take(self.left + 1).collect();
        self.is_cut |= groups.len() > self.left;
        groups.truncate(self.left);
        self.left -= groups.len();
        groups
    }
}

impl GroupWalk<'_> {
    /// Notes a group that could not be looked into, unless it has been removed.
    fn note_error(&mut self, path: &str, dir: &Path, error: &io::Error) {
        let is_gone = [Errno::ENODEV, Errno::ENOTDIR]
            .contains(&Errno::from_raw(error.raw_os_error().unwrap_or_default()));
        match ProcError::io(dir, error) {
            ProcError::Gone => {}
            _ if is_gone => {}
            error => drop(self.unseen.insert(path.to_owned(), error)),
        }
    }
}

fn join_path(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

/// Members of some groups.
#[derive(Debug, Default)]
pub(super) struct GroupMembers {
    /// Processes that are in the groups with all threads.
    whole: BTreeSet<u32>,
    /// Processes that may have threads elsewhere.
    partial: BTreeSet<u32>,
    /// Threads in groups that need not contain whole processes.
    threads: BTreeSet<u32>,
    /// Those of them whose processes are not listed.
    threaded: BTreeSet<u32>,
}

impl GroupMembers {
    /// Adds the members of one group; none of one that has been removed.
    ///
    /// # Errors
    /// If they cannot be read although the group may be there.
    pub(super) fn add(&mut self, dir: &Path, version: CgroupVersion) -> Result<(), ProcError> {
        let processes = numbers(&dir.join("cgroup.procs"))?;
        match (version, processes) {
            (CgroupVersion::V1, Some(processes)) => match numbers(&dir.join("tasks"))? {
                Some(threads) => {
                    self.partial.extend(processes);
                    self.threads.extend(threads);
                }
                None => self.whole.extend(processes),
            },
            (CgroupVersion::V2, Some(processes)) => self.whole.extend(processes),
            (_, None) => {
                let threads = numbers(&dir.join("cgroup.threads"))?;
                self.threaded.extend(threads.into_iter().flatten());
            }
        }
        Ok(())
    }

    /// All processes with threads in the groups, and those of them that have other threads too. A
    /// thread that begins meanwhile may make a process look like one of these.
    ///
    /// # Errors
    /// If a thread cannot be looked up although it may be there.
    pub(super) fn processes(
        mut self,
        root: &Path,
    ) -> Result<(BTreeSet<u32>, BTreeSet<u32>), ProcError> {
        for thread in &self.threaded {
            let status = ProcStatus::read(&root.join(format!("proc/{thread}/status")));
            let status = unless_gone(status)?;
            let process = status.and_then(|status| status.value::<u32>("Tgid"));
            self.partial.extend(process);
        }
        self.threads.append(&mut self.threaded);
        // The domain above a threaded group lists its processes.
        let mut parts = BTreeSet::new();
        let is_elsewhere = |thread: &u32| !self.threads.contains(thread);
        for &pid in self.partial.difference(&self.whole) {
            let threads = unless_gone(threads_of(root, pid))?.unwrap_or_default();
            if threads.iter().any(is_elsewhere) {
                parts.insert(pid);
            }
        }
        let mut all = self.whole;
        all.extend(self.partial);
        // Processes of other PID namespaces.
        all.remove(&0);
        Ok((all, parts))
    }
}

/// The numbers in a group's file; `None` if the group has no such file, or it cannot be read in a
/// group of this kind.
fn numbers(path: &Path) -> Result<Option<Vec<u32>>, ProcError> {
    let bytes = match read::bytes(path) {
        // The group was removed while its file was open, or is threaded.
        Err(e)
            if [Errno::ENODEV, Errno::EOPNOTSUPP]
                .map(|e| Some(e as i32))
                .contains(&e.raw_os_error()) =>
        {
            return Ok(None);
        }
        bytes => unless_gone(bytes.map_err(|error| ProcError::io(path, &error)))?,
    };
    Ok(bytes.map(|bytes| read::numbers_in(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths that a walk by a pattern visits on a host with these groups, and the number that it
    /// listed.
    fn visited(groups: &[&str], pattern: &str) -> (Vec<String>, usize) {
        let top = tempfile::tempdir().unwrap();
        for group in groups {
            std::fs::create_dir_all(top.path().join(group)).unwrap();
        }
        let mut walk = GroupWalk::new(top.path(), &|_| false);
        walk.follow(&steps(pattern));
        let listed = MOST_GROUPS - walk.left;
        (walk.groups.into_keys().collect(), listed)
    }

    #[test]
    fn literal_beginning_bounds_the_walk() {
        let many: Vec<String> = (0..500).map(|n| format!("other/g{n}")).collect();
        let mut groups: Vec<&str> = many.iter().map(String::as_str).collect();
        groups.push("job/step/task");
        assert_eq!(
            visited(&groups, "job/**"),
            (vec!["job/step".into(), "job/step/task".into()], 2)
        );
        assert_eq!(
            visited(&groups, "job/step"),
            (vec!["job/step".into(), "job/step/task".into()], 1)
        );
        assert_eq!(visited(&groups, "job/s*").1, 2);
        assert_eq!(visited(&groups, "missing/**"), (vec![], 0));
    }

    #[test]
    fn any_depth_visits_all() {
        let groups = ["a/x.service", "b/c/x.service/in"];
        assert_eq!(visited(&groups, "**/x.service").0.len(), 6);
    }

    #[test]
    fn excluded_groups_are_passed_over_with_all_below() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("a/b/c")).unwrap();
        let mut walk = GroupWalk::new(top.path(), &|path| path == "a/b");
        walk.follow(&steps("a"));
        assert_eq!(walk.groups.into_keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn walk_that_is_cut_shows_it() {
        let top = tempfile::tempdir().unwrap();
        for n in 0..3 {
            std::fs::create_dir_all(top.path().join(format!("g{n}"))).unwrap();
        }
        for (left, groups, is_cut) in [(3, 3, false), (2, 2, true), (0, 0, true)] {
            let mut walk = GroupWalk::new(top.path(), &|_| false);
            walk.left = left;
            walk.follow(&steps("**"));
            assert_eq!((walk.groups.len(), walk.is_cut), (groups, is_cut), "{left}");
        }
    }
}

#[cfg(test)]
mod members_tests {
    use super::*;
    use crate::proc::process;
    use std::fs::{create_dir_all, write};

    /// A host with a process of threads 10 and 11 and one of thread 20, and a group with these
    /// files.
    fn members(files: &[(&str, &str)], version: CgroupVersion) -> (Vec<u32>, Vec<u32>) {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 10, 1, &[(10, "a", 1), (11, "b", 1)]);
        process(root.path(), 20, 1, &[(20, "c", 1)]);
        for (tid, pid) in [(10, 10), (11, 10), (20, 20)] {
            create_dir_all(root.path().join(format!("proc/{tid}"))).unwrap();
            let text = format!("Tgid:\t{pid}\n");
            write(root.path().join(format!("proc/{tid}/status")), text).unwrap();
        }
        for (name, text) in files {
            write(root.path().join(name), text).unwrap();
        }
        let mut members = GroupMembers::default();
        members.add(root.path(), version).unwrap();
        let (all, parts) = members.processes(root.path()).unwrap();
        (all.into_iter().collect(), parts.into_iter().collect())
    }

    #[test]
    fn threads_elsewhere_make_a_process_a_part() {
        let v1 = CgroupVersion::V1;
        let some = [("cgroup.procs", "10\n20\n"), ("tasks", "11\n20\n")];
        assert_eq!(members(&some, v1), (vec![10, 20], vec![10]));
        let all = [("cgroup.procs", "10\n"), ("tasks", "10\n11\n")];
        assert_eq!(members(&all, v1), (vec![10], vec![]));
    }

    #[test]
    fn threaded_group_lists_threads() {
        let threaded = [("cgroup.threads", "11\n20\n")];
        assert_eq!(
            members(&threaded, CgroupVersion::V2),
            (vec![10, 20], vec![10])
        );
        let domain = [("cgroup.procs", "0\n10\n")];
        assert_eq!(members(&domain, CgroupVersion::V2), (vec![10], vec![]));
    }
}
