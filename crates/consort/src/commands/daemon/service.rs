//! Notices to a service manager, where one listens (`sd_notify(3)`).

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// Sender of notices about the daemon to the service manager; silent where there is none.
pub(super) struct ServiceNotifier {
    /// Period within which it wants to hear that the daemon lives; none where it does not ask.
    watchdog: Option<Duration>,
    told: Instant,
}

impl ServiceNotifier {
    /// Tells that the daemon has set everything up.
    pub(super) fn notify_ready() -> Self {
        notify(&[NotifyState::Ready]);
        Self {
            watchdog: sd_notify::watchdog_enabled(),
            told: Instant::now(),
        }
    }

    /// Tells that the control loop has turned, whenever such a notice is due.
    pub(super) fn notify_alive(&mut self) {
        let due = self
            .watchdog
            .is_some_and(|every| self.told.elapsed() > every / 4);
        if due {
            notify(&[NotifyState::Watchdog]);
            self.told = Instant::now();
        }
    }

    /// Tells that the configuration is being read again.
    pub(super) fn notify_reloading(&self) {
        let Ok(now) = NotifyState::monotonic_usec_now() else {
            return;
        };
        notify(&[NotifyState::Reloading, now]);
    }

    /// Tells that it was read.
    pub(super) fn notify_reloaded(&self) {
        notify(&[NotifyState::Ready]);
    }

    /// Tells that the daemon puts everything back.
    pub(super) fn notify_stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
