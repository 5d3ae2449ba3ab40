//! Telling a signal to the whole process group from a signal to this process alone.
//!
//! The kernel does not say which it was. So a process of its own, in the same group and otherwise
//! out of sight, blocks all signals, takes them one by one and tells which they are: what both it
//! and this process got went to the group, and the program in the group has it already.
//!
//! Limits: who sends a signal to every process one after the other, rather than to the group, looks
//! the same, which is what is wanted. A signal that reaches this process and not the witness within
//! [`GRACE`] counts as sent to this process alone.

use super::signals::SignalEvent;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::wait::waitpid;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{ForkResult, Pid, close, fork, getpid, getppid, pipe2, read, write};
use std::os::fd::{AsFd, OwnedFd};

/// Time that the witness is given to get a signal as well, ms. The kernel sends to the youngest
/// process of a group first, so that the witness mostly has it before this process.
const GRACE_MS: u16 = 5;
/// The same, ns: what the witness took this long before nothing was left here is of an earlier
/// signal.
const GRACE_NS: u64 = 1_000_000 * GRACE_MS as u64;

/// What the witness tells of a signal: its number, its sender's pid, and when, ns.
const RECORD_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    signal: u32,
    sender: u32,
    time_ns: u64,
}

impl Record {
    fn of(info: &siginfo) -> Self {
        Self {
            signal: info.ssi_signo,
            sender: info.ssi_pid,
            time_ns: now_ns(),
        }
    }

    fn bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&self.signal.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sender.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }

    fn from(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok();
        Some(Self {
            signal: u32::from_ne_bytes(word(0)?),
            sender: u32::from_ne_bytes(word(4)?),
            time_ns: u64::from_ne_bytes(bytes.get(8..)?.try_into().ok()?),
        })
    }
}

/// A running witness; it ends with this value, and with the thread that started it.
#[derive(Debug)]
pub(super) struct Witness {
    process: Pid,
    told: OwnedFd,
    /// What it has told and no event here was matched with yet.
    kept: Vec<Record>,
    /// When no signal was left here last.
    quiet_ns: u64,
}

impl Witness {
    /// Starts one for these signals, which must be blocked.
    ///
    /// # Errors
    /// What the kernel answers; out of processes or descriptors.
    pub(super) fn start(signals: &SigSet) -> Result<Self, Errno> {
        let taken = SignalFd::with_flags(signals, SfdFlags::SFD_CLOEXEC)?;
        let (told, telling) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let owner = getpid();
        // SAFETY: the child goes on in `watch`, which makes nothing but system calls, all of them
        // async-signal-safe, and never returns; it neither allocates nor takes a lock, so it does
        // not matter what other threads of this process were doing.
        match unsafe { fork() }? {
            ForkResult::Child => watch(owner, &taken, &telling),
            ForkResult::Parent { child } => Ok(Self {
                process: child,
                told,
                kept: Vec::new(),
                quiet_ns: now_ns(),
            }),
        }
    }

    /// Whether a signal that a process has sent here went to the whole group.
    pub(super) fn saw(&mut self, event: &SignalEvent) -> bool {
        let end_ns = now_ns() + GRACE_NS;
        loop {
            self.take_records();
            let same = |r: &Record| (r.signal, r.sender) == (event.signal as u32, event.sender);
            if let Some(at) = self.kept.iter().position(same) {
                self.kept.swap_remove(at);
                return true;
            }
            let mut fds = [PollFd::new(self.told.as_fd(), PollFlags::POLLIN)];
            let more = poll(&mut fds, PollTimeout::from(GRACE_MS)).is_ok_and(|ready| ready > 0);
            if !more || now_ns() > end_ns {
                return false;
            }
        }
    }

    /// Notes that no signal is left here.
    pub(super) fn be_quiet(&mut self) {
        self.quiet_ns = now_ns();
    }

    fn take_records(&mut self) {
        let mut bytes = [0; RECORD_BYTES];
        while read(&self.told, &mut bytes) == Ok(RECORD_BYTES) {
            self.kept.extend(Record::from(&bytes));
        }
        let since_ns = self.quiet_ns.saturating_sub(GRACE_NS);
        self.kept.retain(|record| record.time_ns >= since_ns);
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // Both fail only where it is gone already.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

/// The witness: takes signals and tells of those that processes have sent, until its owner dies.
fn watch(owner: Pid, taken: &SignalFd, telling: &OwnedFd) -> ! {
    let _ = SigSet::all().thread_block();
    let _ = set_name(c"consort-witness");
    let bound = set_pdeathsig(Signal::SIGKILL).is_ok() && getppid() == owner;
    for descriptor in 0..3 {
        // Whoever waits for the end of what is written there must not wait for this process.
        let _ = close(descriptor);
    }
    while bound {
        match taken.read_signal() {
            // Where the owner does not read, the oldest must do.
            Ok(Some(info)) if info.ssi_code != libc::SI_KERNEL => {
                let _ = write(telling, &Record::of(&info).bytes());
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    // SAFETY: ends this process without running anybody's exit handlers.
    unsafe { libc::_exit(0) }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| {
        now.tv_sec().cast_unsigned() * 1_000_000_000 + now.tv_nsec().cast_unsigned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_way() {
        let record = Record {
            signal: 2,
            sender: 77,
            time_ns: u64::MAX - 5,
        };
        assert_eq!(Record::from(&record.bytes()), Some(record));
    }
}
