//! Several users of root's daemon, none of whom may disturb or see another.

use super::common::{children_of, own_mask, wait_for};
use super::{Daemon, Spinner, has_choice, masks_of, skipped, wait_for_mask};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// Two ordinary users.
const USERS: [u32; 2] = [65_534, 65_533];

/// Returns true if this test may act as several users; says so if not.
fn may_act() -> bool {
    let there = Command::new("setpriv").arg("--version").output().is_ok();
    let may = nix::unistd::geteuid().is_root() && there;
    if !may {
        skipped("becoming another user takes root and setpriv");
    }
    may
}

/// Connects as a user: the kernel notes the effective user of the thread that connects.
pub(super) fn connect_as(uid: u32, socket: &Path) -> UnixStream {
    let socket = socket.to_owned();
    let connect = move || {
        // SAFETY: The call changes the users of this thread alone, which then ends; unlike the
        // function of the C library it does not change the others.
        let done = unsafe { nix::libc::syscall(nix::libc::SYS_setresuid, -1, uid, -1) };
        assert_eq!(done, 0);
        UnixStream::connect(socket).unwrap()
    };
    std::thread::spawn(connect).join().unwrap()
}

/// Sends a request as a user, and returns the answer.
fn ask_as(uid: u32, daemon: &Daemon, request: &Value) -> Value {
    let mut stream = connect_as(uid, &daemon.socket());
    let line = json!({ "version": 1, "request": request });
    writeln!(stream, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str::<Value>(&answer).unwrap()["answer"].clone()
}

fn pids(verb: &str, pid: u32) -> Value {
    json!({ verb: { "pids": [pid], "cgroups": [] } })
}

fn setpriv(uid: u32) -> String {
    format!("setpriv --reuid {uid} --regid {uid} --clear-groups --")
}

/// A shell of root with a spinning child of each of two users; their pids.
fn family() -> (Spinner, [u32; 2]) {
    let spin = "sh -c 'while :; do :; done'";
    let [a, b] = USERS.map(setpriv);
    let mut shell = Command::new("sh");
    // Ends with its parent, as the children would otherwise spin on.
    let script = format!("trap 'kill 0' TERM; {a} {spin} & {b} {spin} & shift; exec sh \"$@\"");
    shell.args(["-c", &script, "sh", "x"]);
    let spinner = Spinner::of(shell);
    let pids = wait_for("the children", || {
        let children = children_of(spinner.pid());
        let of = |uid: u32| {
            let is_its = |pid: &&u32| {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
                let line = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}");
                status.is_ok_and(|status| status.contains(&line))
            };
            children.iter().find(is_its).copied()
        };
        Some([of(USERS[0])?, of(USERS[1])?])
    });
    (spinner, pids)
}

/// Kills processes when dropped.
struct Reaper(Vec<u32>);

