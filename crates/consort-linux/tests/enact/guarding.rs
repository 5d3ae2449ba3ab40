//! The guardian: apart from its owner, replaced when it dies, and enough alone.

use super::support::{
    apart, files_in, first_two, has_two_pus, only, own_pus, part, set_mask, sleeper, spawn, start,
    text, wait_for,
};
use consort_linux::enact::{GuardianHealth, ThreadWish, recover_stale};
use libtest_mimic::{Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("guarding::a_dropped_owner_is_restored", dropped),
        Trial::test(
            "guarding::signals_to_the_owners_group_spare_the_guardian",
            signals,
        ),
        Trial::test(
            "guarding::it_holds_nothing_but_socket_journal_and_the_end_of_its_run",
            descriptors,
        ),
        Trial::test(
            "guarding::run_that_ends_without_descriptors_is_restored",
            short,
        ),
        Trial::test(
            "guarding::a_killed_guardian_is_replaced_with_the_whole_state",
            replaced,
        ),
        Trial::test(
            "guarding::a_deleted_folder_does_not_keep_it_from_restoring",
            folderless,
        ),
        Trial::test("guarding::with_both_killed_the_next_start_restores", both),
        Trial::test("guarding::silent_owner_is_restored_and_resumes", silent),
        Trial::test(
            "guarding::mask_changed_during_silence_is_respected",
            changed_meanwhile,
        ),
        Trial::test(
            "guarding::mask_of_a_killed_run_is_no_original",
            recovered_late,
        ),
        Trial::test(
            "guarding::a_grown_journal_is_rewritten_without_a_gap",
            rewritten,
        ),
    ]
}

fn dropped() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    let one = only(first_two()[0]);
    enactor.adopt(program.thread(), own_pus())?;
    let report = enactor.apply(&[(program.thread(), ThreadWish::Only(one.clone()))]);
    assert_eq!(report.written, [(program.thread(), one)]);
    drop(enactor);
    wait_for("the guardian", || files_in(dir.path()) == 0);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}

fn signals() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let mut enactor = start(dir.path());
    let guardian = Pid::from_raw(enactor.guardian_pid().cast_signed());
    assert_eq!(getsid(Some(guardian))?, guardian);
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGPIPE,
    ] {
        kill(guardian, signal)?;
    }
    assert!(matches!(enactor.ensure_guardian(), GuardianHealth::Alive));
    assert!(enactor.close().complete);
    assert!(
        kill(guardian, None).is_err(),
        "the guardian outlives its run"
    );
    assert_eq!(files_in(dir.path()), 0);
    Ok(())
}

fn descriptors() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let enactor = start(dir.path());
    let proc = std::path::PathBuf::from(format!("/proc/{}", enactor.guardian_pid()));
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(proc.join("fd"))? {
        let target = std::fs::read_link(entry?.path())?;
        targets.push(target.to_string_lossy().into_owned());
    }
    let journal = enactor.journal_path().to_string_lossy().into_owned();
    let waits = "anon_inode:[pidfd]"; // for the end of its run
    let own = |t: &String| *t == journal || *t == waits || t.starts_with("socket:");
    assert!(targets.iter().all(own), "{targets:?}");
    assert_eq!(std::fs::read_link(proc.join("cwd"))?.to_str(), Some("/"));
    let status = std::fs::read_to_string(proc.join("status"))?;
    let memory = status
        .lines()
        .filter(|l| l.starts_with("Rss") || l.starts_with("VmRSS"));
    println!("guardian: {}", memory.collect::<Vec<_>>().join(", "));
    Ok(())
}

fn short() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let args = [dir.path().as_os_str(), &text(program.pid())];
    let mut owner = spawn(apart(&mut part("short", &args)));
    assert!(owner.0.wait()?.success());
    wait_for("the guardian", || files_in(dir.path()) == 0);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}

fn replaced() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    let first = enactor.guardian_pid();
    let [a, b] = first_two();
    enactor.apply(&[(program.thread(), ThreadWish::Only(only(a)))]);
    kill(Pid::from_raw(first.cast_signed()), Signal::SIGKILL)?;
    wait_for("the end of the guardian", || {
        matches!(enactor.ensure_guardian(), GuardianHealth::Replaced)
    });
    assert_ne!(enactor.guardian_pid(), first);
    let report = enactor.apply(&[(program.thread(), ThreadWish::Only(only(b)))]);
    assert!(matches!(report.guardian, GuardianHealth::Alive));
    drop(enactor);
    wait_for("the second guardian", || files_in(dir.path()) == 0);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}

