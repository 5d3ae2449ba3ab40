//! The command of a run, its signals and its end, which are handled while a quantum passes.

use super::urgency::Urgency;
use super::warnings::Warnings;
use super::{CommandSource, LiveError, LiveMachine};
use crate::enact::{
    ChildEvent, CommandTimes, LaunchedProgram, SignalAction, SignalEvent, SignalReader,
    choose_action, exit_code,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The command, its signals and its end, with the urgency of the thread that follows them.
pub(super) struct CommandLifecycle {
    /// The command; `None` if nothing was started.
    child: Option<LaunchedProgram>,
    signals: SignalReader,
    pub(super) urgency: Urgency,
    /// Exit code of the run, once it is over.
    ended: Option<u8>,
}

impl CommandLifecycle {
    /// Raises the urgency of the calling thread. The command must have been launched before, so that it
    /// does not inherit it.
    pub(super) fn new(child: Option<LaunchedProgram>, signals: SignalReader) -> Self {
        Self {
            child,
            signals,
            urgency: Urgency::raise(),
            ended: None,
        }
    }

    /// Pid of the command, if one was started.
    pub(super) fn command(&self) -> Option<u32> {
        self.child.as_ref().map(LaunchedProgram::pid)
    }

    /// Times of the command; `None` without one, or before its end.
    pub(super) fn times(&self) -> Option<CommandTimes> {
        self.child.as_ref()?.times()
    }

    /// Returns true once the command has ended, or the run was to end.
    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn end(&mut self) {
        self.ended.get_or_insert(0);
    }

    /// The exit code for the user; 0 before the end.
    pub(super) fn exit_code(&self) -> u8 {
        self.ended.unwrap_or(0)
    }

    /// Passes a signal on to the command; returns a warning if that fails.
    pub(super) fn forward(&self, signal: Signal) -> Option<String> {
        let errno = self.child.as_ref()?.signal(signal).err()?;
        Some(format!(
            "{signal} could not be passed on to the command: {errno}"
        ))
    }

    /// Reads the changes of the command's state, without real-time priority: the kernel spins in the call
    /// until the command's last thread has left its CPU, which may be the CPU that Consort runs on.
    /// `wake` resumes all programs, and returns warnings.
    pub(super) fn take_child_events(
        &mut self,
        warnings: &mut Warnings,
        mut wake: impl FnMut() -> Vec<String>,
    ) -> Result<(), LiveError> {
        // SIGCHLD may come for an end that an earlier call has already read.
        if self.is_over() {
            return Ok(());
        }
        self.urgency.give_up();
        while let Some(child) = &self.child
            && let Some(event) = child.next_event(false).map_err(LiveError::Wait)?
        {
            if let Some(exit_code) = exit_code(event) {
                self.ended = Some(exit_code);
                return Ok(());
            }
            if let ChildEvent::Stopped(signal) = event
                && signal != Signal::SIGSTOP
            {
                // The command was stopped from the terminal. The shell must see both processes
                // stopped, so Consort stops as well. Paused programs are resumed first, because no
                // other process could do that meanwhile. When Consort continues, so does the command.
                warnings.extend(wake());
                self.signals
                    .stop_by_signal(signal)
                    .map_err(LiveError::Wait)?;
                warnings.extend(self.forward(Signal::SIGCONT));
            }
        }
        self.urgency = Urgency::raise();
        Ok(())
    }
}

/// Time between two readings of the rings while they fill quickly.
const DRAIN_SOON: Duration = Duration::from_millis(20);

/// Sources to read after a wait. To read each of them costs a system call.
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
            // Before the wait, which may last a whole quantum: the guardian restores if no sign of
            // life comes for some seconds.
            let interrupted = self.actuators.send_guardian_heartbeat();
            self.warnings.extend(interrupted);
            self.recover_if_due();
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            let pause = match self.observers.sampler_mut().is_some_and(|s| s.is_crowded()) {
                true => DRAIN_SOON,
                false => self.clock.pause_of_rings,
            };
            let ready = self.wait(source, left.min(pause))?;
            // Signals first: they may end the run, and a paused command has to run to receive them.
            self.relay_signals(source, ready.signals)?;
            self.take_records();
            // Deadlines of connections pass even if no descriptor is ready.
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
        let fds = std::iter::once(self.lifecycle.signals.as_fd()).chain(source.fds());
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // ppoll(2), because poll(2) counts milliseconds, which are a quarter of the shortest quanta.
        match ppoll(&mut fds, Some(TimeSpec::from_duration(time)), None) {
            Ok(0) => Ok(ReadySources::default()),
            Ok(_) => {
                let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(true));
                Ok(ReadySources {
                    signals: ready.next().unwrap_or(true),
                    others: ready.any(|is_ready| is_ready),
                })
            }
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
            self.lifecycle.signals.discard_stale_signals();
            return Ok(());
        }
        while let Some(event) = (self.lifecycle.signals.next()).map_err(LiveError::Wait)? {
            let Some(command) = self.lifecycle.command() else {
                match event.signal {
                    // Without a command, signals are for Consort itself.
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
                SignalAction::AskChild => {
                    let wake = || self.actuators.wake_all();
                    self.lifecycle.take_child_events(&mut self.warnings, wake)?;
                }
                // The command has it already, but a paused one cannot act on it.
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

    /// Resumes all programs before a signal is passed on, or for one that the command has already,
    /// because a paused program runs no handler. Returns true if the command was paused by a stop
    /// signal, which makes the kernel drop the terminal's signal to stop.
    fn wake_for(&mut self, event: SignalEvent, command: u32) -> bool {
        let program = self.table.program_of(command);
        let by_signal = self.actuators.pausing.is_stopped(program);
        self.wake_all();
        by_signal && event.signal == Signal::SIGTSTP
    }

    /// Resumes all programs, and pauses none for a moment.
    pub(super) fn wake_all(&mut self) {
        self.warnings.extend(self.actuators.wake_all());
    }
}
