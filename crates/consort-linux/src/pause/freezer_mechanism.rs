//! Pausing by a freezer, of either version of cgroups.
//!
//! The processes of a program are moved once, into cgroups made for them. From then on pausing and
//! resuming is one write for each cgroup, and children are born inside. A process that was stopped
//! before stays stopped, because the kernel keeps stopping and freezing apart.

use super::freezer::{FreezerCgroup, PREFIX, freezer_hierarchy};
use super::{HoldError, PauseJournal, PauseMechanism};
use crate::cgroup::{CgroupVersion, Hierarchy, cgroups_of};
use crate::enact::JournalRecord;
use crate::proc::{ProcError, ProcessHandle, ProgramProcesses, threads_of, unless_gone};
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
    /// Processes that were moved or found inside, each with its start, clock ticks since boot.
    inside: BTreeMap<u32, u64>,
    frozen: bool,
}

impl FreezerMechanism {
    pub(super) fn new(root: &Path, version: CgroupVersion, program: ProgramId, run: &str) -> Self {
        Self {
            root: root.to_owned(),
            version,
            hierarchy: freezer_hierarchy(root, version),
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
        // A child of a held process is born inside.
        if home.ends_with(&self.name) {
            return Ok(true);
        }
        let cgroup = self.cgroup_below(home, pid)?;
        if !self.cgroups.contains(&cgroup) {
            // Journalled before it exists, so that the guardian finds every cgroup that was made.
            journal.record_ahead(&[JournalRecord::Freezer(cgroup.clone())])?;
            // Known even if it cannot be made, so that it is removed in the end.
            self.cgroups.insert(cgroup.clone());
            let created = cgroup.create();
            created.map_err(|e| hold_error("make", &cgroup, &e))?;
            self.frozen = false;
        }
        let added = cgroup.add_process(&self.root, &process);
        added.map_err(|error| hold_error("move processes to", &cgroup, &error))
    }

    /// Directory of a process's cgroup; `None` if the process is gone.
    fn find_home(&self, pid: u32) -> Result<Option<PathBuf>, HoldError> {
        let Some(hierarchy) = &self.hierarchy else {
            return Err(HoldError::Unusable("not mounted".into()));
        };
        let tids = unless_gone(threads_of(&self.root, pid)).map_err(HoldError::Unseen)?;
        let mut texts = Vec::new();
        for tid in tids.unwrap_or_default() {
            // An unread thread may be in another cgroup, which it would lose: so an error ends this.
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
}

impl PauseMechanism for FreezerMechanism {
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError> {
        let mut added = 0;
        for (&pid, stat) in members {
            let start = stat.start_ticks;
            if self.inside.get(&pid) != Some(&start) && self.add_process(journal, pid, start)? {
                self.inside.insert(pid, start);
                added += 1;
            }
        }
        if !self.frozen {
            for cgroup in &self.cgroups {
                let frozen = cgroup.freeze();
                frozen.map_err(|e| hold_error("freeze", cgroup, &e))?;
            }
            self.frozen = true;
        }
        Ok(added)
    }

    fn is_still(&self) -> bool {
        self.cgroups.iter().all(FreezerCgroup::is_frozen)
    }

    fn resume_all(&mut self, _: &mut dyn PauseJournal) -> Result<(), String> {
        self.frozen = false;
        // All cgroups are thawed before an error is looked for: one that fails must not keep the
        // others frozen.
        let thawed: Vec<_> = self.cgroups.iter().map(|c| (c, c.thaw())).collect();
        first_failure(thawed)
    }

    fn restore_processes(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        let restored = self.cgroups.iter().map(|c| (c, c.thaw_and_remove()));
        let (done, failed): (Vec<_>, Vec<_>) = restored.partition(|(_, result)| result.is_ok());
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
    let transient = ProcError::io(&dir, error);
    if transient.is_transient() {
        return HoldError::Unseen(transient);
    }
    HoldError::Unusable(format!("cannot {action} {}: {error}", dir.display()))
}

/// Returns the first failure, as a sentence that names the cgroup.
fn first_failure(results: Vec<(&FreezerCgroup, io::Result<()>)>) -> Result<(), String> {
    for (cgroup, result) in results {
        result.map_err(|error| format!("cgroup {}: {error}", cgroup.dir().display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::{process, read_process_tree, thread_dir};
    use std::fs;

    const MOUNTS: &str = "1 1 0:1 / /cg/freezer rw - cgroup cgroup rw,freezer\n\
                          2 1 0:2 / /cg/unified rw - cgroup2 cgroup2 rw\n";
    const PROGRAM: ProgramId = ProgramId(100);

    /// Checks, as each cgroup is announced, that it does not exist yet.
    #[derive(Default)]
    struct Notes {
        made: Vec<FreezerCgroup>,
        gone: Vec<FreezerCgroup>,
        refuses: bool,
    }

    impl PauseJournal for Notes {
        fn journal_run_id(&self) -> String {
            "7-8-9".into()
        }

        fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError> {
            if self.refuses {
                return Err(HoldError::NoGuardian);
            }
            for record in records {
                let JournalRecord::Freezer(cgroup) = record else {
                    panic!("{record:?}");
                };
                assert!(!cgroup.dir().exists(), "made before it was journalled");
                self.made.push(cgroup.clone());
            }
            Ok(())
        }

        fn record_undone(&mut self, records: &[JournalRecord]) {
            for record in records {
                let JournalRecord::FreezerGone(cgroup) = record else {
                    panic!("{record:?}");
                };
                self.gone.push(cgroup.clone());
            }
        }
    }

    struct Host {
        dir: tempfile::TempDir,
        notes: Notes,
        frozen: FreezerMechanism,
    }

    impl Host {
        /// Process 100 with two threads in the cgroup `/job`, and its child 101 in `/other`.
        fn new(version: CgroupVersion) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("proc/self")).unwrap();
            fs::write(dir.path().join("proc/self/mountinfo"), MOUNTS).unwrap();
            for home in [
                "freezer/job",
                "freezer/other",
                "unified/job",
                "unified/other",
            ] {
                fs::create_dir_all(dir.path().join("cg").join(home)).unwrap();
            }
            process(dir.path(), 100, 1, &[(100, "x", 1), (102, "x", 1)]);
            process(dir.path(), 101, 100, &[(101, "x", 1)]);
            let frozen = FreezerMechanism::new(dir.path(), version, PROGRAM, "7-8-9");
            let host = Self {
                dir,
                notes: Notes::default(),
                frozen,
            };
            host.put(100, 100, "/job");
            host.put(100, 102, "/job");
            host.put(101, 101, "/other");
            host
        }

        fn put(&self, pid: u32, tid: u32, cgroup: &str) {
            let path = thread_dir(self.dir.path(), pid, tid).join("cgroup");
            fs::write(path, format!("6:freezer:{cgroup}\n0::{cgroup}\n")).unwrap();
        }

        fn hold(&mut self) -> Result<usize, HoldError> {
            let members = read_process_tree(self.dir.path(), &BTreeSet::from([100])).unwrap();
            self.frozen.stop_members(&mut self.notes, &members)
        }

        fn file(&self, path: &str) -> String {
            let path = self.dir.path().join("cg").join(path);
            fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        }

        fn refusal(&mut self) -> String {
            match self.hold() {
                Err(HoldError::Unusable(why)) => why,
                other => panic!("{other:?}"),
            }
        }
    }

    fn check_held(version: CgroupVersion, tree: &str, request: &str, words: [&str; 2]) {
        let mut host = Host::new(version);
        assert_eq!(host.hold().unwrap(), 2);
        assert_eq!(host.notes.made.len(), 2);
        for (home, pid) in [("job", "100"), ("other", "101")] {
            let cgroup = format!("{tree}/{home}/consort-7-8-9-100");
            assert_eq!(host.file(&format!("{cgroup}/cgroup.procs")), pid);
            assert_eq!(host.file(&format!("{cgroup}/{request}")), words[0]);
        }
        assert_eq!(host.hold().unwrap(), 0);
        host.frozen.resume_all(&mut host.notes).unwrap();
        for home in ["job", "other"] {
            let request = format!("{tree}/{home}/consort-7-8-9-100/{request}");
            assert_eq!(host.file(&request), words[1]);
        }
    }

    #[test]
    fn process_is_frozen_below_its_own_cgroup() {
        let (one, two) = (CgroupVersion::V1, CgroupVersion::V2);
        check_held(one, "freezer", "freezer.state", ["FROZEN", "THAWED"]);
        check_held(two, "unified", "cgroup.freeze", ["1", "0"]);
    }

    #[test]
    fn one_unfrozen_cgroup_is_not_still() {
        let mut host = Host::new(CgroupVersion::V2);
        host.hold().unwrap();
        let events = |host: &Host, home: &str, text: &str| {
            let dir = host.dir.path().join("cg/unified").join(home);
            fs::write(dir.join("consort-7-8-9-100/cgroup.events"), text).unwrap();
        };
        events(&host, "job", "frozen 1\n");
        events(&host, "other", "frozen 0\n");
        assert!(!host.frozen.is_still());
        events(&host, "other", "frozen 1\n");
        assert!(host.frozen.is_still());
    }

    #[test]
    fn no_cgroup_is_made_before_its_record() {
        let mut host = Host::new(CgroupVersion::V1);
        host.notes.refuses = true;
        assert!(matches!(host.hold(), Err(HoldError::NoGuardian)));
        assert_eq!(
            fs::read_dir(host.dir.path().join("cg/freezer/job"))
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn threads_in_different_cgroups_are_refused() {
        let mut host = Host::new(CgroupVersion::V1);
        host.put(100, 102, "/other");
        assert_eq!(
            host.refusal(),
            "threads of process 100 are in different cgroups"
        );
    }

    #[test]
    fn process_of_another_consort_is_refused() {
        let mut host = Host::new(CgroupVersion::V2);
        host.put(101, 101, "/job/consort-1-1-0-55");
        assert_eq!(host.refusal(), "process 101 is held by another consort");
    }

    #[test]
    fn threaded_and_invisible_cgroups_are_refused() {
        let mut host = Host::new(CgroupVersion::V2);
        fs::write(
            host.dir.path().join("cg/unified/other/cgroup.type"),
            "threaded\n",
        )
        .unwrap();
        assert_eq!(host.refusal(), "process 101 is in a threaded cgroup");
        host.put(101, 101, "/../elsewhere");
        assert_eq!(host.refusal(), "the cgroup of process 101 is not visible");
    }

    #[test]
    fn cgroup_that_cannot_be_made_is_named() {
        let mut host = Host::new(CgroupVersion::V2);
        fs::remove_dir(host.dir.path().join("cg/unified/other")).unwrap();
        let why = host.refusal();
        assert!(
            why.starts_with("cannot make ") && why.contains("/other/consort-"),
            "{why}"
        );
    }

    #[test]
    fn removed_cgroups_are_recorded_as_gone() {
        let mut host = Host::new(CgroupVersion::V2);
        host.hold().unwrap();
        for home in ["job", "other"] {
            let dir = host.dir.path().join("cg/unified").join(home);
            fs::remove_dir_all(dir.join("consort-7-8-9-100")).unwrap();
        }
        host.frozen.restore_processes(&mut host.notes).unwrap();
        assert_eq!(host.notes.gone, host.notes.made);
    }
}
