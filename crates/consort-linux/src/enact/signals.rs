//! Signals of this process, passed on to the program that it launched.
//!
//! The program shares the caller's process group, so signals from the terminal (Ctrl-C, Ctrl-\,
//! Ctrl-Z, a hang-up) reach it without help; such signals come from the kernel. So do signals that
//! another process sends to the whole group, which a [`GroupSignalDetector`] tells. Signals to the caller alone
//! are passed on.
//!
//! Usage: make [`SignalReader`] before any other thread exists, as these inherit the blocked signals;
//! poll its descriptor; take the action that [`choose_action`] gives for each event.

use super::group_signals::GroupSignalDetector;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};

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
    /// A witness for signals to the group; none where no process could be made for it.
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
    /// once where the signal is ignored or nobody could continue it (an
    /// orphaned process group).
    ///
    /// # Errors
    /// When the kernel refuses to send or to unblock the signal.
    pub fn stop_by_signal(&self, signal: Signal) -> Result<(), Errno> {
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
    fn only_what_others_sent_to_us_alone_is_passed_on() {
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
