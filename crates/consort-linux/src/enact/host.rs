//! The host as enactment reads it: threads in `/proc`, their identity, and the
//! CPUs that they are allowed.

use super::affinity;
use super::record::JournalHeader;
use crate::cgroup::{CpusetHierarchies, decode};
use crate::proc::{
    ProcError, ProcStatus, Stat, numbers_in, read_stat, thread_dir, threads_of, unless_gone,
};
use crate::read;
use crate::topology::{is_online, online_pus};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// SIGKILL in a set of signals, whose first signal has the lowest bit.
const SIGKILL: u64 = 1 << (nix::libc::SIGKILL - 1);

/// A process as the table of processes shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub pid: u32,
    pub stat: Stat,
}

/// Readers of `/proc` and `/sys` below an injected root.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    root: PathBuf,
    hierarchies: CpusetHierarchies,
}

impl Host {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            hierarchies: CpusetHierarchies::read(root),
        }
    }

    /// The host that the caller runs on.
    pub(crate) fn real() -> Self {
        Self::new(Path::new("/"))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// One thread's line of `stat`; `None` if it is gone.
    ///
    /// # Errors
    /// If it cannot be read, as when descriptors are short: the thread may well be there.
    pub(crate) fn stat(&self, pid: u32, tid: u32) -> Result<Option<Stat>, ProcError> {
        unless_gone(read_stat(&self.root, pid, tid))
    }

    /// The thread's line of `stat` if it is still the same thread and alive.
    ///
    /// # Errors
    /// Those of [`Host::stat`].
    pub(crate) fn stat_if_same(&self, thread: ThreadId) -> Result<Option<Stat>, ProcError> {
        let stat = self.stat(thread.pid, thread.tid)?;
        Ok(stat.filter(|stat| stat.start_ticks == thread.start_ticks && stat.is_alive()))
    }

    /// Returns true if a thread has exited for certain.
    pub(crate) fn is_gone(&self, thread: ThreadId) -> bool {
        matches!(self.stat_if_same(thread), Ok(None))
    }

    /// Returns the process if it is still the one with this start; a leader that has exited before
    /// its threads counts.
    ///
    /// # Errors
    /// Those of [`Host::stat`].
    pub(crate) fn process(
        &self,
        pid: u32,
        start_ticks: u64,
    ) -> Result<Option<ProcessEntry>, ProcError> {
        let stat = self.stat(pid, pid)?;
        let same = stat.filter(|stat| stat.start_ticks == start_ticks);
        Ok(same.map(|stat| ProcessEntry { pid, stat }))
    }

    /// The identity of a thread.
    pub(crate) fn identify(&self, pid: u32, tid: u32) -> Option<ThreadId> {
        let start_ticks = self.stat(pid, tid).ok()??.start_ticks;
        Some(ThreadId {
            pid,
            tid,
            start_ticks,
        })
    }

    /// The tids of a process; none if it is gone.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub(crate) fn tids(&self, pid: u32) -> Result<Vec<u32>, ProcError> {
        Ok(unless_gone(threads_of(&self.root, pid))?.unwrap_or_default())
    }

    /// Every process that can be read.
    ///
    /// # Errors
    /// If some cannot be read for the moment.
    pub(crate) fn processes(&self) -> Result<Vec<ProcessEntry>, ProcError> {
        let mut processes = Vec::new();
        for pid in numbers_in(&self.root.join("proc"))? {
            match read_stat(&self.root, pid, pid) {
                Ok(stat) => processes.push(ProcessEntry { pid, stat }),
                Err(error) if error.is_transient() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(processes)
    }

    /// Returns true if a process was started with this variable and value in its environment.
    ///
    /// # Errors
    /// If that cannot be read for the moment.
    pub(crate) fn has_variable(
        &self,
        pid: u32,
        name: &str,
        value: &str,
    ) -> Result<bool, ProcError> {
        let path = self.root.join(format!("proc/{pid}/environ"));
        // Environments of other users cannot be read, which lasts: such a process counts as
        // unmarked.
        let environment = match read::bytes(&path).map_err(|error| ProcError::io(&path, &error)) {
            Err(error) if error.is_transient() => return Err(error),
            read => read.unwrap_or_default(),
        };
        let wanted = format!("{name}={value}");
        Ok(environment
            .split(|&byte| byte == 0)
            .any(|entry| entry == wanted.as_bytes()))
    }

    /// The process that a tid belongs to now, and that process's parent.
    pub(crate) fn group_and_parent(&self, tid: u32) -> Option<(u32, u32)> {
        let status = ProcStatus::read(&self.root.join(format!("proc/{tid}/status"))).ok()?;
        Some((status.value("Tgid")?, status.value("PPid")?))
    }

    /// Returns true if SIGKILL waits for a process that has not ended yet.
    pub(crate) fn was_killed(&self, pid: u32) -> bool {
        let status = ProcStatus::read(&self.root.join(format!("proc/{pid}/status")));
        let is_pending = |status: &ProcStatus, field| {
            let set = status.field(field).unwrap_or_default();
            u64::from_str_radix(set, 16).is_ok_and(|set| set & SIGKILL != 0)
        };
        // A fatal signal to a process is put to each of its threads (`complete_signal` in the
        // kernel's `kernel/signal.c`).
        status.is_ok_and(|status| ["SigPnd", "ShdPnd"].iter().any(|f| is_pending(&status, f)))
    }

    /// Returns true if a run of this header has had this boot and this PID namespace, so that its
    /// numbers mean here what they meant to it.
    pub(crate) fn has_same_pid_space(&self, run: &JournalHeader) -> bool {
        run.is_of_boot(self.boot_id().as_deref()) && run.pid_namespace == self.pid_namespace()
    }

    /// Identity of this boot of the machine, a line of text; `None` where `/proc` shows processes
    /// only.
    pub(crate) fn boot_id(&self) -> Option<String> {
        let path = self.root.join("proc/sys/kernel/random/boot_id");
        Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
    }

    /// The caller's pid in the namespace that `/proc` was mounted for.
    pub(crate) fn own_pid(&self) -> Option<u32> {
        let link = std::fs::read_link(self.root.join("proc/self")).ok()?;
        link.to_str()?.parse().ok()
    }

    /// The PID namespace of the caller: pids mean nothing outside it. A kernel without such
    /// namespaces has one for all.
    pub(crate) fn pid_namespace(&self) -> String {
        let link = std::fs::read_link(self.root.join("proc/self/ns/pid")).unwrap_or_default();
        let name = link.to_string_lossy().replace(char::is_whitespace, "");
        if name.is_empty() {
            "all".to_owned()
        } else {
            name
        }
    }
}

/// The identity of a thread, or none when there is no such thread.
///
/// `root` is `/` except in tests.
pub fn identify(root: &Path, pid: u32, tid: u32) -> Option<ThreadId> {
    Host::new(root).identify(pid, tid)
}

/// The CPUs that a thread may run on now.
///
/// # Errors
/// `ESRCH` when the thread has exited.
pub fn current_mask(thread: ThreadId) -> Result<PuSet, Errno> {
    affinity::get(thread.tid)
}

/// CPUs that a thread's cpuset and the online CPUs allow, with their origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedPuSet {
    pub(crate) pus: PuSet,
    /// Directory of the cgroup that sets the cpuset; none where no cpuset can be read.
    pub(crate) by: Option<PathBuf>,
    /// True if no other cgroup may use these CPUs.
    pub(crate) exclusive: bool,
}

