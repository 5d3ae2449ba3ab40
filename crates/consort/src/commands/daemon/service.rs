//! Notices to a service manager, where one listens (`sd_notify(3)`).

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// Sender of notices about the daemon to the service manager; silent where there is none.
pub(super) struct Service {
    /// Period within which it wants to hear that the daemon lives; none where it does not ask.
    watchdog: Option<Duration>,
    told: Instant,
}

impl Service {
    /// Tells that the daemon has set everything up.
    pub(super) fn ready() -> Self {
        notify(&[NotifyState::Ready]);
        Self {
            watchdog: sd_notify::watchdog_enabled(),
            told: Instant::now(),
        }
    }

    /// Tells that the control loop has turned, whenever such a notice is due.
    pub(super) fn alive(&mut self) {
        let due = self
            .watchdog
            .is_some_and(|every| self.told.elapsed() > every / 4);
        if due {
            notify(&[NotifyState::Watchdog]);
            self.told = Instant::now();
        }
    }

    /// Tells that the configuration is being read again.
    pub(super) fn reloading(&self) {
        let Ok(now) = NotifyState::monotonic_usec_now() else {
            return;
        };
        notify(&[NotifyState::Reloading, now]);
    }

    /// Tells that it was read.
    pub(super) fn ready_again(&self) {
        notify(&[NotifyState::Ready]);
    }

    /// Tells that the daemon puts everything back.
    pub(super) fn stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
