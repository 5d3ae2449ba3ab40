//! The worker that runs the commands of a mapping.
//!
//! Each command is started again when it ends, until the slowest has ended often enough; what then
//! still runs is killed, with everything that it started.

use super::write_line;
use anyhow::{Context, Result};
use consort_core::PuId;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Commands to run, and how often.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommandPlan {
    /// Programs with their arguments.
    pub(crate) commands: Vec<Vec<String>>,
    /// Number of times that each command is to end, at least.
    pub(crate) times: u32,
    /// True if the commands' output goes to stderr.
    pub(crate) show_output: bool,
    /// CPU of each command and of all that it starts; empty if they run anywhere.
    #[serde(default)]
    pub(crate) pus: Vec<PuId>,
}

/// A command that was run once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandExit {
    /// Index of the command in its plan.
    pub(crate) program: usize,
    pub(crate) pid: u32,
    /// From its start to its end, s.
    pub(crate) wall_s: f64,
    /// CPU time of it and of the processes that it started and waited for, s.
    pub(crate) cpu_s: f64,
    /// Context switches of these.
    pub(crate) switches: u64,
    /// Its exit code; 128 + n if signal n ended it.
    pub(crate) exit_code: i32,
}

/// Carries out a plan and writes a [`CommandExit`] per end to stdout.
pub(crate) fn run_plan(plan: CommandPlan) -> Result<()> {
    // Processes that commands leave behind become children of this one, so that it can end them.
    set_child_subreaper(true).context("cannot adopt what programs leave behind")?;
    let mut runner = CommandRunner {
        running: BTreeMap::new(),
        ended: vec![0; plan.commands.len()],
        used: ChildUsage::read()?,
        plan,
    };
    let result = runner.run();
    kill_children();
    result
}

struct CommandRunner {
    plan: CommandPlan,
    /// The command and start of each process.
    running: BTreeMap<Pid, (usize, Instant)>,
    /// Number of times that each command has ended.
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

impl CommandRunner {
    fn run(&mut self) -> Result<()> {
        for program in 0..self.plan.commands.len() {
            self.start(program)?;
        }
        let mut out = std::io::stdout().lock();
        while self.ended.iter().any(|&times| times < self.plan.times) {
            let (pid, exit_code) = wait_for_child()?;
            let Some(exit) = self.record_end(pid, exit_code)? else {
                continue;
            };
            write_line(&mut out, &exit)?;
            if exit.exit_code != 0 {
                break;
            }
            self.start(exit.program)?;
        }
        Ok(())
    }

    fn start(&mut self, program: usize) -> Result<()> {
        let words = &self.plan.commands[program];
        let (name, arguments) = words.split_first().context("there is no command")?;
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null());
        if self.plan.show_output {
            // stdout carries the results.
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        } else {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let mut mask = CpuSet::new();
        let pu = self.plan.pus.get(program);
        if let Some(pu) = pu {
            mask.set(pu.0 as usize)
                .with_context(|| format!("cannot run on CPU {pu}"))?;
        }
        let is_pinned = pu.is_some();
        // SAFETY: the hook makes system calls, which are async-signal-safe, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                if is_pinned {
                    sched_setaffinity(Pid::from_raw(0), &mask)?;
                }
                Ok(set_pdeathsig(Signal::SIGKILL)?)
            });
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        self.running.insert(pid, (program, Instant::now()));
        Ok(())
    }

    /// Returns the account of a command that ended; `None` for a process that a command left
    /// behind.
    fn record_end(&mut self, pid: Pid, exit_code: i32) -> Result<Option<CommandExit>> {
        // Read for those left behind too, or the next command would be charged for them.
        let used = ChildUsage::read()?;
        let before = std::mem::replace(&mut self.used, used);
        let Some((program, start)) = self.running.remove(&pid) else {
            return Ok(None);
        };
        self.ended[program] += 1;
        Ok(Some(CommandExit {
            program,
            pid: u32::try_from(pid.as_raw())?,
            wall_s: start.elapsed().as_secs_f64(),
            cpu_s: (used.cpu_us - before.cpu_us) as f64 / 1e6,
            switches: u64::try_from(used.switches - before.switches)?,
            exit_code,
        }))
    }
}

fn wait_for_child() -> Result<(Pid, i32)> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => return Ok((pid, code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => return Ok((pid, 128 + signal as i32)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for the programs"),
        }
    }
}

/// Kills every child and, as they are adopted, all descendants.
fn kill_children() {
    loop {
        let path = format!("/proc/self/task/{}/children", gettid());
        let children = std::fs::read_to_string(path).unwrap_or_default();
        for pid in children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            // A child that has just ended needs no signal.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        // Each child that is reaped may leave children of its own to this process, so the list is
        // read again until there are none.
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}
