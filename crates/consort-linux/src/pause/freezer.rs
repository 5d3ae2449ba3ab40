//! One cgroup made for freezing, below the cgroup that its processes came from, and the moves of
//! processes into it and out of it.
//!
//! Because the cgroup lies below the original one, all limits of that one still hold. Because it is
//! made for processes of one cgroup only, its parent shows where each of them, and each child born
//! in it, has to go back to.
//!
//! Version 1 has a freezer controller (Linux
//! `Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst`), version 2 a freezer in each cgroup
//! (Linux `Documentation/admin-guide/cgroup-v2.rst`, "cgroup.freeze" and "cgroup.events"; since
//! Linux 5.2).
//!
//! Pitfalls: in version 1 the state reads FREEZING between request and standstill, and reading it
//! brings it up to date; a frozen process cannot even be killed. In version 2 the root cgroup has
//! neither file.

use crate::cgroup::{CgroupVersion, Hierarchy, cgroups_of};
use crate::proc::{ProcError, ProcessHandle, parent_of};
use crate::read;
use nix::errno::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Beginning of the names of all such cgroups.
pub(super) const PREFIX: &str = "consort-";
/// Most passes over a cgroup whose processes start others while they are moved.
const MOST_MOVES: u32 = 1_000;
/// Most attempts to remove a cgroup, 2 ms apart: the kernel may still be emptying a cgroup whose
/// last process has just exited.
const MOST_REMOVALS: u32 = 100;

/// Finds the mounted hierarchy that has the freezer of a version.
pub(super) fn freezer_hierarchy(root: &Path, version: CgroupVersion) -> Option<Hierarchy> {
    let controller = match version {
        CgroupVersion::V1 => Some("freezer"),
        CgroupVersion::V2 => None,
    };
    Hierarchy::find(root, controller)
}

/// A cgroup made for freezing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FreezerCgroup {
    pub version: CgroupVersion,
    /// Directory of the cgroup that its processes came from.
    pub home: PathBuf,
    /// Name of the cgroup made for freezing, below `home`.
    pub name: String,
}

impl FreezerCgroup {
    pub(crate) fn dir(&self) -> PathBuf {
        self.home.join(&self.name)
    }

    /// Makes the cgroup; one that exists already is no error.
    pub(super) fn create(&self) -> io::Result<()> {
        match fs::create_dir(self.dir()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves a process into the cgroup, with all threads; returns false if the process has ended.
    pub(super) fn add_process(&self, root: &Path, process: &ProcessHandle) -> io::Result<bool> {
        move_to(root, self.version, &self.dir(), process)
    }

    pub(super) fn freeze(&self) -> io::Result<()> {
        match self.version {
            CgroupVersion::V1 => fs::write(self.dir().join("freezer.state"), "FROZEN"),
            CgroupVersion::V2 => fs::write(self.dir().join("cgroup.freeze"), "1"),
        }
    }

    /// Lets its processes continue; no error if the cgroup is gone.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        let result = match self.version {
            CgroupVersion::V1 => fs::write(self.dir().join("freezer.state"), "THAWED"),
            CgroupVersion::V2 => fs::write(self.dir().join("cgroup.freeze"), "0"),
        };
        match result {
            Err(error) if is_gone(&error) => Ok(()),
            result => result,
        }
    }

    /// Returns true if all its processes stand still, or the cgroup is gone.
    pub(super) fn is_frozen(&self) -> bool {
        let dir = self.dir();
        let is_frozen = match self.version {
            CgroupVersion::V1 => {
                read::text(&dir.join("freezer.state")).as_deref() == Some("FROZEN")
            }
            CgroupVersion::V2 => read::text(&dir.join("cgroup.events"))
                .is_some_and(|events| events.lines().any(|line| line == "frozen 1")),
        };
        is_frozen || matches!(dir.try_exists(), Ok(false))
    }

    /// Thaws the cgroup, moves every process back and removes it.
    ///
    /// # Errors
    /// If it cannot be thawed, or processes cannot be moved. It is no error if the cgroup cannot be
    /// removed because one of its processes has made cgroups in it: nothing is paused then.
    pub(crate) fn thaw_and_remove(&self) -> io::Result<()> {
        self.thaw_and_remove_below(Path::new("/"))
    }

