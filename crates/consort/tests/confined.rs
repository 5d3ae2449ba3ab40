//! Consort's own limits, and a masked view of the processors, are not taken for the machine's.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{consort, folder, json, masks_of, run, skipped, stderr, wait_for};
use consort_core::PuSet;
use std::process::{Child, Command, Output, Stdio};

/// The first and the last CPU that this process may use, if these are two and `taskset` is there.
fn two_pus() -> Option<(String, String)> {
    let own: PuSet = common::own_mask().parse().unwrap();
    let ends = (own.first()?, own.iter().last()?);
    let has_taskset = Command::new("taskset").arg("--version").output().is_ok();
    if ends.0 == ends.1 || !has_taskset {
        skipped("two CPUs and taskset are needed");
        return None;
    }
    Some((ends.0.to_string(), ends.1.to_string()))
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command that may use one CPU.
fn confined(pu: &str, program: &std::ffi::OsStr) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", pu]).arg(program);
    command
}

fn attach_from(pu: &str, folder: &tempfile::TempDir) -> Command {
    let mut command = confined(pu, consort().get_program());
    command
        .args(["attach", "--foreground", "--quiet", "--format", "json"])
        .args(["--interval", "50ms", "--no-back-off"])
        .env("XDG_RUNTIME_DIR", folder.path());
    command
}

#[test]
fn attach_plans_for_pus_that_it_may_not_use() {
    let Some((own, other)) = two_pus() else {
        return;
    };
    let spin = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn();
    let spinner = Ended(spin.unwrap());
    let folder = folder();
    let mut attach = attach_from(&own, &folder);
    attach.args(["--policy", "random", "--enact", "pin"]);
    let attached = attach
        .arg(spinner.0.id().to_string())
        .stdout(Stdio::null())
        .spawn();
    let attached = attached.unwrap();
    wait_for("a place on the other CPU", || {
        masks_of(spinner.0.id()).contains(&other).then_some(())
    });
    let mut kill = Command::new("kill");
    kill.args(["-INT", &attached.id().to_string()]);
    assert!(kill.status().unwrap().success());
    assert!(Ended(attached).0.wait().unwrap().success());
    assert_eq!(masks_of(spinner.0.id()), [common::own_mask()]);
}

#[test]
fn threads_on_other_pus_than_consort_are_measured() {
    let Some((own, other)) = two_pus() else {
        return;
    };
    let script = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let job = confined(&other, "sh".as_ref()).args(["-c", script]).spawn();
    let mut job = job.unwrap();
    let folder = folder();
    let mut attach = attach_from(&own, &folder);
    let output = run(attach
        .args(["--policy", "spread"])
        .arg(job.id().to_string()));
    job.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let threads = report["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{report:#}");
    assert!(threads[0]["cpu_s"].as_f64().unwrap() > 0.0, "{report:#}");
    let reason = threads[0]["reason"].as_str().unwrap_or_default();
    assert!(!reason.contains("fill all CPUs"), "{reason}");
    if report["tier"] == "sampling" {
        let samples = report["sampling"]["samples"].as_u64();
        assert!(samples > Some(0), "{report:#}");
    }
}

/// Runs a script in a mount namespace of its own; `$C` is Consort. `None` if there can be none.
fn masked(script: &str) -> Option<Output> {
    let folder = folder();
    let mut shell = Command::new("unshare");
    shell.args(["-m", "sh", "-c"]);
    shell
        .env("C", consort().get_program())
        .env("D", folder.path());
    shell.env("XDG_RUNTIME_DIR", folder.path());
    let marked = format!("mount -t tmpfs none \"$D\" || exit 99; cd \"$D\"; {script}");
    let output = shell.arg(marked).stdin(Stdio::null()).output().ok();
    let output = output.filter(|output| output.status.code() != Some(99) && !is_refused(output));
    if output.is_none() {
        skipped("no mount namespace may be made here");
    }
    output
}

fn is_refused(output: &Output) -> bool {
    stderr(output).contains("unshare failed") || stderr(output).contains("unshare:")
}

#[test]
fn masked_lists_of_pus_refuse_no_run() {
    let scenes = [
        "echo 4000-4001 > o; mount --bind o /sys/devices/system/cpu/online",
        "echo garbage > o; mount --bind o /sys/devices/system/cpu/online",
        "mount -t tmpfs none /sys/devices/system/cpu",
        "mount -t tmpfs none /sys",
    ];
    for scene in scenes {
        for policy in ["none", "spread"] {
            let run = format!("\"$C\" run -q --policy {policy} -- echo started");
            let Some(output) = masked(&format!("{scene}; {run}")) else {
                return;
            };
            assert!(output.status.success(), "{scene}: {}", stderr(&output));
            assert_eq!(output.stdout, b"started\n", "{scene}: {}", stderr(&output));
        }
    }
}

#[test]
fn machine_shows_allowed_pus_and_notes_the_masked_list() {
    let mask = "echo 4000-4001 > o; mount --bind o /sys/devices/system/cpu/online";
    let Some(output) = masked(&format!("{mask}; \"$C\" machine --format json")) else {
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    let machine = json(&output);
    assert_eq!(machine["allowed_pus"], common::own_mask(), "{machine:#}");
    let notes = machine["notes"].to_string();
    assert!(notes.contains("online shows 4000-4001"), "{notes}");
}
