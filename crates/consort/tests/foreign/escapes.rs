//! Programs that leave their place: daemons, re-execs, setuid, closed descriptors.

use super::common::{folder, install, mask_of, own_mask, run, skipped};
use super::compiled::{Compiled, compiled, have};
use super::side_by_side::{command_of, compare, managed, managed_command, threads};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A daemon that a test has to end.
struct Daemon(i32);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-KILL", &self.0.to_string()])
            .status();
    }
}

#[test]
fn a_daemon_that_outlives_the_command_is_free_again() {
    let Some(program) = compiled("daemonises", &[]) else {
        return;
    };
    let run = managed(&command_of(&program, &[]));
    let pid = String::from_utf8_lossy(&run.output.stdout)
        .trim()
        .parse()
        .unwrap();
    let daemon = Daemon(pid);
    let place = format!("/proc/{}", daemon.0);
    assert_eq!(
        mask_of(Path::new(&place)),
        Some(own_mask()),
        "{:#}",
        run.report
    );
    let tids: Vec<u64> = threads(&run.report)
        .iter()
        .filter_map(|t| t["tid"].as_u64())
        .collect();
    assert!(
        tids.contains(&u64::from(daemon.0.unsigned_abs())),
        "{:#}",
        run.report
    );
}

#[test]
fn programs_that_exec_themselves_from_any_thread_stay_managed() {
    if let Some(program) = compiled("reexecs", &[]) {
        let report = compare(command_of(&program, &["5"]));
        assert_eq!(report["exit_code"], 3);
    }
}

#[test]
fn a_program_may_close_its_descriptors_and_block_every_signal() {
    if let Some(program) = compiled("closes_all", &[]) {
        assert_eq!(compare(command_of(&program, &[]))["exit_code"], 6);
    }
}

/// `nobody`.
const NOBODY: &str = "65534";

#[test]
fn a_command_may_become_another_user() {
    if !nix::unistd::geteuid().is_root() || !have("setpriv") {
        return skipped("becoming another user needs root and setpriv");
    }
    let Some(program) = compiled("whoami", &[]) else {
        return;
    };
    open_to_all(&program);
    let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
    let mut become_nobody = Command::new("setpriv");
    become_nobody
        .args(ids)
        .arg("--clear-groups")
        .arg(program.path());
    compare(become_nobody);
}

#[test]
fn a_setuid_program_works_and_is_let_alone() {
    if !nix::unistd::geteuid().is_root() || !have("setpriv") {
        return skipped("making a setuid program needs root");
    }
    let Some(program) = compiled("whoami", &["-static"]) else {
        return;
    };
    open_to_all(&program);
    std::fs::set_permissions(program.path(), PermissionsExt::from_mode(0o4755)).unwrap();
    let binary = folder();
    open(binary.path(), 0o777);
    let copy = binary.path().join("consort");
    install(env!("CARGO_BIN_EXE_consort").as_ref(), &copy);
    let file = binary.path().join("report.json");
    // Long beside the second that may pass until it is looked for again.
    let managed = managed_command(&command_of(&program, &["2500"]), &file);
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
    as_nobody
        .arg("--clear-groups")
        .arg(&copy)
        .args(managed.get_args());
    let output = run(as_nobody.env_remove("XDG_RUNTIME_DIR"));
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("as 65534") {
        return skipped("setuid is off in the folder for temporary files");
    }
    assert!(said.starts_with("user 65534 as 0"), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(report["restored"], true);
    assert_eq!(report["exit_code"], 0);
    // The kernel pretends that it has exited; it is found all the same.
    assert_eq!(report["moves"], 0);
    assert!(
        report["threads"][0]["cpu_s"].as_f64().unwrap() > 0.1,
        "{report:#}"
    );
    assert!(
        report["warnings"]
            .to_string()
            .contains("privileges that consort lacks"),
        "{report:#}"
    );
}

fn open(place: &Path, mode: u32) {
    std::fs::set_permissions(place, PermissionsExt::from_mode(mode)).unwrap();
}

fn open_to_all(program: &Compiled) {
    open(program.path().parent().unwrap(), 0o755);
}
