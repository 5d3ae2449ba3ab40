//! Places that threads had: what makes the policy stick.

use super::OccupancyGroup;
use crate::ids::{PuId, ThreadId};
use crate::sample::Observation;
use std::collections::BTreeMap;

/// Each thread's last group and PU, and the number of quanta that it has had each PU for.
#[derive(Debug, Default)]
pub(super) struct PlaceHistory(BTreeMap<ThreadId, PlaceRecord>);

#[derive(Debug, Default)]
struct PlaceRecord {
    last: Option<(OccupancyGroup, PuId)>,
    /// Quanta spent on each PU.
    used: BTreeMap<PuId, u64>,
}

impl PlaceHistory {
    /// Forgets threads that have exited.
    pub(super) fn retain_observed(&mut self, observation: &Observation) {
        self.0.retain(|&id, _| observation.thread(id).is_some());
    }

    pub(super) fn record(&mut self, thread: ThreadId, pu: PuId, group: OccupancyGroup) {
        let entry = self.0.entry(thread).or_default();
        entry.last = Some((group, pu));
        *entry.used.entry(pu).or_default() += 1;
    }

    /// Notes that the thread is in no group now; its PUs stay known for its return.
    pub(super) fn leave_group(&mut self, thread: ThreadId) {
        if let Some(entry) = self.0.get_mut(&thread) {
            entry.last = None;
        }
    }

    /// The thread's group in the last quantum.
    pub(super) fn group(&self, thread: ThreadId) -> Option<OccupancyGroup> {
        Some(self.place(thread)?.0)
    }

    /// The thread's group and PU in the last quantum.
    pub(super) fn place(&self, thread: ThreadId) -> Option<(OccupancyGroup, PuId)> {
        self.0.get(&thread)?.last
    }

    /// The PU that the thread had in the last quantum, if it was in this group.
    pub(super) fn pu_in(&self, thread: ThreadId, group: OccupancyGroup) -> Option<PuId> {
        let (last, pu) = self.0.get(&thread)?.last?;
        (last == group).then_some(pu)
    }

    /// PUs that the thread has had, most used first.
    pub(super) fn most_used_pus(&self, thread: ThreadId) -> Vec<PuId> {
        let Some(entry) = self.0.get(&thread) else {
            return Vec::new();
        };
        let mut pus: Vec<(PuId, u64)> = entry.used.iter().map(|(&p, &n)| (p, n)).collect();
        pus.sort_by_key(|&(pu, quanta)| (std::cmp::Reverse(quanta), pu));
        pus.into_iter().map(|(pu, _)| pu).collect()
    }
}
