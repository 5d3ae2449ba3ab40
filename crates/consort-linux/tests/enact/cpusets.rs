//! A cpuset that shrinks and grows below managed threads.
//!
//! Needs root and a writable version 1 cpuset hierarchy.

use super::support::{first_two, has_two_pus, only, own_pus, sleeper, start};
use crate::skip::skipped;
use consort_linux::enact::{AdoptError, Refusal, ThreadState, ThreadWish};
use libtest_mimic::{Failed, Trial};
use std::path::PathBuf;

const HIERARCHY: &str = "/sys/fs/cgroup/cpuset";

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "cpusets::a_mask_is_asserted_again_after_a_change",
            shrink_and_grow,
        ),
        Trial::test("cpusets::an_exclusive_one_is_told", exclusive),
        Trial::test(
            "cpusets::restoration_follows_the_cpuset",
            restore_in_smaller,
        ),
        Trial::test(
            "cpusets::a_free_thread_in_a_smaller_one_was_changed_by_nobody",
            free_in_smaller,
        ),
    ]
}

/// A cpuset of its own, removed in the end.
struct Cpuset(PathBuf);

impl Cpuset {
    fn make(name: &str) -> Option<Self> {
        let path = PathBuf::from(HIERARCHY).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        let set = Self(path);
        set.write("cpuset.mems", "0")?;
        set.allow(&own_pus().to_string())?;
        Some(set)
    }

    fn write(&self, file: &str, text: &str) -> Option<()> {
        std::fs::write(self.0.join(file), text).ok()
    }

    fn allow(&self, pus: &str) -> Option<()> {
        self.write("cpuset.cpus", pus)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let members = std::fs::read_to_string(self.0.join("tasks")).unwrap_or_default();
        for tid in members.lines() {
            let _ = std::fs::write(PathBuf::from(HIERARCHY).join("tasks"), tid);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A cpuset, or a word on why there is none.
fn cpuset(name: &str) -> Option<Cpuset> {
    if !has_two_pus() {
        return None;
    }
    let set = Cpuset::make(name);
    if set.is_none() {
        skipped(format!(
            "no writable version 1 cpuset hierarchy at {HIERARCHY}"
        ));
    }
    set
}

fn exclusive() -> Result<(), Failed> {
    let Some(set) = cpuset("consort-exclusive") else {
        return Ok(());
    };
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    set.write("tasks", &program.pid().to_string())
        .ok_or("cannot join")?;
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    if set.write("cpuset.cpu_exclusive", "1").is_none() {
        skipped("no exclusive cpuset can be made beside others");
        return Ok(());
    }
    let refused = enactor.adopt(thread, own_pus()).unwrap_err();
    assert!(
        matches!(&refused, AdoptError::Exclusive(by) if *by == set.0),
        "{refused}"
    );
    assert_eq!(enactor.state(thread), ThreadState::Unmanaged);
    // The same cpuset as Consort's own is nobody else's.
    let own = std::process::id().to_string();
    set.write("tasks", &own).ok_or("cannot join")?;
    enactor.adopt(thread, own_pus())?;
    Ok(())
}

fn shrink_and_grow() -> Result<(), Failed> {
    let Some(set) = cpuset("consort-shift") else {
        return Ok(());
    };
    let (dir, program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    set.write("tasks", &program.pid().to_string())
        .ok_or("cannot join")?;
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    let plan = [(thread, ThreadWish::Only(only(b)))];
    assert_eq!(enactor.apply(&plan).written, [(thread, only(b))]);

    set.allow(&a.to_string()).ok_or("cannot shrink")?;
    let report = enactor.apply(&plan);
    assert_eq!(
        (&report.shifted[..], report.released.len()),
        (&[thread][..], 0)
    );
    assert_eq!(report.refused, [(thread, Refusal::NoPuLeft)]);
    assert_eq!(enactor.state(thread), ThreadState::Free);

    assert_eq!(enactor.reread_cpusets(&[thread]), [(thread, only(a))]);

    set.allow(&own_pus().to_string()).ok_or("cannot grow")?;
    assert_eq!(enactor.reread_cpusets(&[thread]), [(thread, own_pus())]);
    let report = enactor.apply(&plan);
    assert_eq!(report.written, [(thread, only(b))], "{report:?}");
    assert!(enactor.close().complete);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}

fn free_in_smaller() -> Result<(), Failed> {
    let Some(set) = cpuset("consort-free") else {
        return Ok(());
    };
    let (dir, program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    set.write("tasks", &program.pid().to_string())
        .ok_or("cannot join")?;
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    let plan = [(thread, ThreadWish::Only(only(b)))];
    set.allow(&a.to_string()).ok_or("cannot shrink")?;
    for quantum in 0..3 {
        let report = enactor.apply(&plan);
        assert_eq!(report.released, [], "quantum {quantum}");
        assert_eq!(report.refused, [(thread, Refusal::NoPuLeft)]);
    }
    set.allow(&own_pus().to_string()).ok_or("cannot grow")?;
    assert_eq!(enactor.apply(&plan).written, [(thread, only(b))]);
    assert!(enactor.close().complete);
    Ok(())
}

fn restore_in_smaller() -> Result<(), Failed> {
    let Some(set) = cpuset("consort-restore") else {
        return Ok(());
    };
    let (dir, program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    set.write("tasks", &program.pid().to_string())
        .ok_or("cannot join")?;
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    enactor.apply(&[(thread, ThreadWish::Only(only(b)))]);
    set.allow(&a.to_string()).ok_or("cannot shrink")?;
    assert!(enactor.close().complete);
    assert_eq!(program.mask(), only(a));
    // What the kernel remembers must be the original mask, not the written one.
    set.allow(&own_pus().to_string()).ok_or("cannot grow")?;
    assert_eq!(program.mask(), own_pus());
    Ok(())
}
