//! What a service manager is told, where one listens (`sd_notify(3)`).

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// Tells the service manager how the daemon does; silent where there is none.
pub(super) struct Service {
    /// How often it wants to hear that the daemon lives.
    watchdog: Option<Duration>,
    told: Instant,
}

impl Service {
    /// The daemon has set everything up.
    pub(super) fn ready() -> Self {
        notify(&[NotifyState::Ready]);
        Self {
            watchdog: sd_notify::watchdog_enabled(),
            told: Instant::now(),
        }
    }

    /// The control loop has turned.
    pub(super) fn alive(&mut self) {
        let due = self
            .watchdog
            .is_some_and(|every| self.told.elapsed() > every / 4);
        if due {
            notify(&[NotifyState::Watchdog]);
            self.told = Instant::now();
        }
    }

    /// The configuration is being read again.
    pub(super) fn reloading(&self) {
        let Ok(now) = NotifyState::monotonic_usec_now() else {
            return;
        };
        notify(&[NotifyState::Reloading, now]);
    }

    /// It was read.
    pub(super) fn ready_again(&self) {
        notify(&[NotifyState::Ready]);
    }

    /// The daemon puts everything back.
    pub(super) fn stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
