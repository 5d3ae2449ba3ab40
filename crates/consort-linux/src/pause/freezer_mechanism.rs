//! Pausing by a freezer, of either version of cgroups.
//!
//! The processes of a program are moved, once, into cgroups made for them; from then on pausing
//! and resuming is one write each, and children are born inside. A process that was stopped before
//! stays so: stopping and freezing are apart.

use super::error::HoldError;
use super::freezer::{FreezerCgroup, PREFIX};
use super::freezer_files::controller;
use super::mechanism::PauseMechanism;
use super::pause_journal::PauseJournal;
use super::tree::ProgramProcesses;
use crate::cgroup::{CgroupVersion, Hierarchy, cgroups_of};
use crate::enact::JournalRecord;
use crate::proc::{ProcError, ProcessHandle, threads_of, unless_gone};
use crate::read;
use consort_core::ProgramId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// One program's processes in cgroups of their own.
#[derive(Debug)]
pub(super) struct FreezerMechanism {
    root: PathBuf,
    version: CgroupVersion,
    hierarchy: Option<Hierarchy>,
    /// Name of all its cgroups, made of the run's id and the program.
    name: String,
    cgroups: BTreeSet<FreezerCgroup>,
    /// Processes that were seen inside, each with its start, clock ticks since boot.
    inside: BTreeMap<u32, u64>,
    frozen: bool,
}

impl FreezerMechanism {
    pub(super) fn new(root: &Path, version: CgroupVersion, program: ProgramId, run: &str) -> Self {
        Self {
            root: root.to_owned(),
            version,
            hierarchy: Hierarchy::find(root, controller(version)),
            name: format!("{PREFIX}{run}-{program}"),
            cgroups: BTreeSet::new(),
            inside: BTreeMap::new(),
            frozen: false,
        }
    }

    /// Moves one process into a cgroup of the program; returns false if the process has ended.
    fn add_process(
        &mut self,
        journal: &mut dyn PauseJournal,
        pid: u32,
        start_ticks: u64,
    ) -> Result<bool, HoldError> {
        let process = ProcessHandle::open(&self.root, pid, start_ticks);
        let Some(process) = process.map_err(HoldError::Unseen)? else {
            return Ok(false);
        };
        let Some(home) = self.find_home(pid)? else {
            return Ok(false);
        };
        if home.ends_with(&self.name) {
            return Ok(true);
        }
        let cgroup = self.cgroup_below(home, pid)?;
        if !self.cgroups.contains(&cgroup) {
            journal.record_ahead(&[JournalRecord::Freezer(cgroup.clone())])?;
            self.cgroups.insert(cgroup.clone());
            cgroup
                .create()
                .map_err(|e| hold_error("make", &cgroup, &e))?;
            self.frozen = false;
        }
        let taken = cgroup.add_process(&self.root, &process);
        taken.map_err(|error| hold_error("move processes to", &cgroup, &error))
    }

    /// Directory of a process's cgroup; none when the process is gone.
    fn find_home(&self, pid: u32) -> Result<Option<PathBuf>, HoldError> {
        let Some(hierarchy) = &self.hierarchy else {
            return Err(HoldError::Unusable("not mounted".into()));
        };
        let tids = unless_gone(threads_of(&self.root, pid)).map_err(HoldError::Unseen)?;
        let mut texts = Vec::new();
        for tid in tids.unwrap_or_default() {
            // One that is left out may be in another cgroup, which it would lose.
            texts.extend(cgroups_of(&self.root, pid, tid).map_err(HoldError::Unseen)?);
        }
        let mut texts = texts.into_iter();
        let Some(first) = texts.next() else {
            return Ok(None);
        };
        let home = hierarchy.dir_of(&first);
        if texts.any(|text| hierarchy.dir_of(&text) != home) {
            let why = format!("threads of process {pid} are in different cgroups");
            return Err(HoldError::Unusable(why));
        }
        let outside = || HoldError::Unusable(format!("the cgroup of process {pid} is not visible"));
        home.map(Some).ok_or_else(outside)
    }

    fn cgroup_below(&self, home: PathBuf, pid: u32) -> Result<FreezerCgroup, HoldError> {
        let name = home.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with(PREFIX)) {
            let why = format!("process {pid} is held by another consort");
            return Err(HoldError::Unusable(why));
        }
        if read::text(&home.join("cgroup.type")).is_some_and(|kind| kind.contains("threaded")) {
            let why = format!("process {pid} is in a threaded cgroup");
            return Err(HoldError::Unusable(why));
        }
        Ok(FreezerCgroup {
            version: self.version,
            home,
            name: self.name.clone(),
        })
    }

    fn freeze(&mut self) -> Result<(), HoldError> {
        if !self.frozen {
            for cgroup in &self.cgroups {
                cgroup
                    .freeze()
                    .map_err(|e| hold_error("freeze", cgroup, &e))?;
            }
            self.frozen = true;
        }
        Ok(())
    }
}

impl PauseMechanism for FreezerMechanism {
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError> {
        let mut taken = 0;
        for (&pid, stat) in members {
            let start = stat.start_ticks;
            if self.inside.get(&pid) != Some(&start) && self.add_process(journal, pid, start)? {
                self.inside.insert(pid, start);
                taken += 1;
            }
        }
        self.freeze()?;
        Ok(taken)
    }

    fn is_still(&self) -> bool {
        self.cgroups.iter().all(FreezerCgroup::is_frozen)
    }

    fn resume_all(&mut self, _: &mut dyn PauseJournal) -> Result<(), String> {
        self.frozen = false;
        // All of them first: one that fails must not keep the others frozen.
        let thawed: Vec<_> = self.cgroups.iter().map(|c| (c, c.thaw())).collect();
        first_failure(thawed)
    }

    fn restore_processes(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        let given = self.cgroups.iter().map(|c| (c, c.thaw_and_remove()));
        let (done, failed): (Vec<_>, Vec<_>) = given.partition(|(_, result)| result.is_ok());
        let gone = done
            .iter()
            .map(|(c, _)| JournalRecord::FreezerGone((*c).clone()));
        journal.record_undone(&gone.collect::<Vec<_>>());
        first_failure(failed)
    }

    fn process_count(&self) -> usize {
        self.inside.len()
    }

    fn holds_children(&self) -> bool {
        true
    }

    fn knows(&self, pid: u32) -> bool {
        self.inside.contains_key(&pid)
    }
}

fn hold_error(action: &str, cgroup: &FreezerCgroup, error: &io::Error) -> HoldError {
    let dir = cgroup.dir();
    let passing = ProcError::io(&dir, error);
    if passing.is_transient() {
        return HoldError::Unseen(passing);
    }
    HoldError::Unusable(format!("cannot {action} {}: {error}", dir.display()))
}

/// The first failure, as a sentence that names the cgroup.
fn first_failure<'a>(
    results: impl IntoIterator<Item = (&'a FreezerCgroup, io::Result<()>)>,
) -> Result<(), String> {
    let mut results = results.into_iter();
    let failed = results.find_map(|(cgroup, result)| Some((cgroup, result.err()?)));
    failed.map_or(Ok(()), |(cgroup, error)| {
        Err(format!("cgroup {}: {error}", cgroup.dir().display()))
    })
}

#[cfg(test)]
#[path = "freezer_mechanism/tests.rs"]
mod tests;
