//! Clients that misbehave, and those of other users.

use super::{Daemon, Spinner, common, json, run, skipped, stderr};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

/// An ordinary user.
const NOBODY: &str = "65534";

/// Runs as an ordinary user, where this is root and can.
fn as_nobody(program: impl AsRef<std::ffi::OsStr>) -> Option<Command> {
    let there = Command::new("setpriv").arg("--version").output().is_ok();
    if !nix::unistd::geteuid().is_root() || !there {
        skipped("becoming another user takes root and setpriv");
        return None;
    }
    let mut command = Command::new("setpriv");
    let ids = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"];
    command.args(ids).arg(program);
    Some(command)
}

/// Each user's programs take turns among themselves only.
#[test]
fn program_of_one_user_waits_for_no_other_user() {
    let Some(mut other) = as_nobody(env!("CARGO_BIN_EXE_consort")) else {
        return;
    };
    if run(other.arg("--version")).status.code() != Some(0) {
        return skipped("the binary under test is out of reach of other users");
    }
    let daemon = Daemon::start();
    let attach = ["attach", "--policy", "gang:quantum=200"];
    let mine = Spinner::start();
    let taken = daemon.ask(&[&attach[..], &[&mine.id()]].concat());
    assert!(taken.status.success(), "{}", stderr(&taken));
    let his = [(); 3].map(|()| Spinner::of(as_nobody("sh").unwrap()));
    for spinner in &his {
        let mut ask = as_nobody(env!("CARGO_BIN_EXE_consort")).unwrap();
        ask.args(attach).arg(spinner.id());
        let taken = run(ask.arg("--socket").arg(daemon.socket()));
        assert!(taken.status.success(), "{}", stderr(&taken));
    }
    for spinner in &his {
        common::wait_for("his programs to take turns", || {
            assert!(!common::is_held(mine.pid()), "mine waits for his");
            common::is_held(spinner.pid()).then_some(())
        });
    }
    assert!(!common::is_held(mine.pid()), "mine waits for his");
}

#[test]
fn another_user_sees_and_moves_only_what_is_his() {
    let Some(mut other) = as_nobody(env!("CARGO_BIN_EXE_consort")) else {
        return;
    };
    if run(other.arg("--version")).status.code() != Some(0) {
        return skipped("the binary under test is out of reach of other users");
    }
    let daemon = Daemon::start();
    let mine = Spinner::start();
    let his = Spinner::of(as_nobody("sh").unwrap());
    daemon.ask(&["attach", &mine.id()]);
    let ask = |args: &[&str]| {
        let mut command = as_nobody(env!("CARGO_BIN_EXE_consort")).unwrap();
        run(command.args(args).arg("--socket").arg(daemon.socket()))
    };
    let refused = ask(&["attach", &mine.id()]);
    assert_eq!(refused.status.code(), Some(2));
    let why = stderr(&refused);
    assert!(
        why.contains("belongs to user 0; user 65534 may name only"),
        "{why}"
    );
    assert_eq!(ask(&["detach", &mine.id()]).status.code(), Some(2));
    assert_eq!(ask(&["attach", "--cgroup", "x"]).status.code(), Some(2));
    assert_eq!(ask(&["config", "reload"]).status.code(), Some(2));
    let taken = ask(&["attach", &his.id()]);
    assert!(taken.status.success(), "{}", stderr(&taken));
    common::wait_for("both threads", || {
        let all = daemon.status()["threads"].as_array().unwrap().len();
        (all == 2).then_some(())
    });
    let seen = json(&ask(&["status", "--format", "json"]));
    let threads = seen["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{seen:#}");
    assert_eq!(threads[0]["tid"], his.pid());
    assert_eq!(seen["programs"].as_array().unwrap().len(), 1, "{seen:#}");
    assert_eq!(ask(&["explain", &mine.id()]).status.code(), Some(2));
    assert_eq!(ask(&["explain", &his.id()]).status.code(), Some(0));
}

#[test]
fn misbehaving_clients_do_not_disturb_the_others() {
    let daemon = Daemon::start();
    let call = || UnixStream::connect(daemon.socket()).unwrap();
    let silent: Vec<UnixStream> = (0..8).map(|_| call()).collect();
    let mut endless = call();
    endless
        .set_write_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    while endless.write_all(&[b'x'; 4_096]).is_ok() {}
    let mut rude = call();
    rude.write_all(b"{}\n[]\n\xff\n{\"version\":1,\"request\":\"dance\"}\n")
        .unwrap();
    rude.shutdown(std::net::Shutdown::Write).unwrap();
    let mut reported = String::new();
    rude.read_to_string(&mut reported).unwrap();
    assert_eq!(reported.matches("\"error\"").count(), 4, "{reported}");
    for _ in 0..20 {
        assert!(daemon.ask(&["status"]).status.success());
    }
    drop(silent);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn what_cannot_be_attached_is_refused_with_the_reason() {
    let daemon = Daemon::start();
    let refused = |args: &[&str]| {
        let output = daemon.ask(&[&["attach"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(refused(&["4194305"]).contains("there is no process 4194305"));
    assert!(refused(&["1"]).contains("name control groups with --cgroup"));
    assert!(refused(&[&daemon.child.id().to_string()]).contains("is consort itself"));
    let own = std::process::id().to_string();
    let policy = refused(&[&own, "--policy", "sprad"]);
    assert!(policy.contains("unknown policy 'sprad'"), "{policy}");
    assert!(refused(&["--cgroup", "../x"]).contains("is no control group"));
    assert!(refused(&[]).contains("--cgroup"));
}