    fn thaw_and_remove_below(&self, root: &Path) -> io::Result<()> {
        if !self.dir().try_exists()? {
            return Ok(());
        }
        // Thawed first, so that nothing stays paused even if a move fails.
        self.thaw()?;
        for _ in 0..MOST_MOVES {
            if self.move_all_back(root)? == 0 {
                self.remove();
                return Ok(());
            }
        }
        Err(io::Error::other("its processes start others without end"))
    }

    /// Moves all its processes back once; returns the number of processes that were listed in it.
    fn move_all_back(&self, root: &Path) -> io::Result<usize> {
        let procs = match fs::read_to_string(self.dir().join("cgroup.procs")) {
            Err(error) if is_gone(&error) => return Ok(0),
            text => text?,
        };
        for pid in procs.lines().filter_map(|line| line.parse().ok()) {
            let process = ProcessHandle::open_current(root, pid).map_err(|error| error.errno())?;
            // A stranger that was given the number meanwhile is not in this cgroup.
            if let Some(process) = process
                && self.contains(&process).map_err(|error| error.errno())?
            {
                move_to(root, self.version, &self.home, &process)?;
            }
        }
        Ok(procs.lines().count())
    }

    /// Returns true if a process is in this cgroup by its own file in `/proc`.
    fn contains(&self, process: &ProcessHandle) -> Result<bool, ProcError> {
        let text = process.read("cgroup")?.unwrap_or_default();
        let mut paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        Ok(paths.any(|path| path.ends_with(&format!("/{}", self.name))))
    }

    fn remove(&self) {
        for _ in 0..MOST_REMOVALS {
            match fs::remove_dir(self.dir()) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) if !is_gone(&error) => {
                    let dir = self.dir();
                    tracing::warn!(?dir, %error, "a cgroup made for pausing is left empty");
                    return;
                }
                _ => return,
            }
        }
    }
}

/// Returns true if a cgroup's file is missing, or its cgroup was removed while the file was open.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ENODEV as i32)
}

/// Moves a process with all threads to the cgroup of this directory; returns false if it has ended.
///
/// `cgroup.procs` takes numbers only, so the write may hit a stranger that was given the number a
/// moment ago. The handle stays with the process that is meant: it shows, after the write, if that
/// process has ended, and then a stranger in the new cgroup goes back to where it was born.
///
/// # Errors
/// If it cannot be looked up or moved.
fn move_to(
    root: &Path,
    version: CgroupVersion,
    dir: &Path,
    process: &ProcessHandle,
) -> io::Result<bool> {
    if !process.is_there().map_err(|error| error.errno())? {
        return Ok(false);
    }
    match fs::write(dir.join("cgroup.procs"), process.pid().to_string()) {
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => return Ok(false),
        result => result?,
    }
    // If the lookup fails now, the process was there a moment ago.
    if process.is_there().unwrap_or(true) {
        return Ok(true);
    }
    move_stranger_home(root, version, dir, process.pid());
    Ok(false)
}