fn folderless() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    enactor.apply(&[(program.thread(), ThreadWish::Only(only(first_two()[0])))]);
    assert_ne!(program.mask(), own_pus());
    dir.close()?;
    drop(enactor);
    wait_for("the guardian", || program.mask() == own_pus());
    Ok(())
}

fn both() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    let one = only(first_two()[0]);
    enactor.apply(&[(program.thread(), ThreadWish::Only(one.clone()))]);
    let dirs = [dir.path().to_owned()];
    assert_eq!(recover_stale(&dirs).in_use, 1);
    kill(
        Pid::from_raw(enactor.guardian_pid().cast_signed()),
        Signal::SIGKILL,
    )?;
    drop(enactor);
    wait_for("the lock", || recover_stale(&dirs).restored.len() == 1);
    assert_eq!((program.mask(), files_in(dir.path())), (own_pus(), 0));
    Ok(())
}

fn silent() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    let one = only(first_two()[0]);
    let plan = [(program.thread(), ThreadWish::Only(one.clone()))];
    enactor.send_heartbeat();
    enactor.apply(&plan);
    assert_eq!(program.mask(), one);
    // Twice: the guardian stays, and is silent itself until the next beat.
    for _ in 0..2 {
        wait_for("the guardian", || program.mask() == own_pus());
        let report = enactor.apply(&plan);
        assert_eq!(report.released, [], "the guardian's write is no stranger's");
        assert_eq!(program.mask(), one);
        assert!(enactor.take_interruption());
        assert!(!enactor.take_interruption());
        enactor.send_heartbeat();
    }
    assert!(enactor.close().complete);
    assert_eq!((program.mask(), files_in(dir.path())), (own_pus(), 0));
    Ok(())
}

fn changed_meanwhile() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    let [a, b] = first_two();
    let plan = [(program.thread(), ThreadWish::Only(only(a)))];
    enactor.send_heartbeat();
    enactor.apply(&plan);
    wait_for("the guardian", || program.mask() == own_pus());
    set_mask(program.pid(), &only(b));
    let report = enactor.apply(&plan);
    assert_eq!(report.released, [(program.thread(), only(b))]);
    assert!(enactor.close().complete);
    assert_eq!(program.mask(), only(b));
    Ok(())
}

/// A run and its guardian are killed after another run has taken the same thread in, whose mask it
/// takes for the original one.
fn recovered_late() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (first_dir, dir, program) = (tempfile::tempdir()?, tempfile::tempdir()?, sleeper());
    let [a, b] = first_two();
    let mut first = start(first_dir.path());
    first.adopt(program.thread(), own_pus())?;
    first.apply(&[(program.thread(), ThreadWish::Only(only(a)))]);
    let mut second = start(dir.path());
    second.adopt(program.thread(), only(a))?;
    let guardian = Pid::from_raw(first.guardian_pid().cast_signed());
    kill(guardian, Signal::SIGKILL)?;
    drop(first);
    let dirs = [first_dir.path().to_owned()];
    wait_for("the journal", || {
        second.recover_from(&dirs).restored.len() == 1
    });
    assert_eq!(program.mask(), own_pus());
    let report = second.apply(&[(program.thread(), ThreadWish::Only(only(b)))]);
    assert_eq!(report.written, [(program.thread(), only(b))]);
    assert!(second.close().complete);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}

fn rewritten() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    let plan = [(program.thread(), ThreadWish::Only(only(first_two()[0])))];
    enactor.apply(&plan);
    let path = enactor.journal_path();
    while path.metadata()?.len() < 1 << 20 {
        enactor.note_paused(u32::MAX, 1)?;
        enactor.note_resumed(u32::MAX, 1)?;
    }
    let first = enactor.guardian_pid();
    assert_eq!(enactor.apply(&plan).unchanged, 1);
    assert!(path.metadata()?.len() < 1000);
    assert_ne!(enactor.guardian_pid(), first);
    assert_ne!(program.mask(), own_pus());
    drop(enactor);
    wait_for("the guardian", || files_in(dir.path()) == 0);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}
