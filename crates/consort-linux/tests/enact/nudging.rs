//! Nudges: threads are moved, and nobody sees a mask.

use super::support::{
    Process, apart, busy, files_in, first_two, has_two_pus, mask, only, own_pus, part, set_mask,
    sleeper, spawn, start, tasks, text, wait_for,
};
use crate::skip::skipped;
use consort_core::ThreadId;
use consort_linux::enact::{ThreadState, ThreadWish, recover_stale};
use libtest_mimic::{Failed, Trial};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("nudging::a_spinner_goes_where_it_is_nudged", moved),
        Trial::test("nudging::a_nudged_thread_is_free", free),
        Trial::test("nudging::a_pinned_thread_is_freed_by_a_nudge", unpinned),
        Trial::test(
            "nudging::a_nudged_thread_that_others_move_is_let_go",
            changed,
        ),
        Trial::test(
            "nudging::a_child_that_pins_itself_where_others_were_nudged_is_foreign",
            own_choice,
        ),
        Trial::test(
            "nudging::a_kill_between_narrowing_and_widening_is_repaired",
            killed_between,
        ),
    ]
}

/// The CPU that a thread is on: the 39th field of its `stat`.
fn pu_of(thread: ThreadId) -> u32 {
    let path = format!("/proc/{}/task/{}/stat", thread.pid, thread.tid);
    let stat = std::fs::read_to_string(path).unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    fields[36].parse().unwrap()
}

fn spinner() -> Process {
    spawn(apart(&mut part("spin", &[])))
}

fn moved() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program, [a, b]) = (tempfile::tempdir()?, spinner(), first_two());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    for pu in [a, b, a, b] {
        // The scheduler may take it away again at once where others are busy.
        wait_for("the thread to be where it was nudged", || {
            let report = enactor.apply(&[(thread, ThreadWish::Nudge(only(pu)))]);
            assert_eq!(report.nudged, [thread], "{report:?}");
            assert_eq!(program.mask(), own_pus());
            pu_of(thread) == pu
        });
    }
    enactor.close();
    Ok(())
}

fn free() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program, [a, _]) = (tempfile::tempdir()?, sleeper(), first_two());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    let report = enactor.apply(&[(thread, ThreadWish::Nudge(only(a)))]);
    assert_eq!(report.written, [(thread, own_pus())]);
    assert_eq!(enactor.state(thread), ThreadState::Free);
    // A place that is as wide as its own mask needs no nudge.
    let report = enactor.apply(&[(thread, ThreadWish::Nudge(own_pus()))]);
    assert_eq!((report.unchanged, report.nudged.len()), (1, 0));
    let report = enactor.close();
    assert!(report.complete && report.restored == 0, "{report:?}");
    Ok(())
}

fn unpinned() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    enactor.apply(&[(thread, ThreadWish::Only(only(a)))]);
    assert_eq!(program.mask(), only(a));
    enactor.apply(&[(thread, ThreadWish::Nudge(only(b)))]);
    assert_eq!(program.mask(), own_pus());
    assert_eq!(enactor.state(thread), ThreadState::Free);
    enactor.close();
    Ok(())
}

fn changed() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program, [a, b]) = (tempfile::tempdir()?, sleeper(), first_two());
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.adopt(thread, own_pus())?;
    enactor.apply(&[(thread, ThreadWish::Nudge(only(a)))]);
    set_mask(thread.tid, &only(b));
    let report = enactor.apply(&[(thread, ThreadWish::Nudge(only(a)))]);
    assert_eq!(report.released, [(thread, only(b))]);
    enactor.close();
    assert_eq!(program.mask(), only(b));
    Ok(())
}

/// Consort has nudged threads of the tree to the very CPU that a thread chooses later.
fn own_choice() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, [_, b]) = (tempfile::tempdir()?, first_two());
    let program = sleeper();
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    enactor.apply(&[(program.thread(), ThreadWish::Nudge(only(b)))]);
    // Births are told to the clock tick.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let child = spawn(apart(&mut part("pin", &[&text(b)])));
    let pinned = || {
        let threads = tasks(child.pid()).into_iter();
        threads.into_iter().find(|t| mask(t.tid) == only(b))
    };
    wait_for("the thread to pin itself", || pinned().is_some());
    let thread = pinned().unwrap();
    let status = enactor.adopt_child(thread, program.thread())?;
    assert_eq!(status, consort_linux::enact::ChildStatus::Foreign(only(b)));
    enactor.close();
    assert_eq!(mask(thread.tid), only(b));
    Ok(())
}

/// Kills an owner right after each of its first writes of masks: every second one falls between
/// the two writes of a nudge.
fn killed_between() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, busy());
    let mut caught = 0;
    for write in 1..=8 {
        let Some(narrowed) = kill_after_write(dir.path(), program.pid(), write) else {
            skipped("this process may not trace others");
            return Ok(());
        };
        caught += u32::from(narrowed);
        wait_for("the guardian to finish", || {
            recover_stale(&[dir.path().to_owned()]);
            files_in(dir.path()) == 0
        });
        assert_eq!(
            super::support::astray(program.pid()),
            [],
            "after write {write}"
        );
    }
    // Some of the threads live for a few milliseconds only.
    assert!(caught > 0, "no kill fell between two writes");
    println!("8 kills after a write of a mask, {caught} with a thread narrowed just then");
    Ok(())
}

/// Starts an owner that nudges, under trace, and kills it as it returns from its nth write of
/// another thread's mask. Returns true if a thread was narrowed then; none where tracing is not
/// allowed.
fn kill_after_write(dir: &std::path::Path, program: u32, nth: u32) -> Option<bool> {
    let args = [dir.as_os_str(), &text(program)];
    let mut owner = spawn(apart(&mut part("nudger", &args)));
    assert_eq!(owner.line(), "ready");
    let pid = Pid::from_raw(owner.pid().cast_signed());
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD;
    match ptrace::seize(pid, options) {
        Err(Errno::EPERM) => return None,
        seized => seized.unwrap(),
    }
    ptrace::interrupt(pid).unwrap();
    // It waits for this line before it touches anything.
    let stdin = owner.0.stdin.take().unwrap();
    drop(stdin);
    let (mut writes, mut is_write) = (0, false);
    loop {
        match waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::PtraceSyscall(_) => {
                let info = ptrace::syscall_info(pid).unwrap();
                match info.op {
                    libc::PTRACE_SYSCALL_INFO_ENTRY => {
                        // SAFETY: the kernel fills this part at the entry of a call.
                        let entry = unsafe { info.u.entry };
                        // It also goes to the CPU of the thread, by its own mask.
                        is_write = entry.nr == libc::SYS_sched_setaffinity as u64
                            && entry.args[0] != u64::from(owner.pid());
                    }
                    _ => writes += u32::from(is_write),
                }
                if writes == nth {
                    let narrowed = !super::support::astray(program).is_empty();
                    nix::sys::signal::kill(pid, Signal::SIGKILL).unwrap();
                    owner.0.wait().unwrap();
                    return Some(narrowed);
                }
            }
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                panic!("the owner ended after {writes} writes")
            }
            _ => {}
        }
        ptrace::syscall(pid, None).unwrap();
    }
}
