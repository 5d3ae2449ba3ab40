//! The live machine with a policy that pauses the command most of the time.

use super::super::pausing::kind_named;
use super::super::support::config;
use consort_core::policy::{Policy, PolicyRng, View};
use consort_core::{Backoff, ControlLoop, Decision};
use consort_linux::enforce::EnactChoice;
use consort_linux::live::{Host, LiveMachine, LiveSettings, WatchRate};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

const QUANTUM: Duration = Duration::from_millis(2);

/// A policy that pauses every program in all quanta but one of `every`.
struct Gang {
    quanta: u64,
    every: u64,
}

impl Policy for Gang {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        self.quanta += 1;
        let mut decision = Decision::default();
        if !self.quanta.is_multiple_of(self.every) {
            let threads = view.observation.threads.iter();
            let programs = threads.map(|t| view.observation.program_of(t.id));
            decision.paused = programs.collect();
        }
        decision
    }
}

/// Runs a command, given the journal's folder, the mechanism and the number of quanta of which it
/// runs in one.
pub fn live(args: &[OsString], dry_run: bool) -> ExitCode {
    let kind = kind_named(args[1].to_str().unwrap());
    let every: u64 = args[2].to_str().unwrap().parse().unwrap();
    let mut command = Command::new(&args[3]);
    command.args(&args[4..]);
    let settings = LiveSettings {
        interval: QUANTUM,
        watch: WatchRate::Full,
        dry_run,
        override_affinity: false,
        recorded: None,
        cookies: false,
        enactors: EnactChoice::Auto,
        pausing: vec![kind],
        enact: config(Path::new(&args[0])),
    };
    let host = Host::detect(Path::new("/")).unwrap();
    let live = LiveMachine::launch(host, command, settings).unwrap();
    let policy = Box::new(Gang { quanta: 0, every });
    let mut wheel = ControlLoop::new(live, policy, Backoff::off(), 1);
    while wheel.run_turn().unwrap().is_some() {}
    let finished = wheel.into_machine().finish();
    assert!(finished.restored, "{finished:?}");
    eprintln!("{} pauses", finished.pauses);
    ExitCode::from(finished.exit_code)
}
