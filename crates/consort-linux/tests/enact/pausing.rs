//! Pausing real programs, by every mechanism that this host offers.

use super::support::{
    Process, apart, busy, config, family, files_in, own_pus, part, sleeper, spawn, start, tasks,
    text, wait_for, with_session,
};
use crate::skip::skipped;
use consort_core::ProgramId;
use consort_linux::enact::{Enactor, recover_stale};
use consort_linux::pause::{PauseError, PauseKind, PauseOutcome, Pauser, mechanisms};
use libtest_mimic::{Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

type Check = fn(PauseKind) -> Result<(), Failed>;

const CHECKS: [(&str, Check); 8] = [
    ("everything_of_a_busy_program_stands_still", stands_still),
    ("what_others_have_stopped_stays_stopped", stopped_before),
    ("xz_ends_with_correct_output", xz),
    ("python_threads_end_with_correct_output", python),
    ("a_killed_owner_leaves_nothing_paused", killed),
    ("a_dropped_owner_leaves_nothing_paused", dropped),
    ("with_both_killed_the_next_start_resumes", both),
    ("an_ended_program_is_forgotten", ended),
];

pub fn trials() -> Vec<Trial> {
    let of_kind = |kind: PauseKind| {
        CHECKS.map(|(name, check)| {
            let name = format!("pausing::{kind}::{name}");
            Trial::test(name, move || if_available(kind, check))
        })
    };
    PauseKind::ALL.into_iter().flat_map(of_kind).collect()
}

pub fn if_available(kind: PauseKind, check: Check) -> Result<(), Failed> {
    let found = mechanisms("/".as_ref());
    let found = found.iter().find(|m| m.kind == kind).unwrap();
    if !found.available {
        skipped(&found.reason);
        return Ok(());
    }
    check(kind)
}

pub fn kind_named(name: &str) -> PauseKind {
    let mut kinds = PauseKind::ALL.into_iter();
    kinds.find(|kind| kind.name() == name).unwrap()
}

/// An enactor and a pauser with one mechanism, for one program.
struct Bench {
    enactor: Enactor,
    pauser: Pauser,
    program: Process,
    /// The cgroups of the program before.
    homes: String,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(kind: PauseKind, program: Process) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut enactor = start(dir.path());
        enactor.adopt(program.thread(), own_pus()).unwrap();
        Self {
            dir,
            enactor,
            pauser: Pauser::with_kinds("/".as_ref(), vec![kind]),
            homes: cgroups_of(program.pid()),
            program,
        }
    }

    fn id(&self) -> ProgramId {
        ProgramId(self.program.pid())
    }

    fn pause(&mut self) -> Result<PauseOutcome, PauseError> {
        let (id, pids) = (self.id(), BTreeSet::from([self.program.pid()]));
        self.pauser.pause(&mut self.enactor, id, &pids)
    }

    fn resume(&mut self) -> bool {
        let id = self.id();
        self.pauser.resume(&mut self.enactor, id).unwrap()
    }

    fn is_as_before(&self) -> bool {
        is_as_before(&self.program, &self.homes)
    }
}

fn cgroups_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default()
}

/// Returns true if a program and all of its session are in their cgroups of before, and none is
/// stopped.
pub fn is_as_before(program: &Process, homes: &str) -> bool {
    let is_back = |pid: u32| {
        let cgroups = cgroups_of(pid);
        // A process that is about to exit may be the last to remember a cgroup that is gone.
        let is_dying = cgroups.contains("(deleted)") || letters(pid).is_empty();
        is_dying || (cgroups == homes && !letters(pid).contains('T'))
    };
    with_session(program.pid()).into_iter().all(is_back)
}

/// State letters of the living threads of a process.
fn letters(pid: u32) -> String {
    let letter = |tid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    let letters = tasks(pid)
        .into_iter()
        .filter_map(|thread| letter(thread.tid));
    letters.filter(|letter| !"ZX".contains(*letter)).collect()
}

/// Counts that the threads of a busy program have written, a file's content for each.
fn counted(dir: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let files = paths.iter().map(std::fs::read);
    files.map(Result::unwrap).collect()
}

