//! Passes signals that end a recording on to the program.

use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

/// `si_code` of a signal that the kernel sent, from the terminal (sigaction(2)).
const FROM_KERNEL: i32 = 0x80;

/// Blocks signals that end a process, in this thread and its children, for as long as it lives. A
/// signal that came meanwhile was for the program, so it is discarded at the end.
pub(super) struct SignalBlockGuard(SigSet);

impl SignalBlockGuard {
    pub(super) fn new() -> Option<Self> {
        let before = SigSet::thread_get_mask().ok()?;
        signals().thread_block().ok()?;
        Some(Self(before))
    }
}

impl Drop for SignalBlockGuard {
    fn drop(&mut self) {
        if let Ok(pending) = SignalFd::with_flags(&signals(), SfdFlags::SFD_NONBLOCK) {
            while let Ok(Some(_)) = pending.read_signal() {}
        }
        let _ = self.0.thread_set_mask();
    }
}

fn signals() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
}

/// Passes signals on for as long as it lives. The kernel sends signals from the terminal to the
/// program itself, because it is in the same process group.
pub(super) struct SignalRelay {
    /// Closed to end the thread.
    open: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl SignalRelay {
    /// Starts to pass signals to `program`; they must be blocked already.
    pub(super) fn start(program: u32) -> nix::Result<Self> {
        let program = Pid::from_raw(program.cast_signed());
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&signals(), flags)?;
        let (end, open) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let thread = std::thread::spawn(move || relay_signals(&signals, &end, program));
        Ok(Self {
            open: Some(open),
            thread: Some(thread),
        })
    }
}

impl Drop for SignalRelay {
    fn drop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn relay_signals(signals: &SignalFd, end: &OwnedFd, program: Pid) {
    loop {
        let mut ready = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(end.as_fd(), PollFlags::POLLIN),
        ];
        let polled = poll(&mut ready, PollTimeout::NONE);
        if polled == Err(nix::Error::EINTR) {
            continue;
        }
        if polled.is_err() || ready[1].any() != Some(false) {
            return;
        }
        if let Ok(Some(came)) = signals.read_signal() {
            let signal = Signal::try_from(came.ssi_signo.cast_signed());
            if came.ssi_code != FROM_KERNEL
                && let Ok(signal) = signal
            {
                let _ = kill(program, signal);
            }
        }
    }
}
