//! Runs in a group of their own.

use super::common::{children_of, comm_of, consort, demo, masks_of, own_mask, wait_for};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder for journals, and so a set of groups, of its own.
pub struct Scene {
    folder: tempfile::TempDir,
}

/// A run that goes on; ended with all that it has started.
pub struct Run {
    child: Child,
    out: PathBuf,
}

/// A run that has ended.
pub struct Ended {
    pub pid: u32,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// Null where none was written.
    pub report: Value,
}

/// Options of most runs of the tests.
const USUAL: [&str; 5] = ["--interval", "20ms", "--no-back-off", "--enact", "pin"];

impl Scene {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runtime")).unwrap();
        Self { folder }
    }

    pub fn runtime(&self) -> PathBuf {
        self.folder.path().join("runtime")
    }

    /// Files in the folder for journals.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.runtime().join("consort"));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// Returns true where a journal names the process.
    pub fn is_journalled(&self, pid: u32) -> bool {
        let line = format!("program {pid} ");
        let named = |path: &PathBuf| read(path).lines().any(|l| l.starts_with(&line));
        self.leftovers().iter().any(named)
    }

    /// A demonstration program that leads the group, and does so already.
    pub fn lead(&self, words: &[&str]) -> Run {
        let run = self.demo("leader", &[], words);
        run.command("consort-demo");
        run
    }

    pub fn demo(&self, name: &str, args: &[&str], words: &[&str]) -> Run {
        let demo = demo();
        let words: Vec<&str> = std::iter::once(demo.to_str().unwrap())
            .chain(words.iter().copied())
            .collect();
        self.start(name, args, &words, b"")
    }

    pub fn start(&self, name: &str, args: &[&str], words: &[&str], input: &[u8]) -> Run {
        let mut run = self.start_with(name, args, words, |_| {});
        run.child.stdin.take().unwrap().write_all(input).unwrap();
        run
    }

    /// `consort run` with the usual arguments and these, in a session of its own.
    pub fn start_with(
        &self,
        name: &str,
        args: &[&str],
        words: &[&str],
        more: impl FnOnce(&mut Command),
    ) -> Run {
        let mut all = USUAL.to_vec();
        if !args.contains(&"--policy") {
            all.extend(["--policy", "spread:active=0"]);
        }
        all.extend(args);
        self.start_as_asked(name, &all, words, more)
    }

    /// `consort run` in the group with these arguments only, in a session of its own.
    pub fn start_as_asked(
        &self,
        name: &str,
        args: &[&str],
        words: &[&str],
        more: impl FnOnce(&mut Command),
    ) -> Run {
        let out = self.folder.path().join(name);
        std::fs::create_dir(&out).unwrap();
        let file = |name: &str| std::fs::File::create(out.join(name)).unwrap();
        let mut command = consort();
        command.args(["run", "--group", "g", "--report"]);
        command.arg(out.join("report.json"));
        command.args(args).arg("--").args(words);
        command
            .env("XDG_RUNTIME_DIR", self.runtime())
            .env("HOME", self.folder.path())
            .stdin(Stdio::piped())
            .stdout(file("out"))
            .stderr(file("err"));
        more(&mut command);
        // SAFETY: setsid is async-signal-safe.
        unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) };
        let child = command.spawn().unwrap();
        Run { child, out }
    }
}

impl Run {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns true where the run has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the command that has this name.
    pub fn command(&self, name: &str) -> u32 {
        wait_for(name, || {
            let mut children = children_of(self.pid()).into_iter();
            children.find(|pid| comm_of(*pid) == name)
        })
    }

    pub fn is_restricted(&self, pid: u32) -> bool {
        masks_of(pid).iter().any(|mask| *mask != own_mask())
    }

    pub fn wait_for_output(&self, text: &str) {
        wait_for(text, || self.output("out").contains(text).then_some(()));
    }

    fn output(&self, name: &str) -> String {
        read(&self.out.join(name))
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.pid().cast_signed());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// SIGKILL for Consort, but not for its command.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Ended {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        let report = read(&self.out.join("report.json"));
        Ended {
            pid: self.pid(),
            code: status.code().unwrap(),
            stdout: self.output("out"),
            stderr: self.output("err"),
            report: serde_json::from_str(&report).unwrap_or_default(),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in members(self.pid()) {
            let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    }
}

/// Every process of a session.
fn members(session: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| session_of(*pid) == Some(session))
        .collect()
}

fn session_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()
}

fn read(path: &Path) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path);
    file.ok().map(|mut file| file.read_to_string(&mut text));
    text
}

/// `leader` or `member`.
pub fn role(report: &Value) -> &str {
    report["group"]["role"].as_str().unwrap()
}

/// The names in a list of a report.
pub fn names(report: &Value, list: &str) -> Vec<String> {
    let rows = report[list].as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}
