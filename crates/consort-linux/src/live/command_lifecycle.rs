//! The course of a run: the command, if one was started, the signals that are for it, and its end.

use super::error::LiveError;
use super::urgency::Urgency;
use super::warnings::Warnings;
use crate::enact::{ChildEvent, LaunchedProgram, SignalEvent, SignalReader, exit_code};
use nix::sys::signal::Signal;
use std::os::fd::{AsFd, BorrowedFd};

/// The command, its signals and its end, with the urgency of the thread that follows them.
pub(super) struct CommandLifecycle {
    /// The command; none where nothing was started.
    child: Option<LaunchedProgram>,
    signals: SignalReader,
    urgency: Urgency,
    /// Exit code of the run, once it is over.
    ended: Option<u8>,
}

impl CommandLifecycle {
    /// The course of a run from now on, on time from now on: the command must have been launched.
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

    /// Returns true once the command has ended, or the run was told to end.
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

    /// Waits for others from now on, with the urgency that the thread was started with.
    pub(super) fn give_up_urgency(&mut self) {
        self.urgency.give_up();
    }

    /// Descriptor that is readable when there are signals.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    pub(super) fn note_no_signal(&self) {
        self.signals.discard_stale_signals();
    }

    pub(super) fn next_signal(&self) -> Result<Option<SignalEvent>, LiveError> {
        self.signals.next().map_err(LiveError::Wait)
    }

    /// Passes a signal on to the command; returns a warning if that fails.
    pub(super) fn forward(&self, signal: Signal) -> Option<String> {
        let errno = self.child.as_ref()?.signal(signal).err()?;
        Some(format!(
            "{signal} could not be passed on to the command: {errno}"
        ))
    }

    /// Asks for the command's state without real-time priority: the kernel spins in the call until
    /// the last thread has left its PU, which may be the one that Consort runs on. `wake` resumes
    /// all programs, and returns warnings.
    pub(super) fn take_child_events(
        &mut self,
        warnings: &mut Warnings,
        wake: impl FnMut() -> Vec<String>,
    ) -> Result<(), LiveError> {
        // A signal may come for an end that an earlier question has found.
        if self.is_over() {
            return Ok(());
        }
        self.urgency.give_up();
        self.read_child_events(warnings, wake)?;
        if !self.is_over() {
            self.urgency = Urgency::raise();
        }
        Ok(())
    }

    fn read_child_events(
        &mut self,
        warnings: &mut Warnings,
        mut wake: impl FnMut() -> Vec<String>,
    ) -> Result<(), LiveError> {
        while let Some(event) = self.next_child_event()? {
            if let Some(exit_code) = exit_code(event) {
                self.ended = Some(exit_code);
                return Ok(());
            }
            if let ChildEvent::Stopped(signal) = event
                && signal != Signal::SIGSTOP
            {
                // While Consort is stopped nobody else could let them go on.
                warnings.extend(wake());
                warnings.extend(self.stop_with_command(signal)?);
            }
        }
        Ok(())
    }

    fn next_child_event(&self) -> Result<Option<ChildEvent>, LiveError> {
        let Some(child) = &self.child else {
            return Ok(None);
        };
        child.next_event(false).map_err(LiveError::Wait)
    }

    /// Stops Consort as well when the command was stopped from the terminal, as the shell must see
    /// both stopped. When Consort is continued, so is the command. Returns a warning if that fails.
    fn stop_with_command(&self, signal: Signal) -> Result<Option<String>, LiveError> {
        self.signals
            .stop_by_signal(signal)
            .map_err(LiveError::Wait)?;
        Ok(self.forward(Signal::SIGCONT))
    }
}
