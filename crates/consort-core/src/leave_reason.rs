//! Reasons for which policies leave threads to the operating system.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Limit of CPU time that held the threads of a control group in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// Path of the group that sets the limit.
    pub group: Arc<str>,
    /// The limit, CPUs.
    pub cpus: f64,
    /// Share of the group's accounting periods in which it used its time up, 0 to 1.
    pub share: f64,
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, cpus, share } = self;
        let (percent, cpus) = (100.0 * share, (100.0 * cpus).round() / 100.0);
        write!(
            f,
            "throttled by the limit of {group} ({cpus} CPU), {percent:.0} percent of the time"
        )
    }
}

/// Reason for leaving a thread to the operating system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaveReason {
    /// The thread sleeps often, and runs for so long between two sleeps on average, ms.
    Brief(f64),
    /// A limit of CPU time holds the thread.
    Throttled(Throttle),
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Brief(ms) if *ms < 0.1 => write!(f, "runs {:.0} us between sleeps", 1e3 * ms),
            Self::Brief(ms) => write!(f, "runs {ms:.1} ms between sleeps"),
            Self::Throttled(throttle) => throttle.fmt(f),
        }
    }
}
