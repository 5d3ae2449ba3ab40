//! Cpusets and other runs as they were a moment ago: a build starts processes by the dozen, and one
//! look does for all that are taken in together.

use super::host::{AllowedPusCache, Host};
use super::other_runs;
use crate::proc::ProcError;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for which a look counts as the present.
const MOMENT: Duration = Duration::from_millis(20);

/// One look.
#[derive(Debug)]
pub(crate) struct HostSnapshot {
    at: Instant,
    pub(crate) allowed: AllowedPusCache,
    /// Journals of other runs; an error if they cannot be listed for the moment.
    pub(crate) other_journals: Result<Vec<PathBuf>, ProcError>,
}

impl HostSnapshot {
    /// The last look, or a new one if that is no longer the present.
    pub(crate) fn get_or_refresh<'a>(
        last: &'a mut Option<Self>,
        host: &Host,
        (folders, own_journal): (&[PathBuf], &Path),
    ) -> &'a mut Self {
        let recent = last.take().filter(|glance| glance.at.elapsed() < MOMENT);
        last.insert(recent.unwrap_or_else(|| Self {
            at: Instant::now(),
            allowed: AllowedPusCache::new(host),
            other_journals: other_runs::other_journals(folders, own_journal),
        }))
    }
}
