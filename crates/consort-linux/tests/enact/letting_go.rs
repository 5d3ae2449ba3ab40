//! Masks that are not Consort's to restore: others' changes, own pins, heirs, reused tids.

use super::support::{
    Process, apart, busy, first_two, has_two_pus, mask, only, own_pus, part, set_mask, sleeper,
    spawn, start, tasks, text, wait_for,
};
use crate::skip::skipped;
use consort_core::ThreadId;
use consort_linux::enact::{AdoptError, ChildStatus, Refusal, ThreadState, ThreadWish, identify};
use libtest_mimic::{Failed, Trial};
use std::io::Write;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "letting_go::a_thread_that_others_move_is_released",
            released,
        ),
        Trial::test(
            "letting_go::between_looks_others_changes_are_seen_before_a_write",
            between_looks,
        ),
        Trial::test(
            "letting_go::a_thread_that_pinned_itself_is_foreign",
            foreign,
        ),
        Trial::test("letting_go::an_heir_of_a_written_mask_is_reset", heir),
        Trial::test("letting_go::only_changes_are_written", minimal),
        Trial::test("letting_go::a_program_that_execs_from_a_thread_stays", exec),
        Trial::test("letting_go::an_exited_thread_is_forgotten", exited),
        Trial::test("letting_go::a_reused_tid_is_not_touched", reused),
    ]
}

fn released() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let (mut enactor, [a, b]) = (start(dir.path()), first_two());
    let thread = program.thread();
    enactor.adopt(thread, own_pus())?;
    enactor.apply(&[(thread, ThreadWish::Only(only(a)))]);
    set_mask(thread.tid, &only(b));
    let report = enactor.apply(&[(thread, ThreadWish::Only(only(a)))]);
    assert_eq!(report.released, [(thread, only(b))]);
    assert_eq!(enactor.state(thread), ThreadState::Released);
    let again = enactor.apply(&[(thread, ThreadWish::Unrestricted)]);
    assert_eq!(again.refused, [(thread, Refusal::NotManaged)]);
    let adopted = enactor.adopt(thread, own_pus());
    assert!(matches!(adopted, Err(AdoptError::Released(_))));
    let report = enactor.close();
    assert!(report.complete && report.released == 1, "{report:?}");
    assert_eq!(program.mask(), only(b));
    Ok(())
}

fn between_looks() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let (mut enactor, [a, b]) = (start(dir.path()), first_two());
    let thread = program.thread();
    enactor.set_mask_check_interval(Duration::from_secs(3600));
    enactor.adopt(thread, own_pus())?;
    let kept = [(thread, ThreadWish::Only(only(a)))];
    enactor.apply(&kept);
    set_mask(thread.tid, &only(b));
    let steady = enactor.apply(&kept);
    assert_eq!((steady.unchanged, &steady.released[..]), (1, &[][..]));
    let wanted = ThreadWish::Only(own_pus());
    let report = enactor.apply(&[(thread, wanted)]);
    assert_eq!(report.released, [(thread, only(b))]);
    assert_eq!(program.mask(), only(b));
    Ok(())
}

fn foreign() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, [a, b]) = (tempfile::tempdir()?, first_two());
    let program = spawn(apart(&mut part("pin", &[&text(b)])));
    let pinned = || {
        tasks(program.pid())
            .into_iter()
            .find(|t| mask(t.tid) == only(b))
    };
    wait_for("the thread to pin itself", || pinned().is_some());
    let thread = pinned().unwrap();
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    enactor.apply(&[(program.thread(), ThreadWish::Only(only(a)))]);
    let status = enactor.adopt_child(thread, program.thread())?;
    assert_eq!(status, ChildStatus::Foreign(only(b)));
    // From now on the tree has that very mask written, and still it stays.
    enactor.apply(&[(program.thread(), ThreadWish::Only(only(b)))]);
    assert!(enactor.restore_all().complete);
    assert_eq!((program.mask(), mask(thread.tid)), (own_pus(), only(b)));
    enactor.adopt(thread, own_pus())?;
    assert_eq!(enactor.state(thread), ThreadState::Free);
    enactor.close();
    Ok(())
}

fn heir() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program, [a, _]) = (tempfile::tempdir()?, busy(), first_two());
    // Of a program just started only the leader may be there; it has no heirs.
    wait_for("threads that start others", || {
        tasks(program.pid()).len() > 3
    });
    let mut enactor = start(dir.path());
    for thread in tasks(program.pid()) {
        // Short-lived threads may be gone by now.
        let _ = enactor.adopt(thread, own_pus());
    }
    let plan: Vec<_> = enactor
        .threads()
        .map(|t| (t, ThreadWish::Only(only(a))))
        .collect();
    enactor.apply(&plan);
    let leader = program.thread();
    let mut resets = 0;
    wait_for("an heir", || {
        for thread in tasks(program.pid()) {
            resets += u32::from(check_heir(&mut enactor, thread, leader));
        }
        resets > 0
    });
    assert!(enactor.close().complete);
    assert_eq!(super::support::astray(program.pid()), []);
    Ok(())
}

