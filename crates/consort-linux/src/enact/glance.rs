//! Cpusets and other runs as they were a moment ago: a build starts processes by the dozen, and one
//! look does for all that are taken in together.

use super::elsewhere;
use super::host::{AllowedPus, Host};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for which a look counts as the present.
const MOMENT: Duration = Duration::from_millis(20);

/// One look.
#[derive(Debug)]
pub(crate) struct Glance {
    at: Instant,
    pub(crate) allowed: AllowedPus,
    /// Names of the journals of other runs in the folder of this run's.
    pub(crate) other_journals: Vec<String>,
}

impl Glance {
    /// The last look, or a new one if that is no longer the present.
    pub(crate) fn of<'a>(
        last: &'a mut Option<Self>,
        host: &Host,
        own_journal: &Path,
    ) -> &'a mut Self {
        let recent = last.take().filter(|glance| glance.at.elapsed() < MOMENT);
        last.insert(recent.unwrap_or_else(|| Self {
            at: Instant::now(),
            allowed: AllowedPus::new(host),
            other_journals: elsewhere::other_journals(own_journal),
        }))
    }
}
