//! Views of a daemon: threads and the chip, and metrics.

use super::common::{own_mask, skipped, wait_for};
use super::{Daemon, Spinner, has_choice, stderr};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

#[test]
fn one_view_as_text_has_the_thread_and_the_chip() {
    let spinner = Spinner::start();
    let daemon = Daemon::start();
    daemon.ask(&["attach", &spinner.id()]);
    let view = wait_for("the thread", || {
        let output = daemon.ask(&["top", "--once"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let view = String::from_utf8(output.stdout).unwrap();
        view.contains(&spinner.id()).then_some(view)
    });
    assert!(view.contains("policy "), "{view}");
    assert!(view.contains("\nP0 "), "{view}");
}

#[test]
fn who_is_let_alone_is_told_at_once() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let first = own.split([',', '-']).next().unwrap();
    let mut shell = Command::new("sh");
    let starter = "first=$1; shift
        taskset -c $first sh -c 'while kill -0 $PPID; do :; done' 2>/dev/null &
        exec sh \"$@\"";
    shell.args(["-c", starter, "sh", first]);
    let spinner = Spinner::of(shell);
    let mut daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    daemon.ask(&["attach", &spinner.id()]);
    let reported = "was set on purpose";
    wait_for("the log", || daemon.log().contains(reported).then_some(()));
    let status = daemon.status();
    assert!(
        status["warnings"].to_string().contains(reported),
        "{status:#}"
    );
    daemon.signal("-TERM");
    daemon.child.wait().unwrap();
    assert_eq!(
        daemon.log().matches(reported).count(),
        1,
        "{}",
        daemon.log()
    );
}

/// A port that was free a moment ago.
pub(super) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// Body of a page.
pub(super) fn fetch(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reported = String::new();
    stream.read_to_string(&mut reported).unwrap();
    let (_, body) = reported.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

/// Returns true where Prometheus' own parser takes the page; none where it is not installed.
fn parsed(page: &str) -> Option<bool> {
    let script = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
        assert len(list(parse(sys.stdin.read()))) > 5";
    let there = Command::new("python3")
        .args(["-c", "import prometheus_client"])
        .stderr(Stdio::null())
        .status();
    there.ok().filter(std::process::ExitStatus::success)?;
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = python.stdin.take().unwrap();
    to.write_all(page.as_bytes()).unwrap();
    drop(to);
    Some(python.wait().unwrap().success())
}

#[test]
fn metrics_are_served_where_they_are_asked_for() {
    let port = free_port();
    let config = format!("[metrics]\nlisten = \"127.0.0.1:{port}\"\n");
    let daemon = Daemon::with(&config, &["--policy", "none"]);
    let page = wait_for("a plan", || {
        let page = fetch(port, "/metrics");
        page.contains("consort_plans_total").then_some(page)
    });
    assert!(page.ends_with("# EOF\n"), "{page}");
    match parsed(&page) {
        Some(taken) => assert!(taken, "{page}"),
        None => skipped("no prometheus_client for Python: its parser was not asked"),
    }
    assert_eq!(fetch(port, "/other"), "see /metrics\n");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn daemon_says_what_it_manages_and_what_changes() {
    let spinner = Spinner::start();
    let daemon = Daemon::start();
    daemon.ask(&["attach", &spinner.id()]);
    daemon.ask(&["attach", "--cgroup", "no-such-group.slice"]);
    daemon.ask(&["detach", &spinner.id()]);
    for line in [
        "consort daemon: nothing is configured to be managed yet, policy ",
        "consort daemon: managing: ",
        "nothing matches yet: no-such-group.slice",
        "consort daemon: released, affinity restored: ",
    ] {
        wait_for(line, || daemon.log().contains(line).then_some(()));
    }
}

#[test]
fn share_of_time_without_management_gives_an_effect() {
    if !has_choice() {
        return;
    }
    let spinner = Spinner::start();
    let daemon = Daemon::with("daemon.trial = \"50 %\"", &["--policy", "spread:active=0"]);
    daemon.ask(&["attach", &spinner.id()]);
    let own = own_mask();
    // Stretches of 2.5 s: with lasting masks the spinner's is narrow in some and its own in others.
    super::wait_for_mask(spinner.pid(), |mask| mask != own);
    super::wait_for_mask(spinner.pid(), |mask| mask == own);
    super::wait_for_mask(spinner.pid(), |mask| mask != own);
    let verdict = &daemon.status()["verdict"];
    assert!(verdict["measure"].is_string(), "{verdict}");
    assert!(
        verdict["text"]
            .as_str()
            .unwrap()
            .contains("too short for a verdict"),
        "{verdict}"
    );
}

#[test]
fn process_is_explained_by_its_busy_threads() {
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    let mut demo = Command::new(super::common::demo());
    let mut child = demo
        .args(["int", "--threads", "2", "--seconds", "20"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    daemon.ask(&["attach", &pid]);
    let explained = wait_for("both threads", || {
        let why = daemon.ask(&["explain", &pid, "--format", "json"]);
        let why: serde_json::Value = serde_json::from_slice(&why.stdout).ok()?;
        (why["others"].as_array()?.len() == 1).then_some(why)
    });
    for thread in [&explained, &explained["others"][0]] {
        assert!(
            thread["name"].as_str().unwrap().starts_with("int-"),
            "{explained:#}"
        );
    }
    let text = String::from_utf8(daemon.ask(&["explain", &pid]).stdout).unwrap();
    assert!(text.matches("of program").count() >= 1, "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
}
