//! Signals of this process, passed on to the program that it launched.
//!
//! The program shares the caller's process group. So signals from the terminal (Ctrl-C, Ctrl-\, Ctrl-Z,
//! a hang-up), which the kernel sends, reach it without help, and so do signals that another process
//! sends to the whole group. Only signals to the caller alone are passed on.
//!
//! Usage: make [`SignalReader`] before any other thread exists, because threads inherit the blocked
//! signals; poll its descriptor; take the action that [`choose_action`] returns for each event.

use crate::proc::ProcStatus;
use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Signals that are taken over, SIGCHLD among them.
const TAKEN: [Signal; 10] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGALRM,
    Signal::SIGCHLD,
];

/// Signal that is blocked and never read: with it blocked, a write beyond the limit on file sizes
/// is an error to be reported, and not the end of the process.
const UNREAD: Signal = Signal::SIGXFSZ;

/// A signal that has come, with its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalEvent {
    /// The signal.
    pub signal: Signal,
    /// True if the kernel sent it by itself, as for keys on the terminal.
    pub from_kernel: bool,
    /// True if a process sent it to the whole process group.
    pub to_group: bool,
    /// Pid of the sender, where a process sent it.
    pub sender: u32,
}

/// The action that a signal calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalAction {
    /// Send it to the program.
    Forward(Signal),
    /// Ask for the program's state, which may have changed.
    AskChild,
    /// Nothing: the program has it already, or sent it.
    Nothing,
}

/// Decides about a signal, given the pid of the program.
pub fn choose_action(event: SignalEvent, child: u32) -> SignalAction {
    match event.signal {
        Signal::SIGCHLD => SignalAction::AskChild,
        _ if event.to_group || event.sender == child => SignalAction::Nothing,
        // A timer that was set before this program began: the kernel sends that here alone.
        Signal::SIGALRM => SignalAction::Forward(Signal::SIGALRM),
        _ if event.from_kernel => SignalAction::Nothing,
        signal => SignalAction::Forward(signal),
    }
}

/// The signals of this process, read instead of handled.
#[derive(Debug)]
pub struct SignalReader {
    fd: SignalFd,
    /// A witness for signals to the group; `None` if no process could be made for it.
    witness: Option<RefCell<GroupSignalDetector>>,
}

impl SignalReader {
    /// Blocks the signals in the calling thread and opens a descriptor for them.
    ///
    /// # Errors
    /// When the kernel refuses, as when it is out of descriptors.
    pub fn block_and_open() -> Result<Self, Errno> {
        let set: SigSet = TAKEN.into_iter().collect();
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        set.thread_block()?;
        SigSet::from_iter([UNREAD]).thread_block()?;
        let witness = GroupSignalDetector::start().ok().map(RefCell::new);
        Ok(Self { fd, witness })
    }

    /// The next signal that has come, if any.
    ///
    /// # Errors
    /// When the descriptor cannot be read.
    pub fn next(&self) -> Result<Option<SignalEvent>, Errno> {
        let Some(info) = self.fd.read_signal()? else {
            self.discard_stale_signals();
            return Ok(None);
        };
        let mut event = SignalEvent {
            signal: Signal::try_from(info.ssi_signo.cast_signed())?,
            from_kernel: info.ssi_code == libc::SI_KERNEL,
            to_group: false,
            sender: info.ssi_pid,
        };
        // Also for signals from the kernel, so that the witness does not keep them as pending.
        if event.signal != Signal::SIGCHLD {
            let saw = self.query_detector(|witness| witness.take_group_signal(event.signal));
            event.to_group = saw == Some(true) && !event.from_kernel;
        }
        Ok(Some(event))
    }

    /// To be called now and then while no signal is there.
    pub(crate) fn discard_stale_signals(&self) {
        self.query_detector(GroupSignalDetector::discard_stale_signals);
    }

    fn query_detector<T>(&self, ask: impl FnOnce(&mut GroupSignalDetector) -> T) -> Option<T> {
        let witness = self.witness.as_ref()?;
        Some(ask(&mut witness.borrow_mut()))
    }

