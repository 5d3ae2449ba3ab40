//! A witness that tells a signal to the whole process group from one to this process alone.
//!
//! The kernel does not say which it was. So a separate process in the same group blocks every
//! signal and sleeps, and a signal that is pending there has gone to the group: the program in the
//! group has it already. The witness need not run for that, so the answer does not depend on the
//! load.
//!
//! Pitfall: a signal of the group that is taken for one of this process comes twice; the opposite
//! mistake would lose one. So a signal that is pending without need is thrown away, with the
//! witness.

use crate::proc::ProcStatus;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time given to a process that signals every process of a group one by one to reach the witness.
/// To the group itself the kernel sends in one go, to the youngest process first.
const GRACE: Duration = Duration::from_millis(2);
/// Time between two looks for signals that are pending for no reason.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Command of the witness, with the time that it sleeps, s: it sleeps until it is killed.
const SLEEPER: [&str; 2] = ["sleep", "2147483647"];

/// A process that gets the signals of the group; it ends with this value, and with the thread that
/// started it.
#[derive(Debug)]
pub(super) struct GroupSignalDetector {
    process: Child,
    looked: Instant,
    /// Signals that were held when the last process was ended, and were not asked for yet.
    kept: u64,
    /// Signals that were held at the last look.
    suspect: u64,
}

impl GroupSignalDetector {
    /// Starts a witness.
    ///
    /// # Errors
    /// When no process can be made, or `sleep` is not installed.
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self {
            process: spawn_sleeper()?,
            looked: Instant::now(),
            kept: 0,
            suspect: 0,
        })
    }

    /// Returns true if a signal that has come here went to the whole group; true only once for
    /// each.
    pub(super) fn take_group_signal(&mut self, signal: Signal) -> bool {
        let mut held = self.unclaimed_signals();
        if held & bit(signal) == 0 {
            std::thread::sleep(GRACE);
            held = self.unclaimed_signals();
        }
        let saw = held & bit(signal) != 0;
        if saw {
            // Signals come here by their numbers, not in the order in which they were sent.
            self.replace_process(held & !bit(signal));
        }
        saw
    }

    /// Looks now and then, while no signal is left here, for signals that are held for no reason.
    pub(super) fn discard_stale_signals(&mut self) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            let held = self.unclaimed_signals();
            // A signal that has just come there may be about to come here.
            if held & self.suspect != 0 {
                self.replace_process(held & !self.suspect);
            }
            self.suspect = held;
        }
    }

    /// Signals to the group that have not been asked for yet.
    fn unclaimed_signals(&self) -> u64 {
        self.kept | self.read_pending_signals()
    }

    /// Signals by number, the first in the lowest bit; none where the witness is gone.
    fn read_pending_signals(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = ProcStatus::read(Path::new(&path));
        let pending = status
            .ok()
            .and_then(|s| u64::from_str_radix(s.field("ShdPnd")?, 16).ok());
        pending.unwrap_or(0)
    }

    /// Keeps in mind only these signals, with a new process, which has nothing pending. Where none
    /// can be made the old one ends all the same: its signals would be taken for signals to come.
    fn replace_process(&mut self, kept: u64) {
        self.kill_process();
        self.kept = kept;
        self.suspect &= kept;
        if let Ok(fresh) = spawn_sleeper() {
            self.process = fresh;
        }
    }

    fn kill_process(&mut self) {
        // Both fail only where it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a process that sleeps in the group of this one with every signal blocked.
fn spawn_sleeper() -> io::Result<Child> {
    let mut command = Command::new(SLEEPER[0]);
    command.arg(SLEEPER[1]).env_clear().current_dir("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let hook = || {
        SigSet::all().thread_set_mask()?;
        set_pdeathsig(Signal::SIGKILL)?;
        Ok(())
    };
    // SAFETY: between fork and exec the hook makes two system calls, both async-signal-safe, and
    // neither allocates nor takes a lock.
    unsafe { command.pre_exec(hook) };
    command.spawn()
}

impl Drop for GroupSignalDetector {
    fn drop(&mut self) {
        self.kill_process();
    }
}

fn bit(signal: Signal) -> u64 {
    1 << (signal as u64 - 1)
}
