//! `consort run`, killed by SIGKILL at any moment: no thread is left with a
//! changed mask or stopped, no journal and no guardian is left behind.
//!
//! `CONSORT_KILLS` says how often to kill (20), `CONSORT_SEED` at which moments.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{consort, demo, folder, install, mask_of, own_mask, pus, skipped, wait_for};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `nobody`, an ordinary user wherever there is no other.
const NOBODY: u32 = 65_534;

/// Moments reach from before the journal to well after the first plan.
const SPREAD_US: u64 = 400_000;

/// Threads that work, and processes and threads that come and go.
const WORK: &str = "\"$D\" fp --threads 3 --seconds 60 & \
    \"$D\" churn --rate 300 --seconds 60 & \
    while :; do (:); \"$D\" int --threads 2 --seconds 0.05; done";

fn from_environment(name: &str, usually: u64) -> u64 {
    let wish = std::env::var(name).ok();
    wish.and_then(|n| n.parse().ok()).unwrap_or(usually)
}

/// The generator of Steele, Lea and Flood ("Fast Splittable Pseudorandom Number Generators", 2014).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn numbers(dir: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// State letter and session of a thread or process.
fn state_and_session(dir: &str) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("{dir}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((
        fields.first()?.chars().next()?,
        fields.get(3)?.parse().ok()?,
    ))
}

/// Every living process of a session; who reaps orphans may take seconds for the dead.
fn members(session: u32) -> Vec<u32> {
    let is_member = |pid: &u32| match state_and_session(&format!("/proc/{pid}")) {
        None | Some(('Z' | 'X', _)) => false,
        Some((_, its)) => its == session,
    };
    numbers("/proc").into_iter().filter(is_member).collect()
}

/// Living threads of a session that are stopped or have another mask than the tests.
fn astray(session: u32) -> Vec<String> {
    let own = own_mask();
    let mut found = Vec::new();
    for pid in members(session) {
        for tid in numbers(&format!("/proc/{pid}/task")) {
            let dir = format!("/proc/{pid}/task/{tid}");
            let mask = mask_of(Path::new(&dir));
            match state_and_session(&dir) {
                None | Some(('Z' | 'X', _)) => {}
                Some((state, _)) => {
                    let moved = mask.as_ref().is_some_and(|mask| *mask != own);
                    if state == 'T' || moved {
                        found.push(format!("{dir} {state} {mask:?}"));
                    }
                }
            }
        }
    }
    found
}

/// Living threads of a session that have another mask than the tests, stopped ones left out.
fn narrowed(session: u32) -> Vec<String> {
    let mut found = astray(session);
    found.retain(|thread| !thread.contains(" T "));
    found
}

/// Guardians of runs whose journals are in this folder.
fn guardians(runtime: &Path) -> Vec<u32> {
    let runtime = runtime.to_str().unwrap();
    let names_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("consort-guardian") && line.contains(runtime)
    };
    numbers("/proc").into_iter().filter(names_it).collect()
}

/// Folder and programs of a series of killed runs.
struct Scene {
    folder: tempfile::TempDir,
    consort: PathBuf,
    demo: PathBuf,
    user: Option<u32>,
}

impl Scene {
    fn new(user: Option<u32>) -> Self {
        let folder = folder();
        open(folder.path(), 0o755);
        let copy = |from: PathBuf, name: &str| {
            let to = folder.path().join(name);
            install(&from, &to);
            to
        };
        let runtime = folder.path().join("runtime");
        std::fs::create_dir(&runtime).unwrap();
        open(&runtime, 0o700);
        if user.is_some() {
            std::os::unix::fs::chown(&runtime, user, user).unwrap();
        }
        Self {
            consort: copy(consort().get_program().into(), "consort"),
            demo: copy(demo(), "consort-demo"),
            folder,
            user,
        }
    }

    fn runtime(&self) -> PathBuf {
        self.folder.path().join("runtime")
    }

    fn journals(&self) -> usize {
        std::fs::read_dir(self.runtime().join("consort")).map_or(0, Iterator::count)
    }

    /// `consort run` of some words, apart from the session of the tests.
    fn command(&self, words: &[&str]) -> Command {
        self.command_with(&[], words)
    }

    /// The same with more options.
    fn command_with(&self, options: &[&str], words: &[&str]) -> Command {
        let mut command = Command::new(&self.consort);
        command.args(["run", "-q", "--interval", "10ms", "--no-back-off"]);
        command.args(["--policy", "spread:active=0", "--enact", "pin"]);
        command.args(options).arg("--").args(words);
        command.env("D", &self.demo).env("HOME", self.folder.path());
        command
            .env("XDG_RUNTIME_DIR", self.runtime())
            .current_dir("/");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        // SAFETY: setsid is async-signal-safe.
        unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) };
        command
    }
}

