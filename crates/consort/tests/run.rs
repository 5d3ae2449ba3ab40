//! `consort run` end to end: real programs, masks read back from `/proc`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{
    children_of, comm_of, consort, demo, folder, install, json, masks_of, own_mask, pus, run,
    skipped, stderr, wait_for, warnings,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn report_of(args: &[&str], command: &[&str]) -> Value {
    let output = run(consort()
        .args(["run", "--format", "json"])
        .args(args)
        .arg("--")
        .args(command));
    assert!(output.status.code().is_some(), "{}", stderr(&output));
    json(&output)
}

fn demo_text() -> String {
    demo().to_str().unwrap().to_owned()
}

fn thread<'a>(report: &'a Value, name: &str) -> &'a Value {
    let threads = report["threads"].as_array().unwrap();
    threads
        .iter()
        .find(|t| t["name"] == name)
        .unwrap_or_else(|| panic!("no thread {name} in {report:#}"))
}

#[test]
fn the_command_s_status_and_output_pass_through() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        let output = run(consort().args(["run", "--", "sh", "-c", script]));
        assert_eq!(output.status.code(), Some(code), "{script}");
    }
    let output = run(consort().args(["run", "-q", "--", "sh", "-c", "echo out; echo err >&2"]));
    assert_eq!(output.stdout, b"out\n");
    assert_eq!(output.stderr, b"err\n");
}

#[test]
fn a_command_that_ends_within_the_first_interval_is_in_the_report() {
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let report = report_of(&["--interval", "1h"], &["sh", "-c", script]);
    if report["tier"] != "sampling" && report["tier"] != "counters" {
        return skipped("no tier here tells of threads that have ended");
    }
    let shell = thread(&report, "sh");
    assert!(shell["cpu_s"].as_f64().unwrap() > 0.0, "{report:#}");
    assert_eq!(shell["class"], "int", "{report:#}");
}

