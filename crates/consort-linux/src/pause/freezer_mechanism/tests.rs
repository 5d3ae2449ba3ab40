//! Both freezers on a made-up host: the files that they write, and the order.

use super::super::tree::tree;
use super::*;
use crate::proc::{process, thread_dir};
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
        let members = tree(self.dir.path(), &BTreeSet::from([100])).unwrap();
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
fn each_process_is_frozen_below_the_cgroup_that_it_was_in() {
    let (one, two) = (CgroupVersion::V1, CgroupVersion::V2);
    check_held(one, "freezer", "freezer.state", ["FROZEN", "THAWED"]);
    check_held(two, "unified", "cgroup.freeze", ["1", "0"]);
}

#[test]
fn a_program_goes_on_only_after_all_of_it_stood_still() {
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
fn nothing_is_made_that_is_not_journalled() {
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
fn threads_in_different_cgroups_are_not_torn_from_them() {
    let mut host = Host::new(CgroupVersion::V1);
    host.put(100, 102, "/other");
    assert_eq!(
        host.refusal(),
        "threads of process 100 are in different cgroups"
    );
}

#[test]
fn what_another_consort_holds_is_left_to_it() {
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
fn a_cgroup_that_the_host_does_not_allow_is_named() {
    let mut host = Host::new(CgroupVersion::V2);
    fs::remove_dir(host.dir.path().join("cg/unified/other")).unwrap();
    let why = host.refusal();
    assert!(
        why.starts_with("cannot make ") && why.contains("/other/consort-"),
        "{why}"
    );
}

#[test]
fn cgroups_that_are_gone_are_given_up() {
    let mut host = Host::new(CgroupVersion::V2);
    host.hold().unwrap();
    for home in ["job", "other"] {
        let dir = host.dir.path().join("cg/unified").join(home);
        fs::remove_dir_all(dir.join("consort-7-8-9-100")).unwrap();
    }
    host.frozen.restore_processes(&mut host.notes).unwrap();
    assert_eq!(host.notes.gone, host.notes.made);
}
