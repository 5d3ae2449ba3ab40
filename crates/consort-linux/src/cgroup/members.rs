//! Members of control groups: processes, and threads of processes that are in several groups.
//!
//! Version 1 moves single threads: `tasks` lists those of a group, and `cgroup.procs` the processes
//! that they belong to, whole or not. In version 2 a process is in one group as a whole, unless
//! that is threaded: then `cgroup.procs` cannot be read (`EOPNOTSUPP`), and `cgroup.threads` lists
//! threads. Source: Linux `Documentation/admin-guide/cgroup-v1/cgroups.rst`, `cgroup-v2.rst`.

use super::cpuset::CgroupVersion;
use crate::proc::{ProcError, ProcStatus, threads_of, unless_gone};
use crate::read;
use nix::errno::Errno;
use std::collections::BTreeSet;
use std::path::Path;

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
