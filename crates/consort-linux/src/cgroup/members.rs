//! Members of control groups: processes, and threads of processes that are in several groups.
//!
//! Version 1 moves single threads: `tasks` lists those of a group, and `cgroup.procs` the processes
//! that they belong to, whole or not. In version 2 a process is in one group as a whole, unless
//! that is threaded: then `cgroup.procs` cannot be read (`EOPNOTSUPP`), and `cgroup.threads` lists
//! threads. Source: Linux `Documentation/admin-guide/cgroup-v1/cgroups.rst`, `cgroup-v2.rst`.

use super::cpuset::CgroupVersion;
use crate::proc::{Status, threads_of};
use crate::read;
use std::collections::BTreeSet;
use std::path::Path;

/// Members of some groups.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Processes that are in the groups with all threads.
    whole: BTreeSet<u32>,
    /// Processes that may have threads elsewhere.
    partial: BTreeSet<u32>,
    /// Threads in groups that need not contain whole processes.
    threads: BTreeSet<u32>,
    /// Those of them whose processes are not listed.
    threaded: BTreeSet<u32>,
}

impl Members {
    /// Adds the members of one group.
    pub(super) fn add(&mut self, dir: &Path, version: CgroupVersion) {
        let processes = read::numbers(&dir.join("cgroup.procs"));
        let tasks = || read::numbers(&dir.join("tasks"));
        match (version, processes) {
            (CgroupVersion::V1, Some(processes)) => match tasks() {
                Some(threads) => {
                    self.partial.extend(processes);
                    self.threads.extend(threads);
                }
                None => self.whole.extend(processes),
            },
            (CgroupVersion::V2, Some(processes)) => self.whole.extend(processes),
            (_, None) => {
                let threads = read::numbers(&dir.join("cgroup.threads"));
                self.threaded.extend(threads.into_iter().flatten());
            }
        }
    }

    /// All processes with threads in the groups, and those of them that have other threads too. A
    /// thread that begins meanwhile may make a process look like one of these.
    pub(super) fn processes(mut self, root: &Path) -> (BTreeSet<u32>, BTreeSet<u32>) {
        for thread in &self.threaded {
            let status = Status::read(&root.join(format!("proc/{thread}/status")));
            let process = status.ok().and_then(|status| status.value::<u32>("Tgid"));
            self.partial.extend(process);
        }
        self.threads.append(&mut self.threaded);
        // The domain above a threaded group lists its processes.
        let mut parts: BTreeSet<u32> = self.partial.difference(&self.whole).copied().collect();
        let is_elsewhere = |thread: &u32| !self.threads.contains(thread);
        parts.retain(|pid| threads_of(root, *pid).is_ok_and(|all| all.iter().any(is_elsewhere)));
        let mut all = self.whole;
        all.extend(self.partial);
        // Processes of other PID namespaces.
        all.remove(&0);
        (all, parts)
    }
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
        let mut members = Members::default();
        members.add(root.path(), version);
        let (all, parts) = members.processes(root.path());
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
