//! The process that starts the programs: `consort __map PLAN`, the plan as JSON; what each run did
//! goes to stdout, one JSON document per line.
//!
//! Each program is started again when it ends, until the one that is last has ended often enough;
//! what then still runs is killed, with whatever it has started.

use super::plan::{ProgramExit, ProgramPlan};
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Hidden first argument of the process.
pub(crate) const CREW: &str = "__map";

/// Carries out the plan in the second argument.
pub(crate) fn run_plan_argument() -> ExitCode {
    let plan = std::env::args().nth(2).unwrap_or_default();
    let run = serde_json::from_str(&plan).map_err(anyhow::Error::from);
    match run.and_then(run_all) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => crate::failure::report(&error),
    }
}

fn run_all(plan: ProgramPlan) -> Result<()> {
    // What programs leave behind becomes a child of this process, so that it can be ended.
    set_child_subreaper(true).context("cannot adopt what programs leave behind")?;
    let mut crew = ProgramRunner::new(plan)?;
    let result = crew.run();
    stop_all();
    result
}

struct ProgramRunner {
    plan: ProgramPlan,
    /// The program and start of each process.
    running: BTreeMap<Pid, (usize, Instant)>,
    /// Number of times that each program has ended.
    ended: Vec<u32>,
    /// Resources that all children that were waited for have used.
    used: ChildUsage,
}

#[derive(Clone, Copy)]
struct ChildUsage {
    cpu_us: i64,
    switches: i64,
}

impl ChildUsage {
    fn read() -> Result<Self> {
        let usage: Usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        Ok(Self {
            cpu_us: (usage.user_time() + usage.system_time()).num_microseconds(),
            switches: usage.voluntary_context_switches() + usage.involuntary_context_switches(),
        })
    }
}

impl ProgramRunner {
    fn new(plan: ProgramPlan) -> Result<Self> {
        Ok(Self {
            running: BTreeMap::new(),
            ended: vec![0; plan.commands.len()],
            used: ChildUsage::read()?,
            plan,
        })
    }

    fn run(&mut self) -> Result<()> {
        for program in 0..self.plan.commands.len() {
            self.start(program)?;
        }
        let mut out = std::io::stdout().lock();
        while self.ended.iter().any(|&times| times < self.plan.times) {
            let (pid, exit_code) = wait()?;
            let Some(deed) = self.record_end(pid, exit_code)? else {
                continue;
            };
            serde_json::to_writer(&mut out, &deed)?;
            writeln!(out)?;
            if deed.exit_code != 0 {
                break;
            }
            self.start(deed.program)?;
        }
        Ok(())
    }

    fn start(&mut self, program: usize) -> Result<()> {
        let words = &self.plan.commands[program];
        let (name, arguments) = words.split_first().context("there is no command")?;
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null());
        if self.plan.show_output {
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        } else {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        // SAFETY: the hook makes one system call, which is async-signal-safe, and allocates nothing.
        unsafe {
            command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        self.running.insert(pid, (program, Instant::now()));
        Ok(())
    }

    /// Returns the deed of a process that ended; none for one that a program has left behind.
    fn record_end(&mut self, pid: Pid, exit_code: i32) -> Result<Option<ProgramExit>> {
        let used = ChildUsage::read()?;
        let before = std::mem::replace(&mut self.used, used);
        let Some((program, start)) = self.running.remove(&pid) else {
            return Ok(None);
        };
        self.ended[program] += 1;
        Ok(Some(ProgramExit {
            program,
            pid: u32::try_from(pid.as_raw())?,
            wall_s: start.elapsed().as_secs_f64(),
            cpu_s: (used.cpu_us - before.cpu_us) as f64 / 1e6,
            switches: u64::try_from(used.switches - before.switches)?,
            exit_code,
        }))
    }
}

/// Waits for the end of some child.
fn wait() -> Result<(Pid, i32)> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => return Ok((pid, code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => return Ok((pid, 128 + signal as i32)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for the programs"),
        }
    }
}

/// Kills every child and, as they are adopted, everything that these have started.
fn stop_all() {
    loop {
        for pid in children() {
            // One that has just ended needs no signal.
            let _ = kill(pid, Signal::SIGKILL);
        }
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}

fn children() -> impl Iterator<Item = Pid> {
    let path = format!("/proc/self/task/{}/children", gettid());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let pids: Vec<Pid> = text
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok().map(Pid::from_raw))
        .collect();
    pids.into_iter()
}
