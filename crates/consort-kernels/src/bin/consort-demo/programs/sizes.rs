//! Times and numbers of threads on the command line.

use consort_kernels::crew::WorkGoal;
use std::time::{Duration, Instant};

/// The longest time that can be asked for: a week.
const MAX_SECONDS: f64 = 604_800.0;

/// The most threads of one kind that can be asked for.
pub(crate) const MAX_THREADS: u64 = 100_000;

/// A positive number of seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=MAX_SECONDS).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("not a number of seconds from 0.001 to {MAX_SECONDS}"))
}

/// To work for so long from now.
pub(crate) fn goal(time: Duration) -> WorkGoal {
    WorkGoal::Until(Instant::now() + time)
}

/// Number of PUs that this process may use.
pub(crate) fn pus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::parse_seconds;
    use std::time::Duration;

    #[test]
    fn seconds() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "nan", "inf", "1e9", "1s", ""] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
    }
}