/// Pauses a program until it stands still: on a crowded host its threads may have to wait for a CPU
/// longer than a pause waits for them.
fn pause_for_certain(bench: &mut Bench) -> Result<(), Failed> {
    let first = bench.pause()?;
    if first.unsettled.is_some() {
        wait_for("a program that stands still", || {
            bench.pause().is_ok_and(|pause| pause.unsettled.is_none())
        });
    }
    Ok(())
}

fn stands_still(kind: PauseKind) -> Result<(), Failed> {
    let done = tempfile::tempdir()?;
    let program = spawn(apart(&mut part("busy", &[done.path().as_os_str()])));
    wait_for("work that is done", || counted(done.path()).len() == 4);
    let mut bench = Bench::new(kind, program);
    for _ in 0..20 {
        pause_for_certain(&mut bench)?;
        let before = (counted(done.path()), family(bench.program.pid()));
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(counted(done.path()), before.0, "it has worked");
        // One that was ending goes on to end, and its children change their parent.
        let after = family(bench.program.pid());
        assert!(after.is_subset(&before.1), "it has started processes");
        assert!(bench.resume());
        wait_for("work that goes on", || counted(done.path()) != before.0);
    }
    let report = bench.enactor.close();
    assert!(report.complete, "{report:?}");
    // Processes that are ending are seen here and there until they have ended.
    wait_for("all as before", || {
        is_as_before(&bench.program, &bench.homes)
    });
    Ok(())
}

fn stopped_before(kind: PauseKind) -> Result<(), Failed> {
    let mut command = Command::new("sh");
    let program = spawn(apart(command.args(["-c", "sleep 300 & wait"])));
    wait_for("the child", || family(program.pid()).len() == 2);
    let child = *family(program.pid())
        .iter()
        .find(|&&p| p != program.pid())
        .unwrap();
    kill(Pid::from_raw(child.cast_signed()), Signal::SIGSTOP)?;
    wait_for("the stop", || letters(child) == "T");
    let mut bench = Bench::new(kind, program);
    for _ in 0..3 {
        bench.pause()?;
        bench.resume();
        assert_eq!(letters(child), "T");
        assert_eq!(letters(bench.program.pid()).replace('R', "S"), "S");
    }
    assert!(bench.enactor.close().complete);
    assert_eq!(letters(child), "T");
    assert_eq!(cgroups_of(child), bench.homes);
    Ok(())
}

/// Pauses before the program gets the end of its input.
fn pauses() -> usize {
    let requested = std::env::var("CONSORT_PAUSES").ok();
    requested.and_then(|n| n.parse().ok()).unwrap_or(1_000)
}

/// Runs a command whose output goes to a file and that gets a piece of its input after each pause,
/// so that it cannot end before the last.
fn run_paused(
    kind: PauseKind,
    command: &mut Command,
    input: &[u8],
    out: &Path,
) -> Result<(), Failed> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::from(std::fs::File::create(out)?));
    let mut program = spawn(apart(command));
    let mut pipe = program.0.stdin.take().unwrap();
    let mut bench = Bench::new(kind, program);
    for piece in input.chunks(input.len().div_ceil(pauses())) {
        bench.pause()?;
        assert!(bench.resume());
        pipe.write_all(piece)?;
    }
    drop(pipe);
    assert!(bench.program.0.wait()?.success());
    assert!(bench.enactor.close().complete);
    assert_eq!(files_in(bench.dir.path()), 0);
    Ok(())
}

/// Returns true if a program of this name can be started; reports a skip if not.
pub fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        skipped(format_args!("{program} is not installed"));
    }
    there
}

/// Bytes that a compressor makes smaller, but not to nothing.
pub fn content() -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = Vec::new();
    while bytes.len() < 3 << 20 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        bytes.extend(format!("{} ", state >> 52).bytes());
    }
    bytes
}

