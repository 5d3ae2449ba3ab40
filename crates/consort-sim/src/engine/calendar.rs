//! Simulated time, what is due besides the events of threads, and what has changed.
//!
//! Time is in whole picoseconds since the start of the run. Integers make events exact: two events
//! are at the same instant or they are not, whatever was done in between, and splitting an interval
//! adds up. A picosecond is a thousandth of an instruction at the fastest clocks; 2⁶⁴ of them are
//! 213 days. Any time above zero takes at least one.

/// Time until threads on other cores feel that one has stopped, ps: about as long as a thread takes
/// to bring a thousand lines from memory, ten at a time in 100 ns.
pub(crate) const LAG_PS: u64 = 10_000 * PS_PER_NS;

/// Instants at which new factors take effect, ps apart: about the time that 10^8 instructions
/// take, the interval for which phase sequences are published.
pub(crate) const GRID_PS: u64 = 100 * PS_PER_MS;

/// The first instant of the grid after another.
pub(crate) fn next_on_grid(now_ps: u64) -> u64 {
    (now_ps / GRID_PS + 1) * GRID_PS
}

/// Time, and what is due at which instant of it.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    now: u64,
    done: bool,
    /// True if rates no longer hold.
    stale: bool,
    /// Instant from which rates no longer hold because a thread has stopped, ps.
    stale_at: u64,
    /// True if a thread has stalled or continued since [`Calendar::clear_activity`].
    stirred: bool,
    /// Next instant at which the operating system evens out load, ps.
    tick_at: u64,
    /// Instant at which drawn factors take effect, ps.
    burst_at: u64,
}

impl Calendar {
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

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Now, whole ms since the start.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now / PS_PER_MS
    }

    pub(crate) fn go_to(&mut self, next: u64) {
        self.now = next;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn set_done(&mut self, done: bool) {
        self.done = done;
    }

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

    /// True if rates have to be solved; they hold from now on.
    pub(crate) fn renew_rates(&mut self) -> bool {
        let stale = std::mem::take(&mut self.stale);
        if stale {
            self.stale_at = NEVER;
        }
        stale
    }

    pub(crate) fn clear_activity(&mut self) {
        self.stirred = false;
    }

    /// Notes that a thread stalls or continues.
    pub(crate) fn note_activity(&mut self) {
        self.stirred = true;
    }

    /// True if a thread has stalled or continued since [`Calendar::clear_activity`].
    pub(crate) fn has_activity(&self) -> bool {
        self.stirred
    }

    pub(crate) fn expect_burst(&mut self) {
        self.burst_at = self.burst_at.min(next_on_grid(self.now));
    }

    /// True once when drawn variations take effect.
    pub(crate) fn take_burst(&mut self) -> bool {
        let due = self.burst_at <= self.now;
        if due {
            self.burst_at = NEVER;
        }
        due
    }

    pub(crate) fn is_tick(&self) -> bool {
        self.tick_at <= self.now
    }

    pub(crate) fn expects_tick(&self) -> bool {
        self.tick_at != NEVER
    }

    pub(crate) fn set_tick(&mut self, at: u64) {
        self.tick_at = at;
    }
}

/// Picoseconds per nanosecond.
pub(crate) const PS_PER_NS: u64 = 1_000;
/// Picoseconds per millisecond.
pub(crate) const PS_PER_MS: u64 = 1_000_000_000;
/// Time of an event that does not happen.
pub(crate) const NEVER: u64 = u64::MAX;

/// Picoseconds that `seconds` take, rounded up, so that no time takes none and any other time at
/// least one.
pub(crate) fn picoseconds(seconds: f64) -> u64 {
    // A float beyond the range, or infinite, becomes the largest integer, which stands for never.
    libm::ceil(seconds * 1e12) as u64
}

/// The instant `seconds` after another.
pub(crate) fn after(now_ps: u64, seconds: f64) -> u64 {
    now_ps.saturating_add(picoseconds(seconds))
}

/// A span as a signed number, capped at the largest.
pub(crate) fn to_signed(ps: u64) -> i64 {
    i64::try_from(ps).unwrap_or(i64::MAX)
}

/// Seconds between two instants.
pub(crate) fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_takes_a_picosecond() {
        assert_eq!(after(7, 1e-30), 8);
        assert_eq!(after(7, 0.0), 7);
        assert_eq!(after(7, f64::INFINITY), NEVER);
        assert_eq!(seconds(picoseconds(0.25)), 0.25);
    }
}
