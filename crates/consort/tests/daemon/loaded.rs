//! Hosts on which CPU time is short or cannot be measured: what holds a thread back, and what is not
//! known of it, is never reported as a finding about the thread.

use super::common::{consort, folder, json, pus, skipped, wait_for};
use super::compiled::compiled;
use super::{Daemon, Spinner};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// CPU time of a process's first thread, s.
fn cpu_s(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    let ns: f64 = text.split(' ').next().unwrap().parse().unwrap();
    ns / 1e9
}

#[test]
fn attach_without_perf_counts_from_the_attaching() {
    let Some(no_perf) = compiled("no_perf", &[]) else {
        return;
    };
    let spinner = Spinner::start();
    wait_for("CPU time from before", || {
        (cpu_s(spinner.pid()) > 1.0).then_some(())
    });
    let folder = folder();
    let before_s = cpu_s(spinner.pid());
    let child = Command::new(no_perf.path())
        .arg(consort().get_program())
        .args(["attach", "--foreground", "--format", "json", "--quiet"])
        .args(["--policy", "none", "--interval", "50ms"])
        .arg(spinner.id())
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("CPU time of the attached", || {
        (cpu_s(spinner.pid()) > before_s + 0.5).then_some(())
    });
    let mut kill = Command::new("kill");
    kill.args(["-INT", &child.id().to_string()]);
    assert!(kill.status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let most_s = cpu_s(spinner.pid()) - before_s;
    let report = json(&output);
    assert_eq!(report["tier"], "proc", "{report:#}");
    let [all_s, own_s, share] = ["/cpu_s", "/overhead/cpu_s", "/overhead/share_of_managed"]
        .map(|key| report.pointer(key).and_then(Value::as_f64).unwrap());
    assert!(all_s > 0.0 && all_s <= most_s, "{all_s} s of {most_s} s");
    assert!((share - own_s / all_s).abs() < 1e-6, "{report:#}");
    let thread = &report["threads"][0];
    // The process's time is in ticks of 10 ms, and is read last.
    let thread_s = thread["cpu_s"].as_f64().unwrap();
    assert!(
        thread_s > 0.0 && thread_s < all_s + 0.02 && thread_s <= most_s,
        "{report:#}"
    );
    assert_eq!(thread["class"], "unknown", "nothing shows what it does");
}

#[test]
fn thread_that_waits_for_a_cpu_is_not_blocked() {
    let hogs: Vec<Spinner> = (0..2 * pus()).map(|_| Spinner::start()).collect();
    let mut humble = Command::new("nice");
    humble.args(["-n", "19", "sh"]);
    let humble = Spinner::of(humble);
    let daemon = Daemon::with("", &["--policy", "none"]);
    daemon.ask(&["attach", &humble.id()]);
    let thread = wait_for("a share of a CPU below 5 percent", || {
        let status = daemon.status();
        let thread = status["threads"].as_array()?.first()?.clone();
        let share = thread["cpu_share"].as_f64()?;
        (share > 0.0 && share < 0.05).then_some(thread)
    });
    assert_ne!(thread["class"], "blocked", "{thread:#}");
    drop(hogs);
}

/// A control group with a limit of a fiftieth of a CPU, removed when dropped.
struct Limited(PathBuf);

impl Limited {
    fn make() -> Option<Self> {
        let name = format!("consort-test-{}-limited", std::process::id());
        let set = |dir: &Path| {
            let put = |file: &str, text: &str| std::fs::write(dir.join(file), text).is_ok();
            let two = || dir.join("cpu.max").exists() && put("cpu.max", "2000 100000");
            two() || put("cpu.cfs_period_us", "100000") && put("cpu.cfs_quota_us", "2000")
        };
        let tops = ["cpu", "", "unified"].map(|top| Path::new("/sys/fs/cgroup").join(top));
        let mut dirs = tops.into_iter().map(|top| top.join(&name));
        let made = dirs.find(|dir| {
            let is_limited = std::fs::create_dir(dir).is_ok() && set(dir);
            if !is_limited {
                let _ = std::fs::remove_dir(dir);
            }
            is_limited
        });
        if made.is_none() {
            skipped("no control group with a limit of CPU time can be made here");
        }
        made.map(Self)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        wait_for("the group to be empty", || {
            std::fs::remove_dir(&self.0).ok()
        });
    }
}

#[test]
fn throttled_thread_is_left_and_the_limit_named() {
    let Some(group) = Limited::make() else {
        return;
    };
    let spinner = Spinner::start();
    std::fs::write(group.0.join("cgroup.procs"), spinner.id()).unwrap();
    let daemon = Daemon::with("", &["--policy", "spread"]);
    daemon.ask(&["attach", &spinner.id()]);
    let left = "not placed: throttled by the limit of";
    let thread = wait_for("a limit that holds", || {
        let thread = daemon.status()["threads"].as_array()?.first()?.clone();
        thread["chosen"]
            .as_str()?
            .starts_with(left)
            .then_some(thread)
    });
    let path = format!("/{}", group.0.file_name().unwrap().to_str().unwrap());
    assert_eq!(thread["throttled"]["group"], path, "{thread:#}");
    assert_eq!(thread["throttled"]["cpus"], 0.02);
    let expected = format!("{left} {path} (0.02 CPU)");
    let chosen = thread["chosen"].as_str().unwrap();
    assert!(chosen.starts_with(&expected), "{chosen}");
    let why = wait_for("the limit as a reason", || {
        let why = daemon.ask(&["explain", &spinner.id()]);
        let why = String::from_utf8(why.stdout).unwrap();
        why.contains("throttled by the limit of").then_some(why)
    });
    assert!(why.contains("(0.02 CPU)"), "{why}");
}
