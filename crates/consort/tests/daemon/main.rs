//! The daemon and what speaks with it, with real processes whose masks are read back.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/compiled.rs"]
mod compiled;

mod cgroups;
mod clients;
mod cpuset;
mod floods;
mod foreground;
mod killed;
mod loaded;
mod names;
mod reload;
mod soak;
mod stopped;
mod users;
mod views;

use common::{consort, folder, json, masks_of, own_mask, pus, run, skipped, stderr, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A program that spins until it is dropped.
struct Spinner(Child);

impl Spinner {
    fn start() -> Self {
        Self::of(Command::new("sh"))
    }

    /// A shell by way of another program.
    fn of(mut shell: Command) -> Self {
        let script = "echo up; while :; do :; done";
        let mut child = shell
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn id(&self) -> String {
        self.pid().to_string()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A daemon with a folder of its own, which is stopped when dropped.
struct Daemon {
    child: Child,
    folder: tempfile::TempDir,
}

impl Daemon {
    /// Places threads by lasting masks, so that they can be read back.
    fn start() -> Self {
        Self::with("", &[])
    }

    fn with(config: &str, args: &[&str]) -> Self {
        Self::by(consort(), config, args)
    }

    /// One that a program starts, which is given the arguments.
    fn by(program: Command, config: &str, args: &[&str]) -> Self {
        let folder = folder();
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        open(folder.path());
        let child = spawn_by(program, folder.path(), args);
        let daemon = Self { child, folder };
        daemon.wait_until_up();
        daemon
    }

    /// Kills it with SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the next one in the same folder.
    fn start_again(&mut self, args: &[&str]) {
        self.child = spawn(self.folder.path(), args);
        self.wait_until_up();
    }

    fn wait_until_up(&self) {
        wait_for("the daemon", || {
            self.ask(&["status"]).status.success().then_some(())
        });
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn configure(&self, config: &str) {
        std::fs::write(self.folder.path().join("config.toml"), config).unwrap();
    }

    fn ask(&self, args: &[&str]) -> Output {
        run(consort().args(args).arg("--socket").arg(self.socket()))
    }

    fn status(&self) -> Value {
        json(&self.ask(&["status", "--format", "json"]))
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Ends it as a service manager would; its exit code.
    fn stop(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon with this folder's configuration, socket and log.
fn spawn(folder: &Path, args: &[&str]) -> Child {
    spawn_by(consort(), folder, args)
}

fn spawn_by(mut program: Command, folder: &Path, args: &[&str]) -> Child {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"));
    program
        .args(["daemon", "--enact", "pin", "--interval", "50ms"])
        .args(args)
        .arg("--config")
        .arg(folder.join("config.toml"))
        .arg("--socket")
        .arg(folder.join("control.sock"))
        .env("XDG_RUNTIME_DIR", folder)
        .env("CONSORT_LOG", "info")
        .stderr(Stdio::from(log.unwrap()))
        .spawn()
        .unwrap()
}

/// Lets other users reach what is in a folder.
fn open(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Waits until all threads of a process have this mask, or another.
fn wait_for_mask(pid: u32, is_right: impl Fn(&str) -> bool) {
    wait_for("masks", || {
        let masks = masks_of(pid);
        (!masks.is_empty() && masks.iter().all(|mask| is_right(mask))).then_some(())
    });
}

/// Returns true where this host has CPUs to choose among; says so when it has not.
fn has_choice() -> bool {
    if pus() < 2 {
        skipped("a single CPU leaves nothing to place");
    }
    pus() >= 2
}

#[test]
fn what_is_attached_is_placed_told_and_put_back_when_detached_and_at_the_end() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let (a, b) = (Spinner::start(), Spinner::start());
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    let attached = daemon.ask(&["attach", &a.id(), &b.id()]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    wait_for_mask(a.pid(), |mask| mask != own);
    wait_for_mask(b.pid(), |mask| mask != own);
    let status = daemon.status();
    assert_eq!(status["policy"], "spread");
    assert_eq!(
        status["programs"].as_array().unwrap().len(),
        2,
        "{status:#}"
    );
    assert_eq!(status["threads"].as_array().unwrap().len(), 2, "{status:#}");
    let why = json(&daemon.ask(&["explain", &a.id(), "--format", "json"]));
    assert_eq!(why["policy"], "spread");
    assert!(!why["chosen"].as_str().unwrap().is_empty(), "{why:#}");
    // A thread that was not active in the last quantum has no place that could be compared.
    let compared = why["alternatives"].as_array().unwrap();
    let chosen = compared.iter().filter(|place| place["is_chosen"] == true);
    assert_eq!(chosen.count(), usize::from(!compared.is_empty()), "{why:#}");
    assert!(daemon.ask(&["detach", &a.id()]).status.success());
    // At once, without waiting for the next quantum.
    let status = daemon.status();
    for key in ["programs", "threads"] {
        let pids = status[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["pid"]);
        assert_eq!(pids.collect::<Vec<_>>(), [b.pid()], "{status:#}");
    }
    assert_eq!(daemon.ask(&["explain", &a.id()]).status.code(), Some(2));
    wait_for_mask(a.pid(), |mask| mask == own);
    let again = daemon.ask(&["detach", &a.id()]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("is not managed"),
        "{}",
        stderr(&again)
    );
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(masks_of(b.pid()), [own]);
}

#[test]
fn commands_are_handed_over_to_the_daemon_and_outlive_it() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let mut daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    // Its usual place, so that `run` finds it.
    let usual = daemon.folder.path().join("consort");
    std::fs::create_dir_all(&usual).unwrap();
    std::os::unix::fs::symlink(daemon.socket(), usual.join("control.sock")).unwrap();
    let mut command = consort()
        .args([
            "run",
            "--",
            "sh",
            "-c",
            "i=0; while [ ! -e done ]; do :; done; exit 7",
        ])
        .current_dir(daemon.folder.path())
        .env("XDG_RUNTIME_DIR", daemon.folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let program = wait_for("the program", || {
        let status = daemon.status();
        let pid = status["programs"][0]["pid"].as_u64();
        pid.map(|pid| pid as u32)
    });
    wait_for_mask(program, |mask| mask != own);
    daemon.kill();
    wait_for_mask(program, |mask| mask == own);
    std::fs::write(daemon.folder.path().join("done"), "").unwrap();
    let output = command.wait().unwrap();
    assert_eq!(output.code(), Some(7));
    let mut reported = String::new();
    std::io::Read::read_to_string(&mut command.stderr.take().unwrap(), &mut reported).unwrap();
    assert!(reported.contains("managed by the daemon"), "{reported}");
}

#[test]
fn run_under_a_daemon_keeps_its_table() {
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    let usual = daemon.folder.path().join("consort");
    std::fs::create_dir_all(&usual).unwrap();
    std::os::unix::fs::symlink(daemon.socket(), usual.join("control.sock")).unwrap();
    // Some seconds of CPU time, so that the daemon has seen it when its state is requested.
    let work = "i=0; while [ $i -lt 4000000 ]; do i=$((i+1)); done";
    let output = run(consort()
        .args(["run", "--", "sh", "-c", work])
        .env("XDG_RUNTIME_DIR", daemon.folder.path()));
    let reported = stderr(&output);
    assert!(reported.contains("managed by the daemon"), "{reported}");
    let has_thread = |line: &str| line.split_whitespace().nth(1) == Some("sh");
    assert!(reported.lines().any(has_thread), "no threads: {reported}");
}

#[test]
fn what_was_detached_can_be_attached_again() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let spinner = Spinner::start();
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    for _ in 0..3 {
        assert!(daemon.ask(&["attach", &spinner.id()]).status.success());
        wait_for_mask(spinner.pid(), |mask| mask != own);
        assert!(daemon.ask(&["detach", &spinner.id()]).status.success());
        wait_for_mask(spinner.pid(), |mask| mask == own);
    }
}

#[test]
fn a_killed_daemon_leaves_no_mask_and_the_next_one_starts() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let spinner = Spinner::start();
    let mut daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    daemon.ask(&["attach", &spinner.id()]);
    wait_for_mask(spinner.pid(), |mask| mask != own);
    daemon.kill();
    wait_for_mask(spinner.pid(), |mask| mask == own);
    let dead = daemon.ask(&["status"]);
    assert_eq!(dead.status.code(), Some(1));
    assert!(
        stderr(&dead).contains("no daemon runs"),
        "{}",
        stderr(&dead)
    );
    daemon.start_again(&[]);
}

#[test]
fn single_programs_have_policies_of_their_own() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let (a, b) = (Spinner::start(), Spinner::start());
    let daemon = Daemon::with("[daemon]\npolicy = \"none\"\n", &[]);
    assert!(daemon.ask(&["attach", &a.id()]).status.success());
    let given = daemon.ask(&["attach", &b.id(), "--policy", "spread:active=0"]);
    assert!(given.status.success(), "{}", stderr(&given));
    wait_for_mask(b.pid(), |mask| mask != own);
    assert_eq!(masks_of(a.pid()), [own]);
    let why = json(&daemon.ask(&["explain", &b.id(), "--format", "json"]));
    assert_eq!(why["policy"], "spread:active=0");
}

#[test]
fn a_second_daemon_is_refused_and_named() {
    let daemon = Daemon::start();
    let second = run(consort()
        .arg("daemon")
        .arg("--socket")
        .arg(daemon.socket())
        .env("XDG_RUNTIME_DIR", daemon.folder.path()));
    assert_eq!(second.status.code(), Some(1));
    let expect = format!("a daemon runs already, process {}", daemon.child.id());
    assert!(stderr(&second).contains(&expect), "{}", stderr(&second));
}