fn open(place: &Path, mode: u32) {
    std::fs::set_permissions(place, PermissionsExt::from_mode(mode)).unwrap();
}

/// A run in its own session, all of which ends with this value.
struct Session(Child);

impl Session {
    fn id(&self) -> u32 {
        self.0.id()
    }

    fn kill_owner(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        // Processes that are being forked meanwhile are met in the next round.
        while let left @ [_, ..] = &members(self.id())[..] {
            for pid in left {
                let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Counts over a series of kills.
#[derive(Debug, Default)]
struct Tally {
    restricted: u32,
    left_to_the_next_start: u32,
    slowest: Duration,
}

/// One kill: at a moment after the start, or after the first restricted thread.
fn kill_once(scene: &Scene, moment: u64, tally: &mut Tally) {
    let mut run = Session(scene.command(&["sh", "-c", WORK]).spawn().unwrap());
    if moment.is_multiple_of(2) {
        wait_for("a restricted thread", || {
            (!astray(run.id()).is_empty()).then_some(())
        });
        std::thread::sleep(Duration::from_micros(moment % (SPREAD_US / 10)));
    } else {
        std::thread::sleep(Duration::from_micros(moment % SPREAD_US));
    }
    tally.restricted += u32::from(!astray(run.id()).is_empty());
    run.kill_owner();
    let dead = Instant::now();
    wait_for("the guardian's end", || {
        guardians(&scene.runtime()).is_empty().then_some(())
    });
    tally.slowest = tally.slowest.max(dead.elapsed());
    if scene.journals() > 0 {
        // Killed before it had a guardian, and so before it moved anybody.
        tally.left_to_the_next_start += 1;
        assert!(scene.command(&["true"]).status().unwrap().success());
    }
    assert_eq!(scene.journals(), 0);
    assert_eq!(astray(run.id()), [""; 0]);
}

fn kill_again_and_again(user: Option<u32>, usually: u64) {
    if pus() < 2 {
        return skipped("one CPU leaves no mask to change");
    }
    let (count, seed) = (
        from_environment("CONSORT_KILLS", usually),
        from_environment("CONSORT_SEED", 1),
    );
    let (scene, mut state, mut tally) = (Scene::new(user), seed, Tally::default());
    let start = Instant::now();
    for kill in 0..count {
        println!("seed {seed}, kill {kill}");
        kill_once(&scene, draw(&mut state), &mut tally);
    }
    println!("{count} kills in {:.1?}: {tally:?}", start.elapsed());
}

#[test]
fn stopped_run_is_restored_and_resumes() {
    if pus() < 2 {
        return skipped("one CPU leaves no mask to change");
    }
    let scene = Scene::new(None);
    let script = "\"$D\" fp --threads 3 --seconds 600 & read line; kill $!";
    let report = scene.folder.path().join("report.json");
    let options = ["--report", report.to_str().unwrap()];
    let mut command = scene.command_with(&options, &["sh", "-c", script]);
    let mut run = Session(command.stdin(Stdio::piped()).spawn().unwrap());
    let consort = nix::unistd::Pid::from_raw(run.id().cast_signed());
    let signal = |signal| nix::sys::signal::kill(consort, signal).unwrap();
    let is_narrowed = || (!narrowed(run.id()).is_empty()).then_some(());
    wait_for("a restricted thread", is_narrowed);
    signal(nix::sys::signal::Signal::SIGSTOP);
    wait_for("the guardian", || {
        narrowed(run.id()).is_empty().then_some(())
    });
    signal(nix::sys::signal::Signal::SIGCONT);
    wait_for("a restricted thread", is_narrowed);
    drop(run.0.stdin.take());
    assert!(run.0.wait().is_ok());
    let text = std::fs::read_to_string(report).unwrap();
    assert!(text.contains("the guardian put masks back"), "{text}");
    assert!(!text.contains("was released"), "{text}");
    assert_eq!(scene.journals(), 0);
}

#[test]
fn nothing_is_left_after_any_sigkill() {
    kill_again_and_again(None, 20);
}

#[test]
fn nothing_is_left_after_any_sigkill_of_an_ordinary_user_s_run() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("already an ordinary user: the other test covers it");
    }
    kill_again_and_again(Some(NOBODY), 10);
}
