//! Moves of processes to other cgroups that never move a stranger.
//!
//! `cgroup.procs` takes numbers only. So the process is held by its directory in `/proc` and looked
//! at again after its number was written: if it has ended meanwhile, the number may already have
//! been another process's. Such a stranger, if it is found in the new cgroup, is sent to its
//! parent's cgroup, where it was born.

use super::freezer_files::controller;
use crate::cgroup::{CgroupVersion, Hierarchy, cgroups_of};
use crate::proc::{ProcError, ProcessHandle, parent_of};
use nix::errno::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Moves a process with all threads to the cgroup of this directory; returns false if it has ended.
///
/// # Errors
/// If it cannot be looked up or moved.
pub(super) fn move_to(
    root: &Path,
    version: CgroupVersion,
    dir: &Path,
    process: &ProcessHandle,
) -> io::Result<bool> {
    let is_there = || process.is_there().map_err(|error| error.errno());
    if !is_there()? {
        return Ok(false);
    }
    match std::fs::write(dir.join("cgroup.procs"), process.pid().to_string()) {
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => return Ok(false),
        result => result?,
    }
    // One that cannot be looked up now was there a moment ago.
    if is_there().unwrap_or(true) {
        return Ok(true);
    }
    move_stranger_home(root, version, dir, process.pid());
    Ok(false)
}

/// Puts the process that has this number now back, if it is in the cgroup of this directory.
fn move_stranger_home(root: &Path, version: CgroupVersion, dir: &Path, pid: u32) {
    let stranger = match ProcessHandle::open_current(root, pid) {
        Ok(None) => return,
        opened => opened.ok().flatten(),
    };
    let hierarchy = Hierarchy::find(root, controller(version));
    let cgroup_of = |pid: u32| -> Result<Option<PathBuf>, ProcError> {
        let text = cgroups_of(root, pid, pid)?;
        Ok(text.and_then(|text| hierarchy.as_ref()?.dir_of(&text)))
    };
    if cgroup_of(pid).is_ok_and(|of| of.as_deref() != Some(dir)) {
        return;
    }
    let birthplace = parent_of(root, pid).and_then(|parent| cgroup_of(parent).ok()?);
    let moved = birthplace.map(|home| std::fs::write(home.join("cgroup.procs"), pid.to_string()));
    let has_ended = stranger.is_some_and(|stranger| stranger.is_there() == Ok(false));
    if !matches!(moved, Some(Ok(()))) && !has_ended {
        tracing::warn!(
            pid,
            ?dir,
            "a process that was given a number anew is in a wrong cgroup"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;
    use std::fs;

    const MOUNTS: &str = "2 1 0:2 / /cg rw - cgroup2 cgroup2 rw\n";

    /// A host with a parent 5 in `/home` and its child 7 in `/job`.
    fn host() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(dir.path().join("proc/self/mountinfo"), MOUNTS).unwrap();
        for (pid, parent, cgroup) in [(5, 1, "/home"), (7, 5, "/job")] {
            process(dir.path(), pid, parent, &[(pid, "x", 1)]);
            let file = dir.path().join(format!("proc/{pid}/task/{pid}/cgroup"));
            fs::write(file, format!("0::{cgroup}\n")).unwrap();
            fs::create_dir_all(dir.path().join(format!("cg{cgroup}"))).unwrap();
        }
        dir
    }

    fn moved(dir: &tempfile::TempDir, cgroup: &str) -> Option<String> {
        fs::read_to_string(dir.path().join(format!("cg{cgroup}/cgroup.procs"))).ok()
    }

    #[test]
    fn a_process_that_is_gone_is_not_moved_and_neither_is_its_number() {
        let dir = host();
        let gone = ProcessHandle::open_current(dir.path(), 7).unwrap().unwrap();
        fs::remove_dir_all(dir.path().join("proc/7")).unwrap();
        process(dir.path(), 7, 5, &[(7, "y", 2)]);
        let job = dir.path().join("cg/job");
        assert!(!move_to(dir.path(), CgroupVersion::V2, &job, &gone).unwrap());
        assert_eq!(moved(&dir, "/job"), None);
    }

    #[test]
    fn a_stranger_that_was_moved_goes_to_its_parent_s_cgroup() {
        let dir = host();
        let job = dir.path().join("cg/job");
        move_stranger_home(dir.path(), CgroupVersion::V2, &job, 7);
        assert_eq!(moved(&dir, "/home").as_deref(), Some("7"));
        // One that is elsewhere stays there.
        move_stranger_home(dir.path(), CgroupVersion::V2, &job, 5);
        assert_eq!(moved(&dir, "/home").as_deref(), Some("7"));
    }
}
