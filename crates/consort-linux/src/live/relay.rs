//! Signals and the command's end, while a quantum passes.

use super::error::LiveError;
use super::{CommandSource, LiveMachine};
use crate::enact::{SignalAction, SignalEvent, choose_action};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::{TimeSpec, TimeValLike};
use std::time::{Duration, Instant};

/// Time between two readings of the rings while they fill quickly.
const DRAIN_SOON: Duration = Duration::from_millis(20);

/// Sources that are to be heard after a wait: to ask each of them costs a system call.
#[derive(Clone, Copy, Debug, Default)]
struct ReadySources {
    signals: bool,
    /// Sockets that commands come from.
    others: bool,
}

impl ReadySources {
    const ALL: Self = Self {
        signals: true,
        others: true,
    };

    /// Returns the sources of what was polled, signals first.
    fn from_poll(fds: &[PollFd<'_>]) -> Self {
        let mut reported = fds.iter().map(|fd| fd.any().unwrap_or(true));
        Self {
            signals: reported.next().unwrap_or(true),
            others: reported.any(|is_told| is_told),
        }
    }
}

impl LiveMachine {
    /// Waits until the quantum is over, the command has ended or the owner of the control loop has to
    /// act. Reads rings, relays signals and carries out commands meanwhile.
    pub(super) fn wait_for_quantum(
        &mut self,
        source: &mut impl CommandSource,
    ) -> Result<(), LiveError> {
        let (end, stretched) = self.clock.begin_turn();
        self.warnings.extend(stretched);
        loop {
            let interrupted = self.actuators.send_guardian_heartbeat();
            self.warnings.extend(interrupted);
            self.recover_if_due();
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            let pause = match self.observers.sampler_mut().is_some_and(|s| s.is_crowded()) {
                true => DRAIN_SOON,
                false => self.clock.pause_of_rings(),
            };
            let ready = self.wait(source, left.min(pause))?;
            self.relay_signals(source, ready.signals)?;
            self.take_records();
            if ready.others || source.has_connections() {
                self.serve_commands(source);
            }
            let cut = self.lifecycle.is_over() || source.ends_quantum();
            if cut || Instant::now() >= end {
                return Ok(());
            }
            self.warnings.extend(self.actuators.send_kernel_heartbeat());
            let (actuators, context) = self.actuators_and_context();
            actuators.correct_drift(context);
        }
    }

    fn wait(&self, source: &impl CommandSource, time: Duration) -> Result<ReadySources, LiveError> {
        let fds = std::iter::once(self.lifecycle.fd()).chain(source.fds());
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // To the nanosecond: milliseconds would be a quarter of the shortest quanta.
        match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
            Ok(0) => Ok(ReadySources::default()),
            Ok(_) => Ok(ReadySources::from_poll(&fds)),
            Err(Errno::EINTR) => Ok(ReadySources::ALL),
            Err(errno) => Err(LiveError::Wait(errno)),
        }
    }

    fn relay_signals(
        &mut self,
        source: &mut impl CommandSource,
        are_there: bool,
    ) -> Result<(), LiveError> {
        if !are_there {
            self.lifecycle.note_no_signal();
            return Ok(());
        }
        while let Some(event) = self.lifecycle.next_signal()? {
            let Some(command) = self.lifecycle.command() else {
                match event.signal {
                    Signal::SIGINT | Signal::SIGTERM | Signal::SIGQUIT => self.end(),
                    Signal::SIGHUP => source.note_hangup(),
                    _ => {}
                }
                continue;
            };
            match choose_action(event, command) {
                SignalAction::Forward(signal) => {
                    self.wake_for(event, command);
                    self.warnings.extend(self.lifecycle.forward(signal));
                }
                SignalAction::AskChild => self.take_child_events()?,
                SignalAction::Nothing if event.from_kernel || event.to_group => {
                    if self.wake_for(event, command) {
                        self.warnings.extend(self.lifecycle.forward(event.signal));
                    }
                }
                SignalAction::Nothing => {}
            }
        }
        Ok(())
    }

    /// Resumes all programs before a signal, or for one that the command has already. Returns true
    /// if the command was paused by a stop signal, which makes the kernel drop the terminal's
    /// signal to stop.
    fn wake_for(&mut self, event: SignalEvent, command: u32) -> bool {
        let program = self.table.program_of(command);
        let by_signal = self.actuators.is_stopped(program);
        self.wake_all();
        by_signal && event.signal == Signal::SIGTSTP
    }

    /// Resumes all programs, and pauses none for a moment.
    pub(super) fn wake_all(&mut self) {
        self.warnings.extend(self.actuators.wake_all());
    }

    fn take_child_events(&mut self) -> Result<(), LiveError> {
        let wake = || self.actuators.wake_all();
        self.lifecycle.take_child_events(&mut self.warnings, wake)
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
