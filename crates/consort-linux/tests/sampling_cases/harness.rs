//! Starting a program that waits for its sampler, and following it to its end.

use crate::skip::skipped;
use consort_core::{Mix, PuId, PuSet};
use consort_linux::discovery::{ProcessTimes, ThreadEvent, ThreadTracker};
use consort_linux::sampling::{
    CodeCounts, ProfiledThread, SampleProfiler, Sampler, SamplerConfig, SamplerError,
};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A child that executes its program when it is let go.
pub(crate) struct Held(pub(crate) Child);

impl Held {
    pub(crate) fn new(program: &Path, args: &[&str]) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read go; exec \"$0\" \"$@\""]);
        command.arg(program).args(args);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self(child.expect("a shell"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn let_go(&mut self) {
        let mut gate = self.0.stdin.take().expect("a pipe");
        gate.write_all(b"go\n").expect("the child reads");
    }

    /// Returns true if it has ended; it stays a zombie, whose times can be read.
    pub(crate) fn has_ended(&mut self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let child = Id::Pid(Pid::from_raw(self.pid() as i32));
        waitid(child, flags).expect("our child") != WaitStatus::StillAlive
    }

    pub(crate) fn stdout(&mut self) -> String {
        let mut text = String::new();
        let mut pipe = self.0.stdout.take().expect("a pipe");
        pipe.read_to_string(&mut text).expect("text");
        text
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program of `examples/sampled.rs`, which cargo builds for every test run.
pub(crate) fn sampled() -> PathBuf {
    if let Some(path) = std::env::var_os("CONSORT_SAMPLED") {
        return path.into();
    }
    let tests = std::env::current_exe().expect("own path");
    let target = tests.ancestors().nth(2).expect("target directory");
    target.join("examples/sampled")
}

pub(crate) fn all_pus() -> PuSet {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
    let online = online.unwrap_or_else(|_| "0".into());
    online.trim().parse().expect("a list of CPUs")
}

/// Everything that was observed of a program, from its start to its end, with its output.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) events: Vec<ThreadEvent>,
    pub(crate) rounds: Vec<ProfiledThread>,
    pub(crate) totals: BTreeMap<u32, ProfiledThread>,
    pub(crate) short_lived: u64,
    pub(crate) lost: u64,
    pub(crate) samples: usize,
    pub(crate) cpu_time_ns: u64,
    pub(crate) code: CodeCounts,
    pub(crate) stdout: String,
}

impl Story {
    /// The mix over all threads, by time, and the share of samples decoded.
    pub(crate) fn mix(&self) -> (Mix, f64) {
        let mut mix = Mix::default();
        let (mut samples, mut decoded) = (0, 0);
        for thread in self.totals.values() {
            let counts = thread.total.counts;
            samples += counts.samples;
            decoded += counts.decoded;
            let own = thread.total.mix().unwrap_or_default();
            mix = mix.plus(own, counts.sampled_ns as f64);
        }
        (mix.normalised(), decoded as f64 / samples as f64)
    }

    /// Time that the samples stand for, as a share of the CPU time.
    pub(crate) fn sampled_share(&self) -> f64 {
        let rounds = self.rounds.iter();
        let sampled_ns: u64 = rounds.map(|r| r.interval.counts.sampled_ns).sum();
        sampled_ns as f64 / self.cpu_time_ns as f64
    }

    /// The last total of the thread with a name.
    pub(crate) fn named(&self, wanted: &str) -> ProfiledThread {
        let tid = self.events.iter().find_map(|event| match event {
            ThreadEvent::Appeared { id, name, .. } if &**name == wanted => Some(id.tid),
            ThreadEvent::Renamed { id, name } if &**name == wanted => Some(id.tid),
            _ => None,
        });
        self.totals[&tid.expect("the thread was seen")]
    }
}

/// Returns true if this host lets the tests sample; reports a skip if not.
pub(crate) fn can_sample() -> bool {
    let child = Held::new(&sampled(), &["sleep", "0"]);
    match Sampler::attach_launch(child.pid(), &all_pus(), SamplerConfig::default()) {
        Ok(_) => true,
        Err(error) => {
            skipped(error);
            false
        }
    }
}

/// Launches a program and follows it to its end.
pub(crate) fn launch(program: &Path, args: &[&str]) -> Story {
    launch_with(program, args, SamplerConfig::default())
}

pub(crate) fn launch_with(program: &Path, args: &[&str], config: SamplerConfig) -> Story {
    let mut child = Held::new(program, args);
    let sampler = Sampler::attach_launch(child.pid(), &all_pus(), config);
    let sampler = sampler.expect("this host can sample");
    follow(&mut child, sampler)
}

/// Lets a running program be sampled from now on.
pub(crate) fn attach(child: &mut Held, config: SamplerConfig) -> Result<Story, SamplerError> {
    let root = Path::new("/");
    let sampler = Sampler::attach_process(root, child.pid(), &all_pus(), config)?;
    Ok(follow(child, sampler))
}

pub(crate) fn follow(child: &mut Held, mut sampler: Sampler) -> Story {
    let root = Path::new("/");
    let mut discovery = ThreadTracker::new(root, &[child.pid()]).expect("own credentials");
    let mut profiler = SampleProfiler::new(root);
    let mut story = Story::default();
    let mut times = ProcessTimes::new(root);
    story.events.extend(discovery.scan());
    if child.0.stdin.is_some() {
        child.let_go();
    }
    loop {
        let over = child.has_ended();
        let batch = match over {
            true => sampler.drain_all(),
            false => sampler.drain(),
        };
        story.lost += batch.lost;
        story.samples += batch.samples();
        profiler.apply(&batch);
        let events = discovery.apply(&batch);
        sampler.follow_threads(&events);
        times.read(&discovery.processes());
        story.events.extend(events);
        for thread in profiler.end_interval() {
            story.totals.insert(thread.tid, thread);
            story.rounds.push(thread);
        }
        profiler.retain_known(|tid| discovery.id_of(tid).is_some());
        if over {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    story.short_lived = discovery.short_lived_count();
    story.cpu_time_ns = times.total_ns(0);
    story.code = profiler.code_counts();
    story.stdout = child.stdout();
    story
}

pub(crate) fn one_pu() -> PuSet {
    let first = all_pus().first().unwrap_or(PuId(0));
    let mut set = PuSet::new();
    set.insert(first);
    set
}

/// Lets a child run on these CPUs only.
pub(crate) fn pin(child: &Held, pus: &PuSet) {
    let mut mask = CpuSet::new();
    for pu in pus.iter() {
        mask.set(pu.0 as usize).expect("a CPU number");
    }
    sched_setaffinity(Pid::from_raw(child.pid() as i32), &mask).expect("our child");
}

/// Repeats an attempt that a busy host may foil until it succeeds; fails after six attempts.
pub(crate) fn eventually(attempt: impl Fn() -> Result<(), String>) {
    const ATTEMPTS: usize = 6;
    let tried: Vec<String> = (0..ATTEMPTS).map_while(|_| attempt().err()).collect();
    assert!(tried.len() < ATTEMPTS, "never: {tried:?}");
}
