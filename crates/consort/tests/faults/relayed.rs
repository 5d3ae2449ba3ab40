//! Signals reach the command, each once, from others and from the terminal.

use super::common::{children_of, comm_of, consort, wait_for};
use super::compiled::{Compiled, compiled, have};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A command that says which signals it gets, and what it has said.
struct Catcher {
    run: Child,
    lines: BufReader<ChildStdout>,
    _program: Compiled,
}

impl Catcher {
    fn start(wrap: impl FnOnce(Command) -> Command) -> Option<Self> {
        let program = compiled("catches", &[])?;
        let mut bare = consort();
        bare.args(["run", "-q", "--interval", "100ms", "--"]);
        bare.arg(program.path());
        let mut command = wrap(bare);
        let mut run = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(run.stdout.take().unwrap());
        let mut catcher = Self {
            run,
            lines,
            _program: program,
        };
        assert_eq!(catcher.line(), "ready");
        Some(catcher)
    }

    /// Next line of its output; a terminal's echo of control keys is left out.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let words = line
            .trim()
            .trim_start_matches(|c: char| "^CZ\\".contains(c));
        words.to_owned()
    }

    fn expect(&mut self, signal: Signal) {
        assert_eq!(self.line(), (signal as i32).to_string(), "{signal}");
    }

    fn send(&self, pid: u32, signal: Signal) {
        kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
    }

    /// To every process of the group that the run was made the leader of.
    fn send_to_group(&self, signal: Signal) {
        kill(Pid::from_raw(-self.run.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Catcher {
    fn drop(&mut self) {
        let _ = self.run.kill();
        let _ = self.run.wait();
    }
}

/// A process of this name below another.
fn below(pid: u32, name: &str) -> Option<u32> {
    let children = children_of(pid).into_iter();
    let mut found = children.map(|c| (comm_of(c) == name).then_some(c).or_else(|| below(c, name)));
    found.find_map(|pid| pid)
}

#[test]
fn signals_from_other_processes_are_passed_on() {
    let Some(mut catcher) = Catcher::start(|bare| bare) else {
        return;
    };
    let relayed = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGTSTP,
        Signal::SIGCONT,
        Signal::SIGALRM,
        Signal::SIGUSR2,
    ];
    for signal in relayed {
        catcher.send(catcher.run.id(), signal);
        catcher.expect(signal);
    }
    assert_eq!(catcher.run.wait().unwrap().code(), Some(5));
}

#[test]
fn what_goes_to_the_whole_group_reaches_the_command_once() {
    let in_group = |mut bare: Command| {
        bare.process_group(0);
        bare
    };
    let Some(mut catcher) = Catcher::start(in_group) else {
        return;
    };
    // A signal that came twice would be told before the next; one that is sent to the run alone
    // right after one to the group must still come. SIGCONT between them has the highest number, so
    // that the run has read the other before the third is sent, which would else be merged with it.
    for _ in 0..20 {
        for signal in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGALRM,
            Signal::SIGTERM,
        ] {
            catcher.send_to_group(signal);
            catcher.expect(signal);
            catcher.send(catcher.run.id(), Signal::SIGCONT);
            catcher.expect(Signal::SIGCONT);
            catcher.send(catcher.run.id(), signal);
            catcher.expect(signal);
        }
    }
    catcher.send_to_group(Signal::SIGUSR2);
    catcher.expect(Signal::SIGUSR2);
    assert_eq!(catcher.run.wait().unwrap().code(), Some(5));
}

#[test]
fn keys_on_the_terminal_reach_the_command_once() {
    if !have("script") {
        return;
    }
    let in_terminal = |bare: Command| {
        let words: Vec<_> = [bare.get_program()]
            .into_iter()
            .chain(bare.get_args())
            .collect();
        let words: Vec<_> = words.iter().map(|w| w.to_str().unwrap()).collect();
        // Without `exec` some shells stay, die of the keys, and hang the terminal up.
        let line = format!("exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]);
        script.env("SHELL", "/bin/sh");
        script
    };
    let Some(mut catcher) = Catcher::start(in_terminal) else {
        return;
    };
    for (key, signal) in [
        (b"\x03", Signal::SIGINT),
        (b"\x1c", Signal::SIGQUIT),
        (b"\x1a", Signal::SIGTSTP),
    ] {
        catcher.run.stdin.as_mut().unwrap().write_all(key).unwrap();
        catcher.expect(signal);
    }
    let id = catcher.run.id();
    let program = wait_for("the command", || below(id, "program"));
    // A signal that came twice would be told before this one.
    catcher.send(program, Signal::SIGUSR1);
    catcher.expect(Signal::SIGUSR1);
    catcher.send(program, Signal::SIGUSR2);
    catcher.expect(Signal::SIGUSR2);
    assert_eq!(catcher.run.wait().unwrap().code(), Some(5));
}