fn xz(kind: PauseKind) -> Result<(), Failed> {
    if !has("xz") {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let packed = dir.path().join("packed");
    let mut command = Command::new("xz");
    command.args(["-c", "-2", "-T2", "--block-size=65536"]);
    run_paused(kind, &mut command, &content(), &packed)?;
    let output = Command::new("xz").arg("-dc").arg(&packed).output()?;
    assert!(output.status.success() && output.stdout == content());
    Ok(())
}

/// Four threads, each hashing every fourth byte of the input that comes.
const SUMS: &str = "
import hashlib, queue, sys, threading
queues = [queue.Queue() for _ in range(4)]
results = {}
def work(n):
    state = bytes([n])
    while (byte := queues[n].get()) is not None:
        state = hashlib.sha256(state + bytes([byte]) * 8192).digest()
    results[n] = state.hex()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
for at, byte in enumerate(iter(lambda: sys.stdin.buffer.read(1), b'')):
    queues[at % 4].put(byte[0])
[q.put(None) for q in queues]
[t.join() for t in threads]
print(sorted(results.items()))
";

fn python(kind: PauseKind) -> Result<(), Failed> {
    if !has("python3") {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let input = &content()[..10_000];
    let outs = ["paused", "alone"].map(|name| dir.path().join(name));
    let command = || {
        let mut command = Command::new("python3");
        command.args(["-c", SUMS]);
        command
    };
    run_paused(kind, &mut command(), input, &outs[0])?;
    let text = dir.path().join("input");
    std::fs::write(&text, input)?;
    let alone = command().stdin(std::fs::File::open(text)?).output()?;
    assert!(alone.status.success());
    assert_eq!(std::fs::read(&outs[0])?, alone.stdout);
    Ok(())
}

fn killed(kind: PauseKind) -> Result<(), Failed> {
    let program = busy();
    let homes = cgroups_of(program.pid());
    for round in 0..10u64 {
        let dir = tempfile::tempdir()?;
        let name = kind.name();
        let args = [dir.path().as_os_str(), &text(program.pid()), name.as_ref()];
        let mut pauser = spawn(apart(&mut part("pauser", &args)));
        assert_eq!(pauser.line(), "ready");
        // At another point of its turn in each round.
        std::thread::sleep(Duration::from_micros(370 * round));
        pauser.kill();
        wait_for("the guardian", || files_in(dir.path()) == 0);
        // Processes that are ending are seen here and there until they have ended.
        let what = format!("all as before, round {round}");
        wait_for(&what, || is_as_before(&program, &homes));
    }
    Ok(())
}

fn dropped(kind: PauseKind) -> Result<(), Failed> {
    let mut bench = Bench::new(kind, sleeper());
    bench.pause()?;
    assert!(!bench.is_as_before());
    drop(bench.enactor);
    wait_for("the guardian", || files_in(bench.dir.path()) == 0);
    assert!(is_as_before(&bench.program, &bench.homes));
    Ok(())
}

fn both(kind: PauseKind) -> Result<(), Failed> {
    let mut bench = Bench::new(kind, sleeper());
    bench.pause()?;
    let dirs: Vec<PathBuf> = config(bench.dir.path()).runtime_dirs;
    let guardian = Pid::from_raw(bench.enactor.guardian_pid().cast_signed());
    kill(guardian, Signal::SIGKILL)?;
    drop(bench.enactor);
    wait_for("the lock", || recover_stale(&dirs).restored.len() == 1);
    assert!(is_as_before(&bench.program, &bench.homes));
    assert_eq!(files_in(bench.dir.path()), 0);
    Ok(())
}

fn ended(kind: PauseKind) -> Result<(), Failed> {
    let mut bench = Bench::new(kind, sleeper());
    bench.pause()?;
    bench.program.signal(Signal::SIGKILL);
    bench.resume();
    bench.program.0.wait()?;
    let id = bench.id();
    bench.pauser.forget(&mut bench.enactor, id)?;
    assert!(!bench.pauser.is_paused(id));
    assert!(matches!(bench.pause(), Err(PauseError::Gone(_))));
    let report = bench.enactor.close();
    assert_eq!(
        (report.thawed, report.continued, report.complete),
        (0, 0, true)
    );
    Ok(())
}