/// Puts the process that has this number now into its parent's cgroup, where it was born, if it is
/// in the cgroup of this directory.
fn move_stranger_home(root: &Path, version: CgroupVersion, dir: &Path, pid: u32) {
    let stranger = match ProcessHandle::open_current(root, pid) {
        Ok(None) => return,
        opened => opened.ok().flatten(),
    };
    let hierarchy = freezer_hierarchy(root, version);
    let cgroup_of = |pid: u32| -> Result<Option<PathBuf>, ProcError> {
        let text = cgroups_of(root, pid, pid)?;
        Ok(text.and_then(|text| hierarchy.as_ref()?.dir_of(&text)))
    };
    if cgroup_of(pid).is_ok_and(|of| of.as_deref() != Some(dir)) {
        return;
    }
    let birthplace = parent_of(root, pid).and_then(|parent| cgroup_of(parent).ok()?);
    let moved = birthplace.map(|home| fs::write(home.join("cgroup.procs"), pid.to_string()));
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

    fn cgroup(version: CgroupVersion) -> (tempfile::TempDir, FreezerCgroup) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_owned();
        let name = "consort-1-2".into();
        let cgroup = FreezerCgroup {
            version,
            home,
            name,
        };
        cgroup.create().unwrap();
        (dir, cgroup)
    }

    fn content(cgroup: &FreezerCgroup, file: &str) -> String {
        fs::read_to_string(cgroup.dir().join(file)).unwrap()
    }

    #[test]
    fn version_2_is_frozen_once_events_say_so() {
        let (_dir, cgroup) = cgroup(CgroupVersion::V2);
        cgroup.freeze().unwrap();
        assert_eq!(content(&cgroup, "cgroup.freeze"), "1");
        fs::write(
            cgroup.dir().join("cgroup.events"),
            "populated 1\nfrozen 0\n",
        )
        .unwrap();
        assert!(!cgroup.is_frozen());
        fs::write(
            cgroup.dir().join("cgroup.events"),
            "populated 1\nfrozen 1\n",
        )
        .unwrap();
        assert!(cgroup.is_frozen());
        cgroup.thaw().unwrap();
        assert_eq!(content(&cgroup, "cgroup.freeze"), "0");
    }

    #[test]
    fn version_1_in_freezing_is_not_frozen() {
        let (_dir, cgroup) = cgroup(CgroupVersion::V1);
        cgroup.freeze().unwrap();
        assert_eq!(content(&cgroup, "freezer.state"), "FROZEN");
        assert!(cgroup.is_frozen());
        fs::write(cgroup.dir().join("freezer.state"), "FREEZING\n").unwrap();
        assert!(!cgroup.is_frozen());
        cgroup.thaw().unwrap();
        assert_eq!(content(&cgroup, "freezer.state"), "THAWED");
    }

    #[test]
    fn removed_cgroup_counts_as_frozen_without_error() {
        let (_dir, cgroup) = cgroup(CgroupVersion::V2);
        fs::remove_dir(cgroup.dir()).unwrap();
        assert!(cgroup.is_frozen());
        cgroup.thaw().unwrap();
        cgroup.thaw_and_remove().unwrap();
    }

    #[test]
    fn processes_go_back_to_their_cgroup() {
        let (dir, cgroup) = cgroup(CgroupVersion::V2);
        for (pid, of) in [(41, "/consort-1-2"), (42, "/consort-1-2"), (43, "/other")] {
            process(dir.path(), pid, 1, &[(pid, "x", 1)]);
            let file = dir.path().join(format!("proc/{pid}/cgroup"));
            fs::write(file, format!("0::{of}\n")).unwrap();
        }
        // 43 is a number that a stranger has by now, 44 nobody's.
        fs::write(cgroup.dir().join("cgroup.procs"), "41\n42\n43\n44\n").unwrap();
        let error = cgroup.thaw_and_remove_below(dir.path()).unwrap_err();
        assert!(error.to_string().contains("without end"), "{error}");
        assert_eq!(content(&cgroup, "cgroup.freeze"), "0");
        assert_eq!(
            fs::read_to_string(dir.path().join("cgroup.procs")).unwrap(),
            "42"
        );
    }

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
    fn exited_process_is_not_moved_by_number() {
        let dir = host();
        let gone = ProcessHandle::open_current(dir.path(), 7).unwrap().unwrap();
        fs::remove_dir_all(dir.path().join("proc/7")).unwrap();
        process(dir.path(), 7, 5, &[(7, "y", 2)]);
        let job = dir.path().join("cg/job");
        assert!(!move_to(dir.path(), CgroupVersion::V2, &job, &gone).unwrap());
        assert_eq!(moved(&dir, "/job"), None);
    }

    #[test]
    fn moved_stranger_goes_to_its_parents_cgroup() {
        let dir = host();
        let job = dir.path().join("cg/job");
        move_stranger_home(dir.path(), CgroupVersion::V2, &job, 7);
        assert_eq!(moved(&dir, "/home").as_deref(), Some("7"));
        // One that is elsewhere stays there.
        move_stranger_home(dir.path(), CgroupVersion::V2, &job, 5);
        assert_eq!(moved(&dir, "/home").as_deref(), Some("7"));
    }
}
