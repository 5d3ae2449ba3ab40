//! Code that is hard to get at: pages that come late or never, code of two widths in one process,
//! code in thousands of mappings, programs below another root.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{comm_of, consort, folder, run, skipped, stderr, wait_for};
use compiled::{Compiled, compiled, have};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A `consort run` that is killed with its command if the test fails.
struct Managed(Child);

impl Drop for Managed {
    fn drop(&mut self) {
        // Both may have ended.
        for pid in common::children_of(self.0.id()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command and returns the report; `None` where programs cannot be sampled.
fn report_of(command: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Option<Value> {
    let folder = folder();
    let place = folder.path().join("report.json");
    let output = run(consort()
        .args(["run", "-q", "--no-daemon", "--policy", "none", "--report"])
        .arg(&place)
        .arg("--")
        .args(command));
    assert!(output.status.success(), "{}", stderr(&output));
    sampled(&place)
}

/// The report at a place; `None` if nothing was sampled.
fn sampled(place: &Path) -> Option<Value> {
    let report: Value = serde_json::from_slice(&fs::read(place).unwrap()).unwrap();
    if report["tier"] == "sampling" {
        return Some(report);
    }
    skipped("programs cannot be sampled here");
    None
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn decoded_share(report: &Value) -> f64 {
    let sampling = &report["sampling"];
    number(&sampling["decoded"]) / number(&sampling["samples"])
}

/// Runs `late_pages` under management with pages that come after `delay_ms`, or never, and ends it
/// by SIGTERM.
fn assert_not_stopped_by(kind: &str, threads: &str, delay_ms: &str) {
    let Some(program) = compiled("late_pages", &[]) else {
        return;
    };
    let folder = folder();
    let mount = folder.path().join("mount");
    fs::create_dir(&mount).unwrap();
    let probe = Command::new(program.path())
        .args([kind, "0", "1", "1"])
        .arg(&mount)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if probe.unwrap().code() == Some(77) {
        return skipped(&format!("{kind}: this user may not serve pages here"));
    }
    let place = folder.path().join("report.json");
    let managed = consort()
        .args(["run", "-q", "--no-daemon", "--policy", "none"])
        .args(["--interval", "200ms", "--report"])
        .arg(&place)
        .arg("--")
        .arg(program.path())
        .args([kind, "600", threads, delay_ms])
        .arg(&mount)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut managed = Managed(managed.unwrap());
    let pid = managed.0.id();
    // The helper runs: code has been asked for.
    wait_for("the first samples", || {
        let mut children = common::children_of(pid).into_iter();
        children.find(|&child| comm_of(child) == "consort-read")
    });
    std::thread::sleep(Duration::from_millis(2500));
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).unwrap();
    wait_for("the end", || managed.0.try_wait().unwrap());
    let Some(report) = sampled(&place) else {
        return;
    };
    assert!(number(&report["plans"]) >= 3.0, "{report}");
    assert!(decoded_share(&report) > 0.5, "{report}");
}

#[test]
fn page_that_never_comes_does_not_stop_the_loop() {
    assert_not_stopped_by("memory", "1", "0");
}

#[test]
fn file_that_never_comes_does_not_stop_the_loop() {
    assert_not_stopped_by("file", "1", "0");
}

#[test]
fn many_pages_that_come_late_do_not_stop_the_loop() {
    assert_not_stopped_by("memory", "40", "300");
}

#[test]
fn file_that_comes_late_does_not_stop_the_loop() {
    assert_not_stopped_by("file", "4", "300");
}

#[test]
fn threads_of_one_process_are_decoded_by_their_own_width() {
    if !cfg!(target_arch = "x86_64") {
        return skipped("the program is written in x86 machine code");
    }
    if !Path::new("/proc/sys/abi/vsyscall32").exists() {
        return skipped("the kernel does not run 32-bit programs");
    }
    let Some(program) = compiled("two_widths", &["-O2"]) else {
        return;
    };
    let Some(report) = report_of([program.path().as_os_str(), OsStr::new("3")]) else {
        return;
    };
    let threads = report["threads"].as_array().unwrap();
    let mix = |name: &str| &threads.iter().find(|t| t["name"] == name).unwrap()["mix"];
    let (wide, narrow) = (mix("wide"), mix("narrow"));
    assert!(number(&wide["fp"]) > 0.3, "{wide}");
    assert!(number(&narrow["int"]) > 0.8, "{narrow}");
    assert!(number(&narrow["branch"]) < 0.2, "{narrow}");
    assert!(decoded_share(&report) > 0.95, "{report}");
}

#[test]
fn thousands_of_mappings_are_decoded_at_little_cost() {
    if !cfg!(target_arch = "x86_64") {
        return skipped("the program is written in x86 machine code");
    }
    let Some(program) = compiled("many_mappings", &[]) else {
        return;
    };
    let program = program.path();
    let words = ["16000", "2"].map(OsStr::new);
    let Some(report) = report_of([program.as_os_str()].into_iter().chain(words)) else {
        return;
    };
    // Records are lost while the host is busy with other tests; the mappings are read anew then.
    assert_eq!(report["threads"][0]["class"], "fp", "{report}");
    assert!(decoded_share(&report) > 0.9, "{report}");
}

/// A folder to be the root of others: a shell, and twenty programs that run for 50 ms each.
fn other_root() -> Option<(tempfile::TempDir, Compiled)> {
    if !geteuid().is_root() {
        skipped("only root may change the root of programs");
        return None;
    }
    let shell = ["/bin/busybox", "/usr/bin/busybox"];
    let Some(shell) = shell.into_iter().find(|path| Path::new(path).exists()) else {
        skipped("busybox is not installed");
        return None;
    };
    let program = compiled("short_fp", &["-static"])?;
    let root = folder();
    let bin = root.path().join("bin");
    fs::create_dir(&bin).unwrap();
    common::install(Path::new(shell), &bin.join("busybox"));
    std::os::unix::fs::symlink("busybox", bin.join("sh")).unwrap();
    let mut script = String::new();
    for at in 0..20 {
        common::install(&program.path(), &bin.join(format!("p{at}")));
        script += &format!("$1/bin/p{at}\n");
    }
    fs::write(root.path().join("loop"), script).unwrap();
    let runs = Command::new("chroot")
        .arg(root.path())
        .args(["/bin/sh", "-c", "true"])
        .status();
    if !runs.is_ok_and(|status| status.success()) {
        skipped("busybox does not run below another root");
        return None;
    }
    Some((root, program))
}

#[test]
fn short_programs_below_another_root_are_decoded() {
    let Some((root, _program)) = other_root() else {
        return;
    };
    let command = [OsStr::new("chroot"), root.path().as_os_str()];
    let words = ["/bin/sh", "/loop", ""].map(OsStr::new);
    let Some(report) = report_of(command.into_iter().chain(words)) else {
        return;
    };
    assert!(decoded_share(&report) > 0.9, "{report}");
}

#[test]
fn short_programs_in_another_mount_namespace_are_decoded() {
    let Some((root, _program)) = other_root() else {
        return;
    };
    if !have("unshare") {
        return;
    }
    let view = folder();
    let script = "mount --bind \"$0\" \"$1\" && exec \"$1\"/bin/busybox sh \"$1\"/loop \"$1\"";
    let words = ["unshare", "-m", "sh", "-c", script].map(OsStr::new);
    let places = [root.path().as_os_str(), view.path().as_os_str()];
    let Some(report) = report_of(words.into_iter().chain(places)) else {
        return;
    };
    assert!(decoded_share(&report) > 0.9, "{report}");
}
