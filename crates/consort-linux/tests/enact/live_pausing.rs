//! A command that the live machine pauses: its end, its signals, its terminal.

use super::pausing::{content, has, if_available, is_as_before};
use super::support::{Process, apart, files_in, part, spawn, wait_for, with_session};
use consort_linux::pause::PauseKind;
use libtest_mimic::{Failed, Trial};
use nix::sys::signal::Signal;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const A_FEW_QUANTA: Duration = Duration::from_millis(50);

type Check = fn(PauseKind) -> Result<(), Failed>;

const CHECKS: [(&str, Check); 6] = [
    ("a_stopped_consort_lets_the_command_run", stopped),
    ("a_command_paused_by_plans_ends_with_correct_output", ends),
    ("a_signal_wakes_the_command", wakes),
    ("a_killed_consort_leaves_the_command_running", killed),
    ("the_terminal_stops_a_paused_command", terminal),
    ("a_dry_run_pauses_nothing", dry),
];

pub fn trials() -> Vec<Trial> {
    let of_kind = |kind: PauseKind| {
        CHECKS.map(|(name, check)| {
            let name = format!("live_pausing::{kind}::{name}");
            Trial::test(name, move || if_available(kind, check))
        })
    };
    PauseKind::ALL.into_iter().flat_map(of_kind).collect()
}

/// The live machine with a command that it lets run in one of `every` quanta.
fn live(dir: &Path, kind: PauseKind, every: &str, words: &[&OsStr]) -> Command {
    let own = [dir.as_os_str(), kind.name().as_ref(), every.as_ref()];
    part("live", &[&own, words].concat())
}

/// A script of the shell under the live machine.
fn script(dir: &Path, kind: PauseKind, every: &str, text: &str) -> Process {
    let words = ["sh", "-c", text].map(OsStr::new);
    spawn(apart(&mut live(dir, kind, every, &words)))
}

fn ends(kind: PauseKind) -> Result<(), Failed> {
    if !has("xz") {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let [input, packed, journals] = ["in", "packed", "j"].map(|name| dir.path().join(name));
    // Long enough for many turns, also where other tests have the CPUs meanwhile.
    let content = content().repeat(8);
    std::fs::write(&input, &content)?;
    let words = ["xz", "-c", "-2", "-T2", "--block-size=65536"].map(OsStr::new);
    let words = [&words[..], &[input.as_os_str()]].concat();
    let mut command = live(&journals, kind, "2", &words);
    let out = std::fs::File::create(&packed)?;
    let ended = command.stdout(Stdio::from(out)).stderr(Stdio::piped());
    let ended = ended.spawn()?.wait_with_output()?;
    let reported = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{reported}");
    let pauses: Option<u32> = reported.split(' ').next().and_then(|n| n.parse().ok());
    assert!(pauses.is_some_and(|n| n > 1), "{reported}");
    let output = Command::new("xz").arg("-dc").arg(&packed).output()?;
    assert!(output.status.success() && output.stdout == content);
    assert_eq!(files_in(&journals), 0);
    Ok(())
}

/// CPU time of a process, clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split(' ').collect();
    fields[12].parse().unwrap()
}

fn stopped(kind: PauseKind) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let text = "trap 'exit 7' TERM; echo $$; while :; do :; done";
    // On a busy host the shell needs more than its first quantum to print its number.
    let mut consort = script(dir.path(), kind, "20", text);
    let command: u32 = consort.line().parse()?;
    // Most likely paused when Consort stops; if not, nothing else is expected.
    std::thread::sleep(A_FEW_QUANTA);
    consort.signal(Signal::SIGSTOP);
    let before = ticks(command);
    wait_for("the command to run", || ticks(command) > before + 20);
    consort.signal(Signal::SIGCONT);
    consort.signal(Signal::SIGTERM);
    assert_eq!(consort.0.wait()?.code(), Some(7));
    assert_eq!(files_in(dir.path()), 0);
    Ok(())
}

fn wakes(kind: PauseKind) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let text = "trap 'exit 7' TERM; echo ready; while :; do :; done";
    let mut consort = script(dir.path(), kind, "20", text);
    assert_eq!(consort.line(), "ready");
    // Most likely paused by then; if not, nothing else is expected.
    std::thread::sleep(A_FEW_QUANTA);
    consort.signal(Signal::SIGTERM);
    assert_eq!(consort.0.wait()?.code(), Some(7));
    assert_eq!(files_in(dir.path()), 0);
    Ok(())
}

fn killed(kind: PauseKind) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let text = "cat /proc/self/cgroup | tr '\\n' ' '; echo; while :; do :; done";
    let homes = std::fs::read_to_string("/proc/self/cgroup")?;
    let mut consort = script(dir.path(), kind, "20", text);
    assert!(!consort.line().is_empty());
    std::thread::sleep(A_FEW_QUANTA);
    consort.0.kill()?;
    wait_for("the guardian", || files_in(dir.path()) == 0);
    assert!(is_as_before(&consort, &homes));
    wait_for("the command alone", || {
        let others = with_session(consort.pid()).into_iter();
        others.filter(|&pid| pid != consort.pid()).count() == 1
    });
    Ok(())
}

fn dry(kind: PauseKind) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let own = [dir.path().as_os_str(), kind.name().as_ref(), "20".as_ref()];
    let homes = std::fs::read_to_string("/proc/self/cgroup")?;
    let words = ["sh", "-c", "sleep 0.1; cat /proc/self/cgroup; exit 3"].map(OsStr::new);
    let mut command = part("live-dry", &[&own[..], &words].concat());
    let ended = command.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&ended.stdout), homes);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "0 pauses\n");
    Ok(())
}

/// A shell with job control, as far as it is needed, and a terminal whose user presses Ctrl-Z.
const SHELL: &str = "
import os, pty, signal, sys, time
done, command = sys.argv[1], sys.argv[2:]
terminal = pty.fork()
if terminal[0] == 0:
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    stopped = os.WIFSTOPPED(os.waitpid(job, os.WUNTRACED)[1])
    open(done, 'w').close()
    os.killpg(job, signal.SIGCONT)
    code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    os._exit(code if stopped else 99)
seen = b''
while b'ready' not in seen:
    seen += os.read(terminal[1], 1000)
time.sleep(0.05)
os.write(terminal[1], b'\\x1a')
sys.exit(os.waitstatus_to_exitcode(os.waitpid(terminal[0], 0)[1]))
";

fn terminal(kind: PauseKind) -> Result<(), Failed> {
    if !has("python3") {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let [done, journals] = ["done", "j"].map(|name| dir.path().join(name));
    let text = format!(
        "echo ready; while [ ! -e {} ]; do :; done; exit 5",
        done.display()
    );
    let consort = live(&journals, kind, "20", &["sh", "-c", &text].map(OsStr::new));
    let mut shell = Command::new("python3");
    shell
        .args(["-c", SHELL])
        .arg(&done)
        .arg(std::env::current_exe()?);
    let mut shell = spawn(apart(shell.args(consort.get_args())));
    wait_for("the job", || shell.0.try_wait().unwrap().is_some());
    assert_eq!(shell.0.wait()?.code(), Some(5));
    assert_eq!(files_in(&journals), 0);
    Ok(())
}
