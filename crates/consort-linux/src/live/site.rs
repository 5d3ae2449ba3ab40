//! The host as plans see it: its usable PUs, which come and go as CPUs and cpusets do.

use super::Host;
use crate::topology::{Watch, discover};
use consort_core::sharing::SharingMap;
use consort_core::{PuSet, Topology};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Limits are read no more often: it takes as long as looking at ten threads.
const WATCH_EVERY: Duration = Duration::from_millis(100);

/// The usable PUs below a root, and what decrees say of them.
pub(super) struct Site {
    root: PathBuf,
    topology: Topology,
    /// What a file tells of sharing instead of the kernel.
    sharing: Option<SharingMap>,
    /// PUs that count as large by decree.
    large: Option<PuSet>,
    watch: Watch,
    /// When limits of the usable PUs are read again.
    next_watch: Instant,
}

impl Site {
    /// The host as it was found.
    pub(super) fn new(host: Host, now: Instant) -> Self {
        Self {
            watch: Watch::new(&host.root),
            topology: host.discovery.topology,
            sharing: host.sharing,
            large: host.large,
            root: host.root,
            next_watch: now,
        }
    }

    /// Root of the file system.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The usable PUs.
    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether it is time to look for changes; asked once for each time.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next_watch;
        if due {
            self.next_watch = now + WATCH_EVERY;
        }
        due
    }

    /// Looks for changes; what is to be said of them.
    pub(super) fn follow(&mut self) -> Vec<String> {
        if self.watch.poll().is_none() {
            return Vec::new();
        }
        let found = discover(&self.root);
        let found = found.and_then(|found| match &self.sharing {
            Some(map) => found.with_sharing(map),
            None => Ok(found),
        });
        match found {
            Ok(found) => {
                let changed = format!("the usable PUs changed to {}", found.topology.pus());
                let (topology, lost) = self.with_large(found.topology);
                self.topology = topology;
                std::iter::once(changed).chain(lost).collect()
            }
            Err(error) => vec![format!("the topology could not be read again: {error}")],
        }
    }

    /// A topology that was found again, with the core types that were asked for; why without.
    fn with_large(&self, found: Topology) -> (Topology, Option<String>) {
        let Some(large) = &self.large else {
            return (found, None);
        };
        let left = large.intersection(found.pus());
        match found.with_large(&left) {
            Ok(topology) => (topology, None),
            Err(error) => {
                let text = format!("core types are no longer emulated: {error}");
                (found, Some(text))
            }
        }
    }
}