impl Drop for Reaper {
    fn drop(&mut self) {
        for pid in &self.0 {
            let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Threads that are managed, by pid.
fn managed(daemon: &Daemon) -> Vec<u32> {
    let status = daemon.status();
    let threads = status["threads"].as_array().unwrap().iter();
    let managed = threads.filter(|thread| thread["managed"] == true);
    managed
        .map(|thread| thread["pid"].as_u64().unwrap() as u32)
        .collect()
}

#[test]
fn detach_frees_threads_of_the_asking_user_alone() {
    if !may_act() || !has_choice() {
        return;
    }
    let own = own_mask();
    let (root, [a, b]) = family();
    let _reaper = Reaper(vec![a, b]);
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    assert!(daemon.ask(&["attach", &root.id()]).status.success());
    let all = [root.pid(), a, b];
    wait_for("all three", || {
        let managed = managed(&daemon);
        all.iter().all(|pid| managed.contains(pid)).then_some(())
    });
    let answer = ask_as(USERS[0], &daemon, &pids("detach", b));
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("belongs to user"),
        "{answer}"
    );
    let answer = ask_as(USERS[0], &daemon, &pids("detach", a));
    assert!(answer["ok"].is_object(), "{answer}");
    wait_for_mask(a, |mask| mask == own);
    wait_for("those of others alone", || {
        let managed = managed(&daemon);
        (managed.contains(&root.pid()) && managed.contains(&b) && !managed.contains(&a))
            .then_some(())
    });
    let again = ask_as(USERS[0], &daemon, &pids("detach", a));
    assert!(
        again["error"].as_str().unwrap().contains("is not managed"),
        "{again}"
    );
    // It may be attached again.
    let answer = ask_as(USERS[0], &daemon, &pids("attach", a));
    assert!(answer["ok"].is_object(), "{answer}");
    wait_for("its return", || managed(&daemon).contains(&a).then_some(()));
}

#[test]
fn attach_takes_threads_of_the_asking_user_alone() {
    if !may_act() || !has_choice() {
        return;
    }
    let own = own_mask();
    // A program of the user with a child of root, as one that executes a setuid file has.
    let become_user = setpriv(USERS[0]);
    let script = format!(
        "sh -c 'while kill -0 $PPID; do :; done' 2>/dev/null & shift; \
         exec {become_user} sh \"$@\""
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh", "x"]);
    let program = Spinner::of(shell);
    let child = wait_for("the child", || children_of(program.pid()).first().copied());
    let _reaper = Reaper(vec![child]);
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    let answer = ask_as(USERS[0], &daemon, &pids("attach", program.pid()));
    assert!(answer["ok"].is_object(), "{answer}");
    wait_for("the reason", || {
        let reason = format!("acts for user 0, and user {} attached", USERS[0]);
        daemon.log().contains(&reason).then_some(())
    });
    assert_eq!(managed(&daemon), [program.pid()]);
    assert_eq!(masks_of(child), [own]);
    // Root may have all of it.
    assert!(daemon.ask(&["attach", &program.id()]).status.success());
    wait_for("the child", || {
        managed(&daemon).contains(&child).then_some(())
    });
}

#[test]
fn users_do_not_learn_names_of_each_other_s_programs() {
    if !may_act() {
        return;
    }
    let start = |uid: u32, name: &str| {
        let mut shell = Command::new("sh");
        let become_user = setpriv(uid);
        let script = format!(
            "shift; exec {become_user} sh -c 'printf {name} > /proc/$$/comm; eval \"$1\"' sh \"$1\""
        );
        shell.args(["-c", &script, "sh"]);
        Spinner::of(shell)
    };
    let (secret, open) = (start(USERS[0], "SECRETprog"), start(USERS[1], "openprog"));
    let daemon = Daemon::with("", &["--policy", "none"]);
    for spinner in [&secret, &open] {
        let attach = daemon.ask(&["attach", &spinner.id(), "--policy", "gang"]);
        assert!(attach.status.success(), "{}", super::stderr(&attach));
    }
    let explain = |uid: u32, pid: u32| {
        ask_as(uid, &daemon, &json!({ "explain": { "tid": pid } })).to_string()
    };
    wait_for("both programs in root's status", || {
        let seen = daemon.ask(&["status", "--format", "json"]);
        let seen = String::from_utf8(seen.stdout).unwrap();
        (seen.contains("SECRETprog") && seen.contains("openprog")).then_some(())
    });
    for _ in 0..20 {
        let seen = ask_as(USERS[1], &daemon, &json!("status")).to_string();
        let why = explain(USERS[1], open.pid());
        assert!(
            seen.contains("openprog") && why.contains("openprog"),
            "{seen} {why}"
        );
        for text in [seen, why] {
            assert!(!text.contains("SECRET"), "{text}");
            assert!(!text.contains(&format!("({})", secret.pid())), "{text}");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(explain(USERS[1], secret.pid()).contains("is not managed"));
}

#[test]
fn root_is_served_while_other_users_hold_all_their_places() {
    if !may_act() {
        return;
    }
    let spinner = Spinner::start();
    let daemon = Daemon::with("", &["--policy", "none"]);
    assert!(daemon.ask(&["attach", &spinner.id()]).status.success());
    let idle: Vec<UnixStream> = (0..4 * 17)
        .map(|n| connect_as(50_001 + n / 17, &daemon.socket()))
        .collect();
    for args in [
        &["status"][..],
        &["config", "reload"],
        &["detach", &spinner.id()],
    ] {
        let output = daemon.ask(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            super::stderr(&output)
        );
    }
    let refused = ask_as(50_001, &daemon, &json!("status"));
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("the most that it allows one user"),
        "{refused}"
    );
    drop(idle);
}
