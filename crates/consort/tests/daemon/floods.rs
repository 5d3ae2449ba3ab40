//! Floods of connections and shortages of descriptors, which pass and leave nothing behind.

use super::common::{own_mask, wait_for};
use super::{Daemon, Spinner, has_choice, masks_of, stderr, views, wait_for_mask};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// The binary under test with this limit on descriptors.
fn limited(descriptors: u32) -> Command {
    let mut shell = Command::new("sh");
    let script = format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_consort")]);
    shell
}

#[test]
fn idle_connections_blind_neither_the_metrics_nor_the_daemon() {
    let own = own_mask();
    let (a, b) = (Spinner::start(), Spinner::start());
    let port = views::free_port();
    let config = format!("[metrics]\nlisten = \"127.0.0.1:{port}\"\n");
    let daemon = Daemon::by(limited(128), &config, &["--policy", "spread:active=0"]);
    assert!(daemon.ask(&["attach", &a.id()]).status.success());
    let mut tcp = Vec::new();
    for _ in 0..400 {
        // Those that are closed to make room for others are refused no connection.
        let mut idle = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _ = idle.write_all(b"GET /me");
        tcp.push(idle);
    }
    let local: Vec<UnixStream> = (0..100)
        .filter_map(|_| UnixStream::connect(daemon.socket()).ok())
        .collect();
    let page = views::fetch(port, "/metrics");
    assert!(page.contains("consort_programs"), "{page}");
    drop(local);
    wait_for("a place", || {
        daemon.ask(&["status"]).status.success().then_some(())
    });
    let attached = daemon.ask(&["attach", &b.id()]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    drop(tcp);
    wait_for("the metrics", || {
        views::fetch(port, "/metrics")
            .contains("consort_programs 2")
            .then_some(())
    });
    if has_choice() {
        for spinner in [&a, &b] {
            wait_for_mask(spinner.pid(), |mask| mask != own);
        }
    }
    assert!(
        daemon.log().matches("could not be accepted").count() <= 1,
        "{}",
        daemon.log()
    );
}

#[test]
fn threads_are_managed_again_after_descriptors_were_short() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let spinner = Spinner::start();
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    assert!(daemon.ask(&["attach", &spinner.id()]).status.success());
    wait_for_mask(spinner.pid(), |mask| mask != own);
    let limit = |soft: &str| {
        let mut prlimit = Command::new("prlimit");
        let pid = daemon.child.id().to_string();
        let done = prlimit
            .args(["--pid", &pid, &format!("--nofile={soft}:")])
            .status();
        assert!(done.unwrap().success());
    };
    limit("4");
    // Long enough for scans and looks to fail; all that they cost is time.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    limit("1024");
    let other = Spinner::start();
    wait_for("an answer", || {
        let attached = daemon.ask(&["attach", &other.id()]);
        attached.status.success().then_some(())
    });
    wait_for("both", || {
        let status = daemon.status();
        let threads = status["threads"].as_array().unwrap();
        let managed = threads.iter().filter(|thread| thread["managed"] == true);
        (managed.count() == 2).then_some(())
    });
    for pid in [spinner.pid(), other.pid()] {
        wait_for_mask(pid, |mask| mask != own);
    }
    // What cannot be done is said, and not once per quantum.
    let warnings = daemon.log().matches(" WARN ").count();
    assert!(warnings < 20, "{}", daemon.log());
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(masks_of(spinner.pid()), [own]);
}
