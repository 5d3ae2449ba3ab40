//! The host as plans see it: its usable CPUs, which change with hotplug and cpusets.

use super::Host;
use crate::topology::{PuLimitWatch, discover};
use consort_core::sharing::SharingMap;
use consort_core::{PuSet, Topology};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Least time between two readings of the limits: one takes as long as looking at ten threads.
const WATCH_EVERY: Duration = Duration::from_millis(250);

/// The usable CPUs below a root, with sharing and core types as files and the user have them.
pub(super) struct LiveTopology {
    root: PathBuf,
    /// Every online CPU.
    machine: Topology,
    topology: Topology,
    /// True if the managed threads' own limits decide which CPUs are usable; else Consort's do,
    /// which its command inherits.
    is_for_others: bool,
    /// CPUs that the managed threads may use; empty if there are none.
    used: PuSet,
    /// Sharing of caches from a file, which replaces the kernel's.
    sharing: Option<SharingMap>,
    /// CPUs that count as large because the user wants that.
    large: Option<PuSet>,
    watch: PuLimitWatch,
    /// Time of the next reading of the limits on usable CPUs.
    next_watch: Instant,
}

impl LiveTopology {
    /// The host as it was found.
    pub(super) fn new(host: Host, now: Instant) -> Self {
        Self {
            watch: PuLimitWatch::new(&host.root),
            machine: host.discovery.machine,
            topology: host.discovery.topology,
            is_for_others: host.is_for_others,
            used: PuSet::new(),
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

    /// Every online CPU: threads that are sampled may come to run on any.
    pub(super) fn online_pus(&self) -> &PuSet {
        self.machine.pus()
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns true if it is time to look for changes; once for each time.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next_watch;
        if due {
            self.next_watch = now + WATCH_EVERY;
        }
        due
    }

    /// Looks for changes; `used` are the CPUs that the managed threads may use. Returns notices for
    /// the user.
    pub(super) fn follow_changes(&mut self, used: PuSet) -> Vec<String> {
        // Discovery reads many files, so it runs only if one of the few watched ones has changed.
        let is_changed = self.watch.poll().is_some();
        if !is_changed && (!self.is_for_others || used == self.used) {
            return Vec::new();
        }
        let mut notices = Vec::new();
        let mut own = None;
        if is_changed {
            let found = discover(&self.root);
            let found = found.and_then(|found| match &self.sharing {
                Some(map) => found.with_sharing(map),
                None => Ok(found),
            });
            match found {
                Ok(found) => {
                    self.machine = found.machine;
                    own = Some(found.topology);
                }
                Err(error) => {
                    return vec![format!("the topology could not be read again: {error}")];
                }
            }
        }
        self.used = used;
        let usable = match (self.is_for_others, own) {
            (false, Some(own)) => own,
            // Without threads, or if all are about to move, the whole machine.
            _ => (self.machine.restrict_to(&self.used)).unwrap_or_else(|_| self.machine.clone()),
        };
        let before = self.topology.pus().clone();
        let mut lost = None;
        self.topology = match &self.large {
            None => usable,
            Some(large) => match usable.with_large_cores(&large.intersection(usable.pus())) {
                Ok(topology) => topology,
                // For example, all CPUs that are left count as large.
                Err(error) => {
                    lost = Some(format!("core types are no longer emulated: {error}"));
                    usable
                }
            },
        };
        if is_changed && *self.topology.pus() != before {
            notices.push(format!(
                "the usable CPUs changed to {}",
                self.topology.pus()
            ));
        }
        notices.extend(lost);
        notices
    }
}
