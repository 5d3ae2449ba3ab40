//! A cpuset of the test's own, in the version 1 hierarchy.

use super::Spinner;
use super::common::skipped;
use std::path::{Path, PathBuf};

const HIERARCHY: &str = "/sys/fs/cgroup/cpuset";

/// A cpuset that is removed when dropped.
pub struct Cpuset {
    folder: PathBuf,
    all: String,
}

impl Cpuset {
    /// Made with all CPUs of the hierarchy, or a word on why there is none.
    pub fn make(name: &str) -> Option<Self> {
        let made = Self::try_make(name);
        if made.is_none() {
            skipped("no writable version 1 cpuset hierarchy: no cpuset changes");
        }
        made
    }

    fn try_make(name: &str) -> Option<Self> {
        let of_all = |file| std::fs::read_to_string(Path::new(HIERARCHY).join(file)).ok();
        let folder = Path::new(HIERARCHY).join(format!("{name}-{}", std::process::id()));
        let (all, nodes) = (of_all("cpuset.cpus")?, of_all("cpuset.mems")?);
        std::fs::create_dir(&folder).ok()?;
        let set = Self { folder, all };
        set.write("cpuset.mems", &nodes)?;
        set.write("cpuset.cpus", &set.all)?;
        Some(set)
    }

    fn write(&self, file: &str, text: &str) -> Option<()> {
        std::fs::write(self.folder.join(file), text).ok()
    }

    pub fn take(&self, spinner: &Spinner) {
        self.write("tasks", &spinner.id()).unwrap();
    }

    /// Leaves it one CPU.
    pub fn shrink(&self, pu: usize) {
        self.write("cpuset.cpus", &pu.to_string()).unwrap();
    }

    /// Gives it all CPUs.
    pub fn grow(&self) {
        self.write("cpuset.cpus", &self.all).unwrap();
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let members = std::fs::read_to_string(self.folder.join("tasks")).unwrap_or_default();
        for thread in members.lines() {
            let _ = std::fs::write(Path::new(HIERARCHY).join("tasks"), thread);
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}