/// Adopts a child; returns true if it was put back, which gives it the original mask and leaves it
/// free.
fn check_heir(enactor: &mut consort_linux::enact::Enactor, child: ThreadId, of: ThreadId) -> bool {
    let reset = matches!(enactor.adopt_child(child, of), Ok(ChildStatus::Reset));
    if reset {
        assert_eq!(enactor.state(child), ThreadState::Free);
        assert!(
            mask(child.tid) == own_pus() || identify("/".as_ref(), child.pid, child.tid).is_none()
        );
    }
    reset
}

fn minimal() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    set_mask(thread.tid, &only(a));
    enactor.adopt(thread, only(a))?;
    let free = enactor.apply(&[(thread, ThreadWish::Unrestricted)]);
    let all = enactor.apply(&[(thread, ThreadWish::Only(own_pus()))]);
    assert_eq!((free.unchanged, all.unchanged), (1, 1));
    let outside = enactor.apply(&[(thread, ThreadWish::Only(only(b)))]);
    assert_eq!(outside.refused, [(thread, Refusal::NoPuLeft)]);
    assert_eq!(enactor.state(thread), ThreadState::Free);
    let report = enactor.close();
    assert!(report.complete && report.restored == 0, "{report:?}");
    assert_eq!(program.mask(), only(a));
    Ok(())
}

fn exec() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, [a, b]) = (tempfile::tempdir()?, first_two());
    let mut program = spawn(apart(&mut part("exec", &[])));
    wait_for("the second thread", || tasks(program.pid()).len() == 2);
    let (mut enactor, leader) = (start(dir.path()), program.thread());
    let wanted = |t: &ThreadId| if *t == leader { only(a) } else { only(b) };
    let threads = tasks(program.pid());
    for thread in &threads {
        enactor.adopt(*thread, own_pus())?;
    }
    let plan: Vec<_> = threads
        .iter()
        .map(|t| (*t, ThreadWish::Only(wanted(t))))
        .collect();
    assert_eq!(enactor.apply(&plan).written.len(), 2);
    program.0.stdin.take().unwrap().write_all(b"go\n")?;
    wait_for("the exec", || {
        program.mask() == only(b) && tasks(program.pid()).len() == 1
    });
    let report = enactor.apply(&plan);
    assert_eq!((report.released, report.shifted), (vec![], vec![leader]));
    assert_eq!(program.mask(), only(a));
    assert!(enactor.close().complete);
    assert_eq!(program.mask(), own_pus());
    Ok(())
}

fn exited() -> Result<(), Failed> {
    let (dir, mut program) = (tempfile::tempdir()?, sleeper());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    program.kill();
    let report = enactor.apply(&[(thread, ThreadWish::Only(only(first_two()[0])))]);
    assert_eq!((report.gone, report.refused), (1, vec![]));
    assert_eq!(enactor.state(thread), ThreadState::Unmanaged);
    let error = enactor.adopt(thread, own_pus()).unwrap_err();
    assert!(matches!(error, AdoptError::Gone(_)), "{error}");
    assert!(enactor.close().complete);
    Ok(())
}

/// A process with the given pid, made by telling the kernel which came last.
fn with_pid(pid: u32) -> Option<Process> {
    for _ in 0..200 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
        let child = spawn(apart(Command::new("sleep").arg("300")));
        if child.pid() == pid {
            return Some(child);
        }
    }
    None
}

fn reused() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, mut program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    enactor.apply(&[(thread, ThreadWish::Only(only(a)))]);
    program.kill();
    // The new thread must differ in its start time, which counts 10 ms.
    std::thread::sleep(Duration::from_millis(30));
    let Some(stranger) = with_pid(thread.tid) else {
        skipped("/proc/sys/kernel/ns_last_pid cannot be written, or the pid was taken");
        return Ok(());
    };
    set_mask(stranger.pid(), &only(a));
    let report = enactor.apply(&[(thread, ThreadWish::Only(only(b)))]);
    let report_gone = report.gone;
    let restored = enactor.close();
    assert_eq!(stranger.mask(), only(a));
    assert!(restored.complete && restored.restored == 0, "{restored:?}");
    // With the very mask that was written, only a write tells the two apart.
    assert_eq!(report_gone, 1);
    Ok(())
}
