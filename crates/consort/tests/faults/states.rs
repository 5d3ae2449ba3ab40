//! Threads in unusual states: stopped, and without a first thread.

use super::common::{children_of, comm_of, consort, pus, wait_for, warnings};
use super::compiled::compiled;
use super::under::{RUN, moves, report, scene};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Child, Stdio};
use std::time::Duration;

#[test]
fn a_program_whose_first_thread_has_ended_is_managed_on() {
    let Some(program) = compiled("leaderless", &[]) else {
        return;
    };
    let script = format!("exec \"$C\" {RUN} --format json -- \"$P\"");
    let output = scene(&script, program.path().to_str().unwrap());
    let report = report(&output, 4);
    assert!(moves(&report) > 0 || pus() < 2, "{report:#}");
    assert_eq!(warnings(&report), [""; 0]);
    assert!(super::common::stderr(&output).contains("without a leader"));
}

/// A program under Consort, and the pid that it has.
fn start(program: &str) -> (Child, Pid) {
    let run = consort()
        .args(RUN.split(' '))
        .args(["--format", "json", "--", program])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = wait_for("the command", || {
        let children = children_of(run.id());
        children.into_iter().find(|pid| comm_of(*pid) == "program")
    });
    (run, Pid::from_raw(pid.cast_signed()))
}

#[test]
fn a_stopped_command_stays_stopped_until_it_is_continued() {
    let Some(program) = compiled("whoami", &[]) else {
        return;
    };
    let (run, pid) = start(program.path().to_str().unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    let stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(") T ").then_some(())
    };
    wait_for("the stop", stopped);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(stopped(), Some(()), "nobody but its owner continues it");
    kill(pid, Signal::SIGCONT).unwrap();
    report(&run.wait_with_output().unwrap(), 0);
}

#[test]
fn a_stopped_command_can_be_killed() {
    let Some(program) = compiled("whoami", &[]) else {
        return;
    };
    let (run, pid) = start(program.path().to_str().unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    kill(pid, Signal::SIGKILL).unwrap();
    report(&run.wait_with_output().unwrap(), 137);
}
