//! The live machine with a policy that leaves everything as it is, its reads counted.

use super::super::support::{config, reads, say};
use consort_core::policy::{Policy, PolicyRng, View};
use consort_core::{Backoff, ControlLoop, Decision};
use consort_linux::enforce::EnactChoice;
use consort_linux::live::{Host, LiveMachine, LiveSettings, WatchRate};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

const TURNS: usize = 200;
const OPENING: usize = 8;

struct Nothing;

impl Policy for Nothing {
    fn decide(&mut self, _: View<'_>, _: &mut PolicyRng) -> Decision {
        Decision::default()
    }
}

/// Runs a command, given the journal's folder, for some turns. Of those with the most threads it tells
/// how many threads these are, and the fewest reads; the first, which open what later ones only read,
/// do not count.
pub fn quiet(args: &[OsString]) -> ExitCode {
    let mut command = Command::new(&args[1]);
    command.args(&args[2..]);
    let settings = LiveSettings {
        interval: Duration::from_millis(4),
        watch: WatchRate::Full,
        dry_run: false,
        override_affinity: false,
        recorded: None,
        cookies: false,
        enactors: EnactChoice::Auto,
        pausing: Vec::new(),
        enact: config(Path::new(&args[0])),
    };
    let host = Host::detect(Path::new("/")).unwrap();
    let live = LiveMachine::launch(host, command, settings).unwrap();
    let mut wheel = ControlLoop::new(live, Box::new(Nothing), Backoff::off(), 1);
    let own = of(|| ()).1;
    let mut by_threads: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for _ in 0..TURNS {
        let (turn, made) = of(|| wheel.run_turn().unwrap().unwrap());
        let threads = turn.observation.threads.len();
        by_threads.entry(threads).or_default().push(made - own);
    }
    let (threads, made) = by_threads.pop_last().unwrap();
    let least = made.into_iter().skip(OPENING).min().unwrap();
    say(&format!("{threads} {least}"));
    assert!(wheel.into_machine().finish().restored);
    ExitCode::SUCCESS
}

/// Does something; returns its result and the reads that were made meanwhile, with those that
/// counting them takes.
fn of<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let before = reads().unwrap();
    let done = act();
    (done, reads().unwrap() - before)
}
