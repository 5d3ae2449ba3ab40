//! A small `run`: launches a command under management and passes its end on.

use super::super::support::{ever, first_two, mask, only, own_pus, say, start};
use consort_linux::enact::{
    ChildEvent, Enactor, LaunchError, LaunchedProgram, SignalAction, SignalReader, ThreadWish,
    choose_action, exit_code, identify, launch,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Runs a command with its first thread restricted from the beginning.
pub fn run(args: &[OsString]) -> ExitCode {
    let signals = SignalReader::block_and_open().unwrap();
    let mut enactor = start(&PathBuf::from(&args[0]));
    let run = enactor.run_id().to_owned();
    let launched = launch(command(&args[1..]), &run, |pid| restrict(&mut enactor, pid));
    let code = match launched {
        Ok(child) => pass_on(&signals, &child),
        Err(LaunchError::NotFound(_)) => 127,
        Err(error) => panic!("{error}"),
    };
    let report = enactor.close();
    assert!(report.complete, "{report:?}");
    ExitCode::from(code)
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn restrict(enactor: &mut Enactor, pid: u32) {
    let thread = identify("/".as_ref(), pid, pid).unwrap();
    enactor.adopt(thread, mask(pid)).unwrap();
    let one = ThreadWish::Only(only(first_two()[0]));
    let report = enactor.apply(&[(thread, one)]);
    assert_eq!(report.refused, [], "of {}", own_pus());
}

fn pass_on(signals: &SignalReader, child: &LaunchedProgram) -> u8 {
    say("ready");
    loop {
        while let Some(event) = child.next_event(false).unwrap() {
            if let Some(code) = exit_code(event) {
                return code;
            }
            if let ChildEvent::Stopped(signal) = event {
                signals.stop_by_signal(signal).unwrap();
                child.signal(Signal::SIGCONT).unwrap();
            }
        }
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::NONE).unwrap();
        while let Some(event) = signals.next().unwrap() {
            if let SignalAction::Forward(signal) = choose_action(event, child.pid()) {
                // The child may have exited just now.
                let _ = child.signal(signal);
            }
        }
    }
}

/// Says the pid of the child that waits for its exec, and lets it wait.
pub fn hold(args: &[OsString]) -> ExitCode {
    let launched = launch(command(args), "held", |pid| {
        say(&pid.to_string());
        ever::<()>();
    });
    panic!("{launched:?}");
}