/// Allowed CPUs by cgroup, read once per cgroup: thousands of threads share few.
#[derive(Debug)]
pub(crate) struct AllowedPusCache {
    online: PuSet,
    by_cgroup: BTreeMap<Vec<u8>, AllowedPuSet>,
}

impl AllowedPusCache {
    pub(crate) fn new(host: &Host) -> Self {
        Self {
            online: online_pus(&host.root),
            by_cgroup: BTreeMap::new(),
        }
    }

    /// CPUs that a thread's cpuset and the online CPUs allow; all online CPUs where the cpuset
    /// cannot be read.
    ///
    /// # Errors
    /// If the thread's cgroup or cpuset cannot be read for the moment.
    pub(crate) fn read_pus(&mut self, host: &Host, pid: u32, tid: u32) -> Result<PuSet, ProcError> {
        Ok(self.read(host, pid, tid)?.pus)
    }

    /// The same, with the cgroup that sets the cpuset.
    pub(crate) fn read(
        &mut self,
        host: &Host,
        pid: u32,
        tid: u32,
    ) -> Result<AllowedPuSet, ProcError> {
        let path = thread_dir(&host.root, pid, tid).join("cgroup");
        // A lasting error, for example a kernel without cgroups, counts as no cgroup.
        let cgroup = match read::bytes(&path).map_err(|error| ProcError::io(&path, &error)) {
            Err(error) if error.is_transient() => return Err(error),
            read => read.unwrap_or_default(),
        };
        if let Some(allowed) = self.by_cgroup.get(&cgroup) {
            return Ok(allowed.clone());
        }
        let online = &self.online;
        let allowed = match host.hierarchies.cpuset_of(&decode(&cgroup))? {
            Some(cpuset) => AllowedPuSet {
                // The kernel takes CPUs that go offline from cpusets a little later. A list of
                // online CPUs that a container masks takes none away.
                pus: (cpuset.pus.iter())
                    .filter(|&pu| online.contains(pu) || is_online(&host.root, pu) != Some(false))
                    .collect(),
                exclusive: cpuset.is_exclusive(),
                by: Some(cpuset.by),
            },
            None => AllowedPuSet {
                pus: online.clone(),
                by: None,
                exclusive: false,
            },
        };
        self.by_cgroup.insert(cgroup, allowed.clone());
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_is_found_among_processes() {
        let host = Host::real();
        let pid = std::process::id();
        let me = host.identify(pid, pid).unwrap();
        assert!(host.stat_if_same(me).unwrap().is_some());
        assert!(host.process(pid, me.start_ticks).unwrap().is_some());
        assert!(host.processes().unwrap().iter().any(|p| p.pid == pid));
        let parent = std::os::unix::process::parent_id();
        assert_eq!(host.group_and_parent(pid), Some((pid, parent)));
    }

    #[test]
    fn another_start_time_is_another_thread() {
        let host = Host::real();
        let pid = std::process::id();
        let mut me = host.identify(pid, pid).unwrap();
        me.start_ticks += 1;
        assert!(host.is_gone(me));
        assert_eq!(host.process(pid, me.start_ticks), Ok(None));
    }

    #[test]
    fn own_mask_lies_within_the_allowed_pus() {
        let pid = std::process::id();
        let host = Host::real();
        let allowed = AllowedPusCache::new(&host)
            .read_pus(&host, pid, pid)
            .unwrap();
        assert!(affinity::get(pid).unwrap().is_subset(&allowed));
    }

    #[test]
    fn variables_are_matched_whole() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/5")).unwrap();
        std::fs::write(root.path().join("proc/5/environ"), b"A=1\0RUN=12\0").unwrap();
        let host = Host::new(root.path());
        assert_eq!(host.has_variable(5, "RUN", "12"), Ok(true));
        assert_eq!(host.has_variable(5, "RUN", "1"), Ok(false));
        assert_eq!(host.has_variable(6, "RUN", "12"), Ok(false));
    }
}
