//! Attaching without a daemon: this run manages until nothing is left, or until told to stop.

use super::common::{children_of, consort, folder, json, own_mask, run, stderr};
use super::{Spinner, has_choice, wait_for_mask};
use std::process::{Command, Stdio};

fn attach() -> (Command, tempfile::TempDir) {
    let folder = folder();
    let mut command = consort();
    command
        .args(["attach", "--foreground", "--format", "json", "--quiet"])
        .env("XDG_RUNTIME_DIR", folder.path());
    (command, folder)
}

#[test]
fn it_ends_with_what_was_attached_and_reports_it() {
    let (mut command, _folder) = attach();
    let mut job = Command::new("sh")
        .args([
            "-c",
            "sleep 1 & i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; wait",
        ])
        .spawn()
        .unwrap();
    let output = run(command.arg(job.id().to_string()));
    job.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["restored"], true);
    assert_eq!(report["exit_code"], 0);
    let threads = report["threads"].as_array().unwrap();
    assert!(threads.iter().any(|t| t["tid"] == job.id()), "{report:#}");
    assert_eq!(report["programs"][0]["pid"], job.id());
}

#[test]
fn an_interrupt_lets_everything_go_and_reports() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let spinner = Spinner::start();
    let (mut command, _folder) = attach();
    let child = command
        .args(["--policy", "spread:active=0", "--enact", "pin"])
        .args(["--interval", "50ms"])
        .arg(spinner.id())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_mask(spinner.pid(), |mask| mask != own);
    assert!(!children_of(child.id()).is_empty(), "no guardian");
    let mut kill = Command::new("kill");
    kill.args(["-INT", &child.id().to_string()]);
    assert!(kill.status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(json(&output)["restored"], true);
    assert_eq!(super::masks_of(spinner.pid()), [own]);
}
