//! Changes of a child's state, and exit statuses as shells count them.

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A change of a child's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// The child exited with a code.
    Exited(i32),
    /// A signal killed the child.
    Killed(Signal),
    /// A signal stopped the child.
    Stopped(Signal),
    /// The child goes on after a stop.
    Continued,
}

/// Exit status that passes a child's end on: its own code, or 128 and the number of the signal that
/// killed it. None while it lives.
pub fn exit_code(event: ChildEvent) -> Option<u8> {
    match event {
        // The kernel keeps eight bits of an exit code.
        ChildEvent::Exited(code) => Some((code & 0xff) as u8),
        ChildEvent::Killed(signal) => u8::try_from(128 + signal as i32).ok(),
        ChildEvent::Stopped(_) | ChildEvent::Continued => None,
    }
}

/// Waits for the next change of a child's state; without `block`, none if
/// nothing has changed.
pub(crate) fn next_event(pid: Pid, block: bool) -> Result<Option<ChildEvent>, Errno> {
    let mut flags = WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
    flags.set(WaitPidFlag::WNOHANG, !block);
    loop {
        match waitpid(pid, Some(flags)) {
            Err(Errno::EINTR) => {}
            status => return status.map(event),
        }
    }
}

fn event(status: WaitStatus) -> Option<ChildEvent> {
    match status {
        WaitStatus::Exited(_, code) => Some(ChildEvent::Exited(code)),
        WaitStatus::Signaled(_, signal, _) => Some(ChildEvent::Killed(signal)),
        WaitStatus::Stopped(_, signal) => Some(ChildEvent::Stopped(signal)),
        WaitStatus::Continued(_) => Some(ChildEvent::Continued),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(exit_code(ChildEvent::Exited(0)), Some(0));
        assert_eq!(exit_code(ChildEvent::Exited(300)), Some(44));
        assert_eq!(exit_code(ChildEvent::Killed(Signal::SIGTERM)), Some(143));
        assert_eq!(exit_code(ChildEvent::Stopped(Signal::SIGTSTP)), None);
    }
}
