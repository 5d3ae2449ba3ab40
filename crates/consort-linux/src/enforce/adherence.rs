//! Adherence: the share of running time that a thread spent where the plan had it.
//!
//! Where instruction addresses are sampled, each sample shows the PU that it was taken on and
//! stands for a stretch of CPU time, so the share is that of the samples. Elsewhere the PU at the
//! end of an interval stands for the whole interval.

use consort_core::{PuId, PuSet};
use std::collections::VecDeque;

/// Number of latest intervals of a thread that are remembered.
pub(super) const MEMORY: usize = 16;
/// A thread holds its place if it spends at least this share of its time there. Below it a
/// placement is worth less than the moves it costs.
const HOLDS: f64 = 0.75;

/// Running time, and the part of it in place, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdherenceTally {
    /// Time in place.
    pub held_ns: f64,
    /// Time in all.
    pub ran_ns: f64,
}

impl AdherenceTally {
    /// Adds running time, ns, and the share of it in place, 0 to 1.
    pub(crate) fn add(&mut self, ran_ns: f64, share: f64) {
        self.held_ns += ran_ns * share;
        self.ran_ns += ran_ns;
    }

    /// The share of time in place, 0 to 1; `None` before anything ran.
    pub fn share(self) -> Option<f64> {
        (self.ran_ns > 0.0).then(|| self.held_ns / self.ran_ns)
    }
}

/// A thread's place, and the share of its time that it spent there.
#[derive(Clone, Debug)]
pub(crate) struct ThreadPlace {
    /// PUs that the plan allows the thread.
    pub(crate) pus: PuSet,
    /// Time from which the thread is expected to be there, `CLOCK_MONOTONIC`, ns; `None` while it
    /// is still to be sent there. Earlier samples belong to an earlier place.
    since_ns: Option<u64>,
    /// Samples of the current interval, and those of them in place.
    samples: u32,
    samples_held: u32,
    /// Shares of the latest intervals in which it ran under nudges, the oldest first.
    recent: VecDeque<f64>,
}

impl ThreadPlace {
    /// A place to be taken.
    pub(crate) fn new(pus: PuSet) -> Self {
        Self {
            pus,
            since_ns: None,
            samples: 0,
            samples_held: 0,
            recent: VecDeque::new(),
        }
    }

    /// Sends the thread elsewhere; the shares of time that it spent in place so far are kept.
    pub(crate) fn change(&mut self, pus: PuSet) {
        if self.pus != pus {
            self.pus = pus;
            self.since_ns = None;
            (self.samples, self.samples_held) = (0, 0);
        }
    }

    /// Returns true if the thread is still to be sent there.
    pub(super) fn is_new(&self) -> bool {
        self.since_ns.is_none()
    }

    /// Notes that the thread has been sent there, unless that was noted before.
    pub(crate) fn note_arrival(&mut self, now_ns: u64) {
        self.since_ns.get_or_insert(now_ns);
    }

    /// Takes in a sample of the thread on this PU; one from before the place was taken is ignored.
    pub(crate) fn add_sample(&mut self, pu: PuId, time_ns: u64) {
        if self.since_ns.is_some_and(|since_ns| time_ns >= since_ns) {
            self.samples += 1;
            self.samples_held += u32::from(self.pus.contains(pu));
        }
    }

    /// Ends an interval. Returns the share of its running time that the thread spent in place, 0 to
    /// 1: from samples or, without any, from `last_pu`; `None` without either.
    pub(crate) fn end_interval(&mut self, last_pu: Option<PuId>) -> Option<f64> {
        let (all, held) = (self.samples, self.samples_held);
        (self.samples, self.samples_held) = (0, 0);
        if all > 0 {
            return Some(f64::from(held) / f64::from(all));
        }
        last_pu.map(|pu| f64::from(u8::from(self.pus.contains(pu))))
    }

    /// Remembers a share that was reached by nudges.
    pub(crate) fn remember(&mut self, share: f64) {
        self.recent.push_back(share);
        if self.recent.len() > MEMORY {
            self.recent.pop_front();
        }
    }

    /// Returns true if nudges do not keep the thread in place: the last [`MEMORY`] shares are known
    /// and their mean is below [`HOLDS`].
    pub(crate) fn drifts(&self) -> bool {
        let mean = self.recent.iter().sum::<f64>() / self.recent.len().max(1) as f64;
        self.recent.len() == MEMORY && mean < HOLDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ThreadPlace {
        let mut place = ThreadPlace::new("0-1".parse().unwrap());
        place.note_arrival(100);
        place
    }

    #[test]
    fn samples_of_this_place_give_the_share() {
        let mut place = place();
        place.add_sample(PuId(3), 99);
        for pu in [0, 1, 2, 0] {
            place.add_sample(PuId(pu), 100);
        }
        assert_eq!(place.end_interval(Some(PuId(3))), Some(0.75));
        assert_eq!(place.end_interval(Some(PuId(3))), Some(0.0));
        assert_eq!(place.end_interval(Some(PuId(1))), Some(1.0));
        assert_eq!(place.end_interval(None), None);
    }

    #[test]
    fn a_thread_drifts_when_several_intervals_were_bad() {
        let mut place = place();
        for _ in 0..MEMORY - 1 {
            place.remember(0.0);
        }
        assert!(!place.drifts());
        place.remember(0.0);
        assert!(place.drifts());
        (0..MEMORY).for_each(|_| place.remember(0.9));
        assert!(!place.drifts());
    }

    #[test]
    fn a_tally_is_weighted_by_time() {
        let mut tally = AdherenceTally::default();
        assert_eq!(tally.share(), None);
        tally.add(3.0, 1.0);
        tally.add(1.0, 0.0);
        assert_eq!(tally.share(), Some(0.75));
    }
}
