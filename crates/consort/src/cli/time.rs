//! Times as they are written on the command line.

use std::time::Duration;

/// Shortest quantum that is accepted; below it a timer's slack (50 us) and a turn take too much of it.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// Longest quantum that is accepted.
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

/// Reads a simulated time, from 100 µs to an hour.
pub(super) fn parse_simulated(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "expected a time with its unit, for example 1ms or 30s".to_owned())?;
    if (Duration::from_micros(100)..=LONGEST_INTERVAL).contains(&time) {
        Ok(time)
    } else {
        Err("expected a time from 100us to 1h".to_owned())
    }
}

/// Reads a quantum such as `200ms`, within the accepted range.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text)
        .map_err(|_| "expected a time with its unit, for example 200ms or 1s".to_owned())?;
    if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
        Ok(interval)
    } else {
        Err("expected a time from 1ms to 1h".to_owned())
    }
}
