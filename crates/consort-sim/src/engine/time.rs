//! Simulated time: whole picoseconds since the start of the run.
//!
//! Integers make events exact: two events are at the same instant or they are not, whatever was
//! done in between, and splitting an interval adds up. A picosecond is a thousandth of an
//! instruction at the fastest clocks; 2⁶⁴ of them are 213 days. What takes some time takes at
//! least one.

/// Picoseconds per nanosecond.
pub(crate) const PS_PER_NS: u64 = 1_000;
/// Picoseconds per millisecond.
pub(crate) const PS_PER_MS: u64 = 1_000_000_000;
/// Time of an event that does not happen.
pub(crate) const NEVER: u64 = u64::MAX;

/// Picoseconds that `seconds` take, rounded up; none for no time, one at least for any.
pub(crate) fn picoseconds(seconds: f64) -> u64 {
    // A float beyond the range, or infinite, becomes the largest integer, which is never.
    libm::ceil(seconds * 1e12) as u64
}

/// The instant `seconds` after another.
pub(crate) fn after(now_ps: u64, seconds: f64) -> u64 {
    now_ps.saturating_add(picoseconds(seconds))
}

/// A span as a signed number; the longest one where it is longer.
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
    fn what_takes_time_takes_a_picosecond_at_least() {
        assert_eq!(after(7, 1e-30), 8);
        assert_eq!(after(7, 0.0), 7);
        assert_eq!(after(7, f64::INFINITY), NEVER);
        assert_eq!(seconds(picoseconds(0.25)), 0.25);
    }
}
