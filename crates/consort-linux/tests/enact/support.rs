//! Helpers that the tests and their parts share.

use crate::skip::skipped;
use consort_core::{PuId, PuSet, ThreadId};
use consort_linux::enact::{EnactConfig, Enactor, current_mask, identify};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a test has hung; no test depends on it otherwise.
const HANG: Duration = Duration::from_secs(60);

pub fn config(dir: &Path) -> EnactConfig {
    EnactConfig {
        guardian_args: vec!["part:guardian".into()],
        runtime_dirs: vec![dir.to_owned()],
        changes_nothing: false,
    }
}

pub fn start(dir: &Path) -> Enactor {
    Enactor::start(&config(dir)).unwrap()
}

/// A process of a test; all of its session is ended with this value.
pub struct Process(pub Child);

impl Process {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn thread(&self) -> ThreadId {
        identify("/".as_ref(), self.pid(), self.pid()).unwrap()
    }

    pub fn mask(&self) -> PuSet {
        mask(self.pid())
    }

    /// Kills the process by SIGKILL and collects it.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let out = self.0.stdout.as_mut().unwrap();
        BufReader::with_capacity(1, out)
            .read_line(&mut line)
            .unwrap();
        line.trim().to_owned()
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed());
        nix::sys::signal::kill(pid, signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for pid in with_session(self.pid()) {
            let _ = nix::sys::signal::kill(
                Pid::from_raw(pid.cast_signed()),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command for this program in another part, in its own session, with its output to be read.
pub fn part(name: &str, args: &[&OsStr]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(format!("{}{name}", super::parts::PREFIX))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Makes a command the leader of its own session.
pub fn apart(command: &mut Command) -> &mut Command {
    // SAFETY: setsid is async-signal-safe.
    unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) }
}

pub fn spawn(command: &mut Command) -> Process {
    Process(command.spawn().unwrap())
}

pub fn sleeper() -> Process {
    let mut command = Command::new("sleep");
    spawn(apart(command.arg("300")))
}

pub fn busy() -> Process {
    spawn(apart(&mut part("busy", &[])))
}

pub fn text(value: u32) -> OsString {
    value.to_string().into()
}

pub fn arg(word: &OsStr) -> u32 {
    word.to_str().unwrap().parse().unwrap()
}

pub fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

pub fn ever<T>() -> T {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

/// Waits for a condition that has to come true.
pub fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < HANG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// System calls by which the calling thread has read so far; none where the kernel does not count.
pub fn reads() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    let count = text.lines().find_map(|line| line.strip_prefix("syscr:"))?;
    count.trim().parse().ok()
}

pub fn only(pu: u32) -> PuSet {
    PuSet::from(PuId(pu))
}

pub fn mask(tid: u32) -> PuSet {
    let thread = ThreadId {
        pid: tid,
        tid,
        start_ticks: 0,
    };
    current_mask(thread).unwrap_or_default()
}

pub fn set_mask(tid: u32, pus: &PuSet) {
    let mut set = CpuSet::new();
    for PuId(pu) in pus.iter() {
        set.set(pu as usize).unwrap();
    }
    sched_setaffinity(Pid::from_raw(tid.cast_signed()), &set).unwrap();
}

pub fn own_pus() -> PuSet {
    mask(std::process::id())
}

/// The mask of programs that these tests start.
pub fn all_pus() -> PuSet {
    own_pus()
}

/// Two CPUs to move between; the same one twice where there is only one.
pub fn first_two() -> [u32; 2] {
    let pus: Vec<u32> = own_pus().iter().map(|pu| pu.0).collect();
    [pus[0], *pus.get(1).unwrap_or(&pus[0])]
}

/// Returns true if there are two CPUs; reports a skip if not.
pub fn has_two_pus() -> bool {
    let two = own_pus().len() > 1;
    if !two {
        skipped("only one CPU is allowed here, so no mask is narrower");
    }
    two
}

pub fn tasks(pid: u32) -> Vec<ThreadId> {
    let tids = numbers(&format!("/proc/{pid}/task"));
    tids.into_iter()
        .filter_map(|tid| identify("/".as_ref(), pid, tid))
        .collect()
}

/// Parent and session of a process; none for one that has ended and waits to be collected, which
/// may be for ever where the first process collects nobody.
fn relations(pid: u32) -> Option<(u32, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some((fields.get(1)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

/// A program and its living descendants.
pub fn family(root: u32) -> BTreeSet<u32> {
    let mut family = BTreeSet::from([root]);
    let all: Vec<(u32, u32)> = numbers("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, relations(pid)?.0)))
        .collect();
    loop {
        let before = family.len();
        let born = all.iter().filter(|(_, parent)| family.contains(parent));
        let born: Vec<u32> = born.map(|(pid, _)| *pid).collect();
        family.extend(born);
        if family.len() == before {
            return family;
        }
    }
}

/// Every process in the session that a process leads.
pub fn with_session(leader: u32) -> Vec<u32> {
    let pids = numbers("/proc").into_iter();
    pids.filter(|&pid| relations(pid).is_some_and(|(_, session)| session == leader))
        .collect()
}

/// Threads of a session whose mask is not the one that the tests started with.
pub fn astray(leader: u32) -> Vec<(ThreadId, PuSet)> {
    let threads = with_session(leader).into_iter().flat_map(tasks);
    let masked = threads.map(|thread| (thread, mask(thread.tid)));
    masked
        .filter(|(_, mask)| !mask.is_empty() && *mask != all_pus())
        .collect()
}

/// Numbers of this process's open descriptors whose flags are as wanted.
pub fn descriptors_that(wanted: impl Fn(i32) -> bool) -> String {
    let open = (0..1024).filter(|&fd| {
        // SAFETY: asks for flags only; a closed descriptor is an error.
        let flags = unsafe { nix::libc::fcntl(fd, nix::libc::F_GETFD) };
        flags >= 0 && wanted(flags)
    });
    let open: Vec<String> = open.map(|fd| fd.to_string()).collect();
    open.join(" ")
}

pub fn files_in(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

fn numbers(dir: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}
