//! The calendar: what time it is, what is due besides the events of threads, and what has changed.

use super::burst::next_on_grid;
use super::time::{NEVER, PS_PER_MS, PS_PER_NS};

/// Time until threads on other cores feel that one has stopped, ps: about as long as a thread takes
/// to bring a thousand lines from memory, ten at a time in 100 ns.
pub(crate) const LAG_PS: u64 = 10_000 * PS_PER_NS;

/// Time, and what is due at which instant of it.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    now: u64,
    done: bool,
    /// True if rates no longer hold.
    stale: bool,
    /// Instant from which rates no longer hold because a thread has stopped, ps.
    stale_at: u64,
    /// True if some thread has stalled or gone on since [`Calendar::clear_activity`].
    stirred: bool,
    /// Next instant at which the operating system evens out load, ps.
    tick_at: u64,
    /// Instant at which drawn variations take effect, ps.
    burst_at: u64,
}

impl Calendar {
    /// The beginning of a run, at which no rates hold.
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            done: false,
            stale: true,
            stale_at: NEVER,
            stirred: false,
            tick_at: NEVER,
            burst_at: NEVER,
        }
    }

    /// Now, ps since the start.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Now, whole ms since the start.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now / PS_PER_MS
    }

    /// Goes on to an instant, ps.
    pub(crate) fn go_to(&mut self, next: u64) {
        self.now = next;
    }

    /// True if the run is over.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Notes whether the run is over.
    pub(crate) fn set_done(&mut self, done: bool) {
        self.done = done;
    }

    /// Instant of what is due next, ps.
    pub(crate) fn next_due(&self) -> u64 {
        self.tick_at.min(self.burst_at).min(self.stale_at)
    }

    /// Notes that rates no longer hold, from now on.
    pub(crate) fn void_rates(&mut self) {
        self.stale = true;
    }

    /// Notes that rates hold for [`LAG_PS`] more at most.
    pub(crate) fn void_rates_soon(&mut self) {
        self.stale_at = self.stale_at.min(self.now + LAG_PS);
    }

    /// Voids rates whose time is over.
    pub(crate) fn expire_rates(&mut self) {
        if self.stale_at <= self.now {
            self.stale_at = NEVER;
            self.stale = true;
        }
    }

    /// True if rates no longer held; they do from now on.
    pub(crate) fn renew_rates(&mut self) -> bool {
        let stale = std::mem::take(&mut self.stale);
        if stale {
            self.stale_at = NEVER;
        }
        stale
    }

    /// Forgets that threads have stalled or gone on.
    pub(crate) fn clear_activity(&mut self) {
        self.stirred = false;
    }

    /// Notes that a thread stalls or goes on.
    pub(crate) fn note_activity(&mut self) {
        self.stirred = true;
    }

    /// True if a thread has stalled or gone on since [`Calendar::clear_activity`].
    pub(crate) fn has_activity(&self) -> bool {
        self.stirred
    }

    /// Notes that a variation was drawn.
    pub(crate) fn expect_burst(&mut self) {
        self.burst_at = self.burst_at.min(next_on_grid(self.now));
    }

    /// True if drawn variations take effect now; asked once.
    pub(crate) fn take_burst(&mut self) -> bool {
        let due = self.burst_at <= self.now;
        if due {
            self.burst_at = NEVER;
        }
        due
    }

    /// True if the operating system evens out load now.
    pub(crate) fn is_tick(&self) -> bool {
        self.tick_at <= self.now
    }

    /// Sets when the operating system evens out load next, ps.
    pub(crate) fn set_tick(&mut self, at: u64) {
        self.tick_at = at;
    }
}
