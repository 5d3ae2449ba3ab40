//! One cgroup made for freezing, below the cgroup that its processes came from.
//!
//! Being below it, all limits of that cgroup keep holding. Being made for the processes of one
//! cgroup only, it tells where each of them, and each child born in it, has to go back to.

use super::freezer_files::FreezerFiles;
use super::moves::move_to;
use crate::cgroup::CgroupVersion;
use crate::proc::{ProcError, ProcessHandle};
use nix::errno::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Beginning of the names of all such cgroups.
pub(super) const PREFIX: &str = "consort-";
/// Most passes over a cgroup whose processes start others while they are moved.
const MOST_MOVES: u32 = 1_000;
/// Most attempts to remove a cgroup, 2 ms apart: the kernel may still be emptying one whose last
/// process has just gone.
const MOST_REMOVALS: u32 = 100;

/// A cgroup made for freezing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FreezerCgroup {
    /// Version of cgroups that the cgroup belongs to.
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

    fn files(&self) -> FreezerFiles {
        FreezerFiles::from_version(self.version)
    }

    /// Makes the cgroup; one that exists already is no error.
    pub(super) fn create(&self) -> io::Result<()> {
        match std::fs::create_dir(self.dir()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves a process into the cgroup, with all threads; returns false if the process has ended.
    pub(super) fn add_process(&self, root: &Path, process: &ProcessHandle) -> io::Result<bool> {
        move_to(root, self.version, &self.dir(), process)
    }

    pub(super) fn freeze(&self) -> io::Result<()> {
        let files = self.files();
        std::fs::write(self.dir().join(files.request), files.freeze)
    }

    /// Lets its processes go on; no error if the cgroup is gone.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        let files = self.files();
        match std::fs::write(self.dir().join(files.request), files.thaw) {
            Err(error) if is_gone(&error) => Ok(()),
            result => result,
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        let dir = self.dir();
        (self.files().is_frozen)(&dir) || matches!(dir.try_exists(), Ok(false))
    }

    /// Thaws the cgroup, moves every process back and removes it.
    ///
    /// # Errors
    /// When it cannot be thawed, or processes cannot be moved. A cgroup that cannot be removed,
    /// because one of its processes has made cgroups of its own in it, is no error: nothing is
    /// paused then.
    pub(crate) fn thaw_and_remove(&self) -> io::Result<()> {
        self.thaw_and_remove_below(Path::new("/"))
    }

    fn thaw_and_remove_below(&self, root: &Path) -> io::Result<()> {
        if !self.dir().try_exists()? {
            return Ok(());
        }
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
        let procs = match std::fs::read_to_string(self.dir().join("cgroup.procs")) {
            Err(error) if is_gone(&error) => return Ok(0),
            text => text?,
        };
        for pid in procs.lines().filter_map(|line| line.parse().ok()) {
            let process = ProcessHandle::open_current(root, pid).map_err(|error| error.errno())?;
            // A number that was given to a stranger meanwhile is not in here.
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
            match std::fs::remove_dir(self.dir()) {
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
    fn version_2_is_frozen_when_its_events_say_so() {
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
    fn version_1_is_frozen_only_beyond_freezing() {
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
    fn what_is_gone_is_neither_frozen_nor_in_the_way() {
        let (_dir, cgroup) = cgroup(CgroupVersion::V2);
        fs::remove_dir(cgroup.dir()).unwrap();
        assert!(cgroup.is_frozen());
        cgroup.thaw().unwrap();
        cgroup.thaw_and_remove().unwrap();
    }

    #[test]
    fn processes_go_back_to_where_they_came_from() {
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
}
