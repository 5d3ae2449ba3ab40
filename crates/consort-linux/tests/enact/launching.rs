//! Launching: held before exec, nothing inherited, signals and ends passed on.

use super::support::{
    Process, apart, descriptors_that, files_in, first_two, has_two_pus, mask, only, part, spawn,
    start, tasks, wait_for,
};
use consort_linux::enact::{ChildEvent, LaunchError, RUN_MARKER, launch};
use libtest_mimic::{Failed, Trial};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "launching::the_parent_comes_before_the_first_instruction",
            held,
        ),
        Trial::test("launching::times_are_those_of_the_command", timed),
        Trial::test("launching::a_missing_command_is_named", missing),
        Trial::test(
            "launching::if_the_parent_dies_nothing_is_executed",
            orphaned,
        ),
        Trial::test("launching::no_descriptor_is_passed_on", descriptors),
        Trial::test("launching::exit_codes_and_signals_are_passed_on", statuses),
        Trial::test(
            "launching::a_stop_stops_both_and_a_continue_continues_both",
            stopped,
        ),
        Trial::test(
            "launching::what_the_command_leaves_behind_is_restored",
            left_behind,
        ),
    ]
}

fn held() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let sign = dir.path().join("sign");
    let mut seen = None;
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("echo ${RUN_MARKER} > \"$0\""),
        sign.to_str().unwrap(),
    ]);
    let child = launch(command, "run-7", |pid| {
        let exe = |pid| std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
        seen = Some((pid, exe(pid) == exe(std::process::id()), sign.exists()));
    })?;
    assert_eq!(seen, Some((child.pid(), true, false)));
    assert_eq!(child.next_event(true)?, Some(ChildEvent::Exited(0)));
    assert_eq!(std::fs::read_to_string(&sign)?.trim(), "run-7");
    Ok(())
}

/// The times lie between moments that are surely before and after those of the command.
fn timed() -> Result<(), Failed> {
    let (mut released, begun) = (None, Instant::now());
    let mut command = Command::new("sh");
    command.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
    let child = launch(command, "run-8", |_| {
        // Preparations of Consort, which are not the command's.
        std::thread::sleep(Duration::from_millis(200));
        released = Some(Instant::now());
    })?;
    assert_eq!(child.times(), None);
    child.next_event(true)?;
    let most = released.unwrap().elapsed().as_secs_f64();
    let times = child.times().unwrap();
    assert!(times.wall_s <= most && most < begun.elapsed().as_secs_f64());
    assert!(times.cpu_s > 0.0 && times.own_cpu_s >= 0.0, "{times:?}");
    Ok(())
}

fn missing() -> Result<(), Failed> {
    let error = launch(Command::new("no-such-command"), "x", |_| ()).unwrap_err();
    assert!(matches!(error, LaunchError::NotFound(_)));
    assert_eq!(error.to_string(), "command not found: no-such-command");
    let error = launch(Command::new("/etc/passwd"), "x", |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "command not executable: /etc/passwd: Permission denied (os error 13)"
    );
    Ok(())
}

fn orphaned() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let sign = dir.path().join("sign");
    let args: [&OsStr; 2] = ["touch".as_ref(), sign.as_os_str()];
    let mut parent = spawn(apart(&mut part("hold", &args)));
    let child: u32 = parent.line().parse()?;
    assert!(!mask(child).is_empty());
    parent.kill();
    wait_for("the held child to exit", || tasks(child).is_empty());
    assert!(!sign.exists());
    Ok(())
}

fn descriptors() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let list = dir.path().join("list");
    let enactor = start(&dir.path().join("journals"));
    let mut command = part("fds", &[list.as_os_str()]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = launch(command, enactor.run_id(), |_| ())?;
    assert_eq!(child.next_event(true)?, Some(ChildEvent::Exited(0)));
    let found = std::fs::read_to_string(list)?;
    let expected = descriptors_that(|flags| flags & nix::libc::FD_CLOEXEC == 0);
    assert_eq!(found, expected, "the caller's own are closed on exec");
    assert!(enactor.close().complete);
    Ok(())
}

/// The small `run` with a shell command, in its own session.
fn run(dir: &std::path::Path, script: &str) -> Process {
    let args: [&OsStr; 4] = [
        dir.as_os_str(),
        "sh".as_ref(),
        "-c".as_ref(),
        script.as_ref(),
    ];
    spawn(apart(&mut part("run", &args)))
}

fn statuses() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let code = |script: &str| run(dir.path(), script).0.wait().unwrap().code();
    assert_eq!(code("exit 3"), Some(3));
    assert_eq!(code("kill -KILL $$"), Some(137));
    let mut trapped = run(
        dir.path(),
        "trap 'exit 7' TERM; echo set; while :; do sleep 0.05; done",
    );
    let lines = [trapped.line(), trapped.line()];
    assert!(lines.contains(&"set".to_owned()), "{lines:?}");
    trapped.signal(Signal::SIGTERM);
    assert_eq!(trapped.0.wait()?.code(), Some(7));
    let args: [&OsStr; 2] = [dir.path().as_os_str(), "no-such-command".as_ref()];
    let mut absent = spawn(apart(&mut part("run", &args)));
    assert_eq!(absent.0.wait()?.code(), Some(127));
    assert_eq!(files_in(dir.path()), 0);
    Ok(())
}

fn stopped() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let args: [&OsStr; 3] = [dir.path().as_os_str(), "sleep".as_ref(), "300".as_ref()];
    // Not in a session of its own: a stop in an orphaned group is no stop.
    let mut run = spawn(part("run", &args).process_group(0));
    assert_eq!(run.line(), "ready");
    let pid = Pid::from_raw(run.pid().cast_signed());
    let change = || waitpid(pid, Some(WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED));
    run.signal(Signal::SIGTSTP);
    assert_eq!(change()?, WaitStatus::Stopped(pid, Signal::SIGTSTP));
    run.signal(Signal::SIGCONT);
    assert_eq!(change()?, WaitStatus::Continued(pid));
    run.signal(Signal::SIGTERM);
    assert_eq!(change()?, WaitStatus::Exited(pid, 143));
    Ok(())
}

fn left_behind() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let script = "(sleep 300 & echo $!) & wait";
    let args: [&OsStr; 4] = [
        dir.path().as_os_str(),
        "sh".as_ref(),
        "-c".as_ref(),
        script.as_ref(),
    ];
    let mut run = spawn(apart(&mut part("run", &args)));
    let lines = [run.line(), run.line()];
    let lingering = lines.iter().find_map(|line| line.parse::<u32>().ok());
    let lingering = lingering.ok_or("the command did not tell its child")?;
    assert!(run.0.wait()?.success());
    assert_eq!(
        mask(lingering),
        super::support::own_pus(),
        "not {}",
        only(first_two()[0])
    );
    assert_eq!(files_in(dir.path()), 0);
    Ok(())
}
