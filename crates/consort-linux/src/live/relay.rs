//! Signals and the command's end, while a quantum passes.

use super::urgency::Urgency;
use super::{Live, LiveError};
use crate::control::Desk;
use crate::enact::{ChildEvent, Launched, Relay, exit_code, relay};
use crate::group::Leader;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::{TimeSpec, TimeValLike};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Outcome of the command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) exit_code: u8,
}

/// Longest time between two readings of the rings: code of short-lived processes must be fetched in
/// time, and even the smallest ring holds the records of that long. Their descriptors are not
/// polled, since those of threads that have exited report a hang-up for ever.
const DRAIN_EVERY: Duration = Duration::from_millis(100);

/// Sources that are to be heard after a wait: to ask each of them costs a system call.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    signals: bool,
    /// Members of the group, or clients of the desk.
    others: bool,
}

impl Waiting {
    const ALL: Self = Self {
        signals: true,
        others: true,
    };

    /// Returns the sources of what was polled, signals first.
    fn of(fds: &[PollFd<'_>]) -> Self {
        let mut told = fds.iter().map(|fd| fd.any().unwrap_or(true));
        Self {
            signals: told.next().unwrap_or(true),
            others: told.any(|is_told| is_told),
        }
    }
}

impl Live {
    /// Waits until the quantum is over, the command has ended or a member asks for open terms,
    /// reading rings and relaying signals meanwhile.
    pub(super) fn wait_for_quantum(&mut self) -> Result<(), LiveError> {
        let (end, stretched) = self.clock.begin_turn();
        self.warnings.extend(stretched);
        loop {
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            let waiting = self.wait(left.min(DRAIN_EVERY))?;
            self.take_signals(waiting.signals)?;
            self.take_records();
            self.attend(waiting);
            let cut = self.ending.is_some() || self.proposal().is_some() || self.has_orders();
            if cut || Instant::now() >= end {
                return Ok(());
            }
            self.beat();
            self.chase();
        }
    }

    fn wait(&self, time: Duration) -> Result<Waiting, LiveError> {
        let of_group = self.group.iter().flat_map(Leader::fds);
        let of_desk = self.residence.desk.iter().flat_map(Desk::fds);
        let fds = std::iter::once(self.signals.as_fd());
        let fds = fds.chain(of_group).chain(of_desk);
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // To the nanosecond: milliseconds would be a quarter of the shortest quanta.
        match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
            Ok(0) => Ok(Waiting::default()),
            Ok(_) => Ok(Waiting::of(&fds)),
            Err(Errno::EINTR) => Ok(Waiting::ALL),
            Err(errno) => Err(LiveError::Wait(errno)),
        }
    }

    fn attend(&mut self, waiting: Waiting) {
        if waiting.others || self.group.as_ref().is_some_and(Leader::is_talking) {
            self.attend_group();
        }
        let desk = self.residence.desk.as_ref();
        if waiting.others || desk.is_some_and(Desk::is_talking) {
            self.attend_desk();
        }
    }

    fn take_signals(&mut self, are_there: bool) -> Result<(), LiveError> {
        if !are_there {
            self.signals.rest();
            return Ok(());
        }
        while let Some(event) = self.signals.next().map_err(LiveError::Wait)? {
            let Some(command) = self.child.as_ref().map(Launched::pid) else {
                self.heed(event.signal);
                continue;
            };
            match relay(event, command) {
                Relay::Forward(signal) => {
                    self.wake_for(event);
                    self.forward(signal);
                }
                Relay::AskChild => self.take_child_events()?,
                Relay::Nothing if event.from_kernel || event.to_group => {
                    if self.wake_for(event) {
                        self.forward(event.signal);
                    }
                }
                Relay::Nothing => {}
            }
        }
        Ok(())
    }

    fn forward(&mut self, signal: Signal) {
        let sent = self.child.as_ref().map(|child| child.signal(signal));
        if let Some(Err(errno)) = sent {
            let text = format!("{signal} could not be passed on to the command: {errno}");
            self.warnings.insert(text);
        }
    }

    /// Asks for the command's state without real-time priority: the kernel spins in the call until
    /// the last thread has left its PU, which may be the one that Consort runs on.
    fn take_child_events(&mut self) -> Result<(), LiveError> {
        // A signal may come for an end that an earlier question has found.
        if self.ending.is_some() {
            return Ok(());
        }
        self.urgency.give_up();
        self.read_child_events()?;
        if self.ending.is_none() {
            self.urgency = Urgency::take();
        }
        Ok(())
    }

    fn read_child_events(&mut self) -> Result<(), LiveError> {
        while let Some(event) = self.child_event()? {
            if let Some(exit_code) = exit_code(event) {
                self.ending = Some(Ending { exit_code });
                return Ok(());
            }
            if let ChildEvent::Stopped(signal) = event {
                self.stop_with(signal)?;
            }
        }
        Ok(())
    }

    fn child_event(&self) -> Result<Option<ChildEvent>, LiveError> {
        let Some(child) = &self.child else {
            return Ok(None);
        };
        child.next_event(false).map_err(LiveError::Wait)
    }

    /// Stops Consort as well when the command was stopped from the terminal, as the shell must see
    /// both stopped. When Consort is continued, so is the command.
    fn stop_with(&mut self, signal: Signal) -> Result<(), LiveError> {
        if signal == Signal::SIGSTOP {
            return Ok(());
        }
        // While Consort is stopped nobody else could let them go on.
        self.wake_all();
        self.signals.stop_like(signal).map_err(LiveError::Wait)?;
        self.forward(Signal::SIGCONT);
        Ok(())
    }
}

/// CPU time of all children that have ended and been waited for, theirs included, s. The guardian
/// is still alive when this is asked.
pub(super) fn children_cpu_s() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return 0.0;
    };
    let total = usage.user_time() + usage.system_time();
    total.num_microseconds() as f64 / 1e6
}
