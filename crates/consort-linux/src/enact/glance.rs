//! Cpusets and other runs as they were a moment ago: a build starts processes by the dozen, and one
//! look does for all that are taken in together.

use super::elsewhere;
use super::host::{AllowedPus, Host};
use crate::proc::ProcError;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for which a look counts as the present.
const MOMENT: Duration = Duration::from_millis(20);

/// One look.
#[derive(Debug)]
pub(crate) struct Glance {
    at: Instant,
    pub(crate) allowed: AllowedPus,
    /// Journals of other runs; an error if they cannot be listed for the moment.
    pub(crate) other_journals: Result<Vec<PathBuf>, ProcError>,
}

impl Glance {
    /// The last look, or a new one if that is no longer the present.
    pub(crate) fn of<'a>(
        last: &'a mut Option<Self>,
        host: &Host,
        (folders, own_journal): (&[PathBuf], &Path),
    ) -> &'a mut Self {
        let recent = last.take().filter(|glance| glance.at.elapsed() < MOMENT);
        last.insert(recent.unwrap_or_else(|| Self {
            at: Instant::now(),
            allowed: AllowedPus::new(host),
            other_journals: elsewhere::other_journals(folders, own_journal),
        }))
    }
}
