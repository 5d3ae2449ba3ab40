//! Floods of connections and shortages of descriptors, which pass and leave nothing behind.

use super::common::{own_mask, wait_for};
use super::{Daemon, Spinner, has_choice, stderr, views, wait_for_mask};
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