    /// Stops this process by the signal that stopped the program, so that the
    /// shell sees the job stop as a whole. Returns when it is continued, or at
    /// once if the signal is ignored or no process could continue it (an orphaned process group).
    ///
    /// # Errors
    /// When the kernel refuses to send or to unblock the signal.
    pub fn stop_by_signal(&self, signal: Signal) -> Result<(), Errno> {
        // The signal is blocked, so it stays pending until it is unblocked. That stops this
        // process, and the call returns when it is continued.
        let set = SigSet::from_iter([signal]);
        raise(signal)?;
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&set), Some(&mut before))?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

// The kernel does not show if a signal went to the whole process group or to this process alone. So a
// separate process in the same group, the witness, blocks every signal and sleeps. A signal that is
// pending there has gone to the group, so that the program has it already. The witness need not run
// for that, so the answer does not depend on the load.
//
// A group signal that is taken for one to this process alone reaches the program twice. The opposite
// mistake would lose a signal, which is worse. So a signal that stays pending at the witness for no
// reason is thrown away, with the witness.

/// Time given to a process that signals every process of a group one by one to reach the witness.
/// A signal to the group itself is sent by the kernel in one go, to the youngest process first.
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
    /// Signals that were pending when the last process was ended, and were not claimed yet.
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
            // Several signals may be pending. They are delivered here by their numbers, not in the order
            // in which they were sent, so the others are kept in mind.
            self.replace_process(held & !bit(signal));
        }
        saw
    }

    /// Looks now and then, while no signal is left here, for signals that are held for no reason.
    pub(super) fn discard_stale_signals(&mut self) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            let held = self.unclaimed_signals();
            // A signal that has just come to the witness may be about to come here, so it is stale only
            // if it was pending at the last look, too.
            if held & self.suspect != 0 {
                self.replace_process(held & !self.suspect);
            }
            self.suspect = held;
        }
    }

    /// Signals to the group that were not claimed yet.
    fn unclaimed_signals(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = ProcStatus::read(Path::new(&path));
        // By number, the first signal in the lowest bit; none if the witness is gone.
        let pending = status
            .ok()
            .and_then(|s| u64::from_str_radix(s.field("ShdPnd")?, 16).ok());
        self.kept | pending.unwrap_or(0)
    }

    /// Keeps in mind only these signals, with a new process, which has nothing pending. If none can be
    /// made, the old one ends all the same, because its signals would be taken for later ones.
    fn replace_process(&mut self, kept: u64) {
        self.kill_process();
        self.kept = kept;
        self.suspect &= kept;
        if let Ok(fresh) = spawn_sleeper() {
            self.process = fresh;
        }
    }

    fn kill_process(&mut self) {
        // Both fail only if it is gone already.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(signal: Signal, from_kernel: bool, sender: u32, expect: SignalAction) {
        let event = SignalEvent {
            signal,
            from_kernel,
            to_group: false,
            sender,
        };
        assert_eq!(choose_action(event, 42), expect);
        let to_group = SignalEvent {
            to_group: true,
            ..event
        };
        let already = match signal {
            Signal::SIGCHLD => SignalAction::AskChild,
            _ => SignalAction::Nothing,
        };
        assert_eq!(choose_action(to_group, 42), already);
    }

    #[test]
    fn only_signals_to_consort_alone_are_forwarded() {
        check(Signal::SIGINT, true, 0, SignalAction::Nothing);
        check(Signal::SIGHUP, true, 0, SignalAction::Nothing);
        check(
            Signal::SIGINT,
            false,
            7,
            SignalAction::Forward(Signal::SIGINT),
        );
        check(
            Signal::SIGTERM,
            false,
            7,
            SignalAction::Forward(Signal::SIGTERM),
        );
        check(Signal::SIGTERM, false, 42, SignalAction::Nothing);
        check(Signal::SIGCHLD, false, 42, SignalAction::AskChild);
        check(
            Signal::SIGALRM,
            true,
            0,
            SignalAction::Forward(Signal::SIGALRM),
        );
    }

    #[test]
    fn taken_signals_are_read_with_their_sender() {
        let read = std::thread::spawn(|| {
            let signals = SignalReader::block_and_open().unwrap();
            assert_eq!(signals.next().unwrap(), None);
            raise(Signal::SIGUSR1).unwrap();
            signals.next().unwrap().unwrap()
        });
        let event = read.join().unwrap();
        assert_eq!(event.signal, Signal::SIGUSR1);
        assert!(!event.from_kernel);
        assert_eq!(event.sender, std::process::id());
    }
}
