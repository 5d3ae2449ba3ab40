//! Configurations that are read again while the daemon runs.

use super::common::wait_for;
use super::{Daemon, stderr};
use std::process::Output;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_configuration_is_read_again_and_a_wrong_one_leaves_the_old_in_force() {
    let daemon = Daemon::with("[daemon]\npolicy = \"none\"\n", &[]);
    assert_eq!(daemon.status()["policy"], "none");
    daemon.configure("[daemon]\npolicy = \"spread\"\n");
    assert!(daemon.ask(&["config", "reload"]).status.success());
    assert_eq!(daemon.status()["policy"], "spread");
    daemon.configure("[daemon]\npolicy = \"sprad\"\n");
    let refused = daemon.ask(&["config", "reload"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("unknown policy 'sprad'"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(daemon.status()["policy"], "spread");
    daemon.configure("[daemon]\npolicy = \"none\"\n");
    daemon.signal("-HUP");
    wait_for("the reload", || {
        (daemon.status()["policy"] == "none").then_some(())
    });
    assert!(daemon.log().contains("sprad"), "{}", daemon.log());
}

#[test]
fn reload_names_the_keys_that_it_did_not_apply() {
    let daemon = Daemon::with("[daemon]\npolicy = \"none\"\n", &[]);
    let plain = daemon.ask(&["config", "reload"]);
    assert_eq!(
        stdout(&plain),
        "the daemon has read its configuration again\n"
    );
    daemon.configure(
        "[daemon]\npolicy = \"spread\"\nseed = 7\n[metrics]\nlisten = \"127.0.0.1:9\"\n",
    );
    let reported = daemon.ask(&["config", "reload"]);
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    let expect = "not applied before the daemon is started again: [daemon] seed, [metrics] listen";
    assert!(stdout(&reported).contains(expect), "{}", stdout(&reported));
    assert_eq!(daemon.status()["policy"], "spread");
    let json = super::json(&daemon.ask(&["config", "reload", "--format", "json"]));
    assert_eq!(json["after_restart"][1], "[metrics] listen");
}

#[test]
fn reload_of_what_a_start_would_refuse_is_refused_and_changes_nothing() {
    let daemon = Daemon::with("[daemon]\npolicy = \"none\"\n", &[]);
    for (config, part) in [
        (
            "[[manage]]\ncgroup = \"batch\"\npolicy = \"gang:quantum=0\"\n",
            "[[manage]] batch: ",
        ),
        (
            "[metrics]\nlisten = \"0.0.0.0:9464\"\n",
            "must be a loopback one",
        ),
        ("[daemon]\ntopology = \"/dev/zero\"\n", "a device"),
    ] {
        daemon.configure(&format!("{config}[run]\nseed = 1\n"));
        let refused = daemon.ask(&["config", "reload"]);
        assert_eq!(refused.status.code(), Some(2), "{config}");
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
        assert_eq!(stderr(&refused).lines().count(), 1, "{}", stderr(&refused));
    }
    assert_eq!(daemon.status()["policy"], "none");
    let start = super::run(
        super::consort()
            .args(["daemon", "--config"])
            .arg(daemon.folder.path().join("config.toml"))
            .env("XDG_RUNTIME_DIR", daemon.folder.path()),
    );
    assert_eq!(start.status.code(), Some(2), "{}", stderr(&start));
}

#[test]
fn pipe_as_configuration_does_not_stop_the_daemon() {
    let daemon = Daemon::with("", &["--policy", "none"]);
    let file = daemon.folder.path().join("config.toml");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let refused = daemon.ask(&["config", "reload"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("a pipe, not a file"),
        "{}",
        stderr(&refused)
    );
    assert!(daemon.ask(&["status"]).status.success());
}