#[test]
fn arguments_and_stdin_reach_the_command() {
    let mut child = consort()
        .args([
            "run",
            "-q",
            "--",
            "sh",
            "-c",
            "cat; echo $0 $1",
            "--flag",
            "a b",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"input\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"input\n--flag a b\n");
}

#[test]
fn json_is_the_only_thing_on_stdout() {
    let output = run(consort().args(["run", "--format", "json", "--", "echo", "hello"]));
    assert_eq!(json(&output)["exit_code"], 0);
    assert!(stderr(&output).contains("hello"));
}

#[test]
fn the_report_has_every_key_of_the_contract() {
    let folder = folder();
    let file = folder.path().join("report.json");
    let status = consort()
        .args(["run", "-q", "--interval", "200ms", "--report"])
        .arg(&file)
        .arg("--")
        .arg(demo())
        .args(["mixed", "--seconds", "1"])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let keys = [
        "tier",
        "policy",
        "policy_requested",
        "duration_s",
        "exit_code",
        "threads",
        "plans",
        "moves",
        "overhead",
        "restored",
        "warnings",
    ];
    for key in keys {
        assert!(report.get(key).is_some(), "{key} is missing");
    }
    let thread_keys = [
        "tid",
        "name",
        "cpu_s",
        "class",
        "fp_usage",
        "mix",
        "stack",
        "stack_source",
        "moves",
        "cpus",
    ];
    for thread in report["threads"].as_array().unwrap() {
        for key in thread_keys {
            assert!(thread.get(key).is_some(), "{key} is missing in {thread}");
        }
    }
    for key in ["cpu_s", "share_of_managed", "peak_rss_kib"] {
        assert!(report["overhead"][key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert_eq!(report["restored"], true);
}

/// The thread of a kernel that ran alone for a second; none where no tier tells the mix.
fn thread_of_kernel(kernel: &str) -> Option<Value> {
    let report = report_of(
        &["--interval", "200ms", "--watch", "full"],
        &[&demo_text(), kernel, "--threads", "1", "--seconds", "1"],
    );
    let tells = report["tier"] == "sampling" || report["tier"] == "counters";
    tells.then(|| thread(&report, &format!("{kernel}-0")).clone())
}

#[test]
fn classes_tell_kernels_apart() {
    let kernels = [
        ("fp", "fp"),
        ("int", "int"),
        ("l1", "int"),
        ("dram", "memory"),
    ];
    for (kernel, class) in kernels {
        let Some(thread) = thread_of_kernel(kernel) else {
            return skipped("no tier here tells the instruction mix");
        };
        assert_eq!(thread["class"], class, "{thread:#}");
    }
}

/// A run whose command goes on until it is killed.
struct Running {
    consort: Child,
    command: u32,
}

impl Running {
    fn start(args: &[&str], command: &[&str]) -> Self {
        let consort = consort()
            .arg("run")
            .args(args)
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let command = wait_for("the command", || {
            let children = children_of(consort.id());
            children
                .into_iter()
                .find(|pid| comm_of(*pid) == "consort-demo")
        });
        Self { consort, command }
    }

    fn wait_for_restriction(&self) {
        let own = own_mask();
        wait_for("a changed mask", || {
            masks_of(self.command)
                .iter()
                .any(|m| *m != own)
                .then_some(())
        });
    }

    fn wait_for_restoration(&self) {
        let own = own_mask();
        wait_for("every mask as before", || {
            let masks = masks_of(self.command);
            (!masks.is_empty() && masks.iter().all(|m| *m == own)).then_some(())
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .arg("-KILL")
            .arg(self.command.to_string())
            .status();
        let _ = self.consort.kill();
        let _ = self.consort.wait();
    }
}

/// Restricts whatever runs at all, even while other work waits, so that tests do not depend on how
/// busy the host is.
const ALWAYS: &str = "spread:active=0";

/// Lasting masks can be seen from outside.
const PINNED: [&str; 5] = ["--policy", ALWAYS, "--no-back-off", "--enact", "pin"];

const TWO_FP: [&str; 5] = ["fp", "--threads", "2", "--seconds", "120"];

fn two_fp(args: &[&str]) -> Option<Running> {
    if pus() < 2 {
        skipped("one CPU leaves nothing to restrict");
        return None;
    }
    let demo = demo_text();
    let command: Vec<&str> = [demo.as_str()].into_iter().chain(TWO_FP).collect();
    Some(Running::start(args, &command))
}

#[test]
fn threads_are_restricted_while_the_command_runs_and_free_after_sigterm() {
    let Some(mut running) = two_fp(&[&["--interval", "100ms"], &PINNED[..]].concat()) else {
        return;
    };
    running.wait_for_restriction();
    // SIGTERM to Consort is passed on to the command, which ends; so does Consort.
    let pid = running.consort.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(running.consort.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn after_kill_9_every_mask_is_as_before_and_the_command_lives() {
    let Some(mut running) = two_fp(&[&["--interval", "50ms"], &PINNED[..]].concat()) else {
        return;
    };
    running.wait_for_restriction();
    running.consort.kill().unwrap();
    running.consort.wait().unwrap();
    running.wait_for_restoration();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", running.command)).unwrap();
    assert!(!state.contains(") T "), "the command was left stopped");
}

#[test]
fn a_dry_run_plans_and_changes_nothing() {
    let Some(running) = two_fp(&["--interval", "50ms", "--policy", ALWAYS, "--dry-run"]) else {
        return;
    };
    for _ in 0..40 {
        assert!(masks_of(running.command).iter().all(|m| *m == own_mask()));
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    drop(running);
    let report = report_of(
        &["--interval", "100ms", "--policy", ALWAYS, "--dry-run"],
        &[&demo_text(), "fp", "--threads", "2", "--seconds", "1"],
    );
    assert_eq!(report["dry_run"], true);
    assert_eq!(report["moves"], 0);
    assert!(report["plans"].as_u64().unwrap() > 3);
    assert_ne!(
        thread(&report, "fp-0")["cpus"],
        own_mask(),
        "the plan is told"
    );
}

#[test]
fn several_commands_run_side_by_side() {
    if pus() < 2 {
        return skipped("one CPU leaves nothing to restrict");
    }
    let folder = folder();
    let start = |name: &str| {
        let file = folder.path().join(name);
        let child = consort()
            .args([
                "run",
                "-q",
                "--interval",
                "100ms",
                "--policy",
                "spread",
                "--report",
            ])
            .arg(&file)
            .arg("--")
            .arg(demo())
            .args(["fp", "--threads", "2", "--seconds", "1"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        (child, file)
    };
    let runs: Vec<_> = ["a", "b", "c"].into_iter().map(start).collect();
    for (mut child, file) in runs {
        assert!(child.wait().unwrap().success());
        let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(report["restored"], true);
        assert_eq!(warnings(&report), [""; 0], "{report:#}");
    }
}

#[test]
fn thousands_of_short_threads_run_to_their_end_unharmed() {
    let report = report_of(
        &["--interval", "100ms"],
        &[&demo_text(), "churn", "--rate", "2000", "--seconds", "3"],
    );
    assert_eq!(report["exit_code"], 0, "{report:#}");
    assert_eq!(report["restored"], true);
}

#[test]
fn threads_that_place_themselves_are_let_alone() {
    if pus() < 2 {
        return skipped("one CPU leaves no mask to choose");
    }
    let report = report_of(
        &["--interval", "50ms", "--policy", ALWAYS, "--no-back-off"],
        &[&demo_text(), "pin-self", "--seconds", "1"],
    );
    assert_eq!(report["exit_code"], 0, "{report:#}");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("set on purpose") || warnings.contains("another program"),
        "{warnings}"
    );
}

#[test]
fn child_processes_and_renamed_threads_are_found() {
    let report = report_of(
        &["--interval", "100ms"],
        &[&demo_text(), "forks", "--seconds", "1"],
    );
    let threads = report["threads"].as_array().unwrap();
    let pids: std::collections::BTreeSet<u64> =
        threads.iter().map(|t| t["pid"].as_u64().unwrap()).collect();
    assert!(pids.len() >= 2, "{report:#}");
    assert_eq!(report["exit_code"], 0);
}

#[test]
fn the_same_works_for_an_ordinary_user() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("already an ordinary user: every other test covers it");
    }
    let folder = folder();
    let binaries = ["consort", "consort-demo"].map(|name| {
        let from = Path::new(env!("CARGO_BIN_EXE_consort")).with_file_name(name);
        demo();
        let to = folder.path().join(name);
        install(&from, &to);
        to
    });
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let output = run(Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&binaries[0])
        .args([
            "run",
            "--format",
            "json",
            "--interval",
            "50ms",
            "--policy",
            "random",
            "--",
        ])
        .arg(&binaries[1])
        .args(["fp", "--threads", "2", "--seconds", "3"])
        .env_remove("XDG_RUNTIME_DIR")
        .env("HOME", folder.path()));
    let report = json(&output);
    assert_eq!(report["exit_code"], 0, "{report:#}");
    assert_eq!(report["restored"], true);
    assert!(
        report["moves"].as_u64().unwrap() > 0 || pus() < 2,
        "{report:#}"
    );
}

/// Returns true if no place on this host is better than another.
fn is_without_gain() -> bool {
    let machine = json(&run(consort().args(["machine", "--format", "json"])));
    let one = |key: &str| machine[key] == 1;
    let is_alone = |key: &str| machine[key].as_array().is_none_or(|all| all.len() < 2);
    one("smt")
        && one("packages")
        && one("nodes")
        && is_alone("llc_domains")
        && is_alone("core_types")
}

#[test]
fn auto_without_gain_only_watches_and_says_so() {
    if !is_without_gain() {
        return skipped("places differ on this host");
    }
    let output = run(consort()
        .args(["run", "--no-daemon", "--format", "json", "--interval"])
        .args(["50ms", "--policy", "auto", "--"])
        .arg(demo())
        .args(["int", "--threads", "2", "--seconds", "1"]));
    let report = json(&output);
    assert_eq!(report["policy"], "none", "{report:#}");
    assert_eq!(report["policy_requested"], "auto");
    let reason = report["policy_reason"].as_str().unwrap();
    assert!(
        reason.starts_with("no gain to be expected here"),
        "{reason}"
    );
    assert_eq!(
        (&report["moves"], &report["nudges"]),
        (&0.into(), &0.into())
    );
}

/// Number of perf events that a process has open.
fn events_of(pid: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().contains("[perf_event]"))
        .count()
}

#[test]
fn watching_opens_no_event_on_threads_in_short_quanta() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("only root may sample CPUs");
    }
    let mut command = consort();
    command.args([
        "run",
        "-q",
        "--no-daemon",
        "--policy",
        "none",
        "--interval",
        "4ms",
        "--",
    ]);
    command
        .arg(demo())
        .args(["int", "--threads", "7", "--seconds", "60"]);
    let mut consort = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = consort.id();
    let threads = || {
        let of = |child: &u32| {
            std::fs::read_dir(format!("/proc/{child}/task")).map_or(0, Iterator::count)
        };
        children_of(pid).iter().map(of).max().unwrap_or(0)
    };
    wait_for("the threads", || (threads() >= 7).then_some(()));
    // Long enough for the groups of some quanta to be opened.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let (events, most) = (events_of(pid), pus());
    let command = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(command, nix::sys::signal::Signal::SIGTERM).unwrap();
    consort.wait().unwrap();
    assert!(events <= most, "{events} events on {most} CPUs");
}
