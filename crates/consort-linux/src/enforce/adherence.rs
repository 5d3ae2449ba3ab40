//! Adherence: the share of running time that a thread spent where the plan had it.
//!
//! Where instruction addresses are sampled, each sample shows the CPU that it was taken on and
//! stands for a stretch of CPU time, so the share is that of the samples. Elsewhere the CPU at the
//! end of an interval stands for the whole interval.

use consort_core::{PuId, PuSet, ThreadId, Topology};
use std::collections::{BTreeMap, VecDeque};

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
    /// CPUs that the plan allows the thread.
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

    /// Takes in a sample of the thread on this CPU; one from before the place was taken is ignored.
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

/// Pairs of threads with a place on the same core, where each thread has a CPU to itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct CorePairs(Vec<(ThreadId, ThreadId)>);

impl CorePairs {
    /// The pairs of the places in a plan. Cores with more threads than CPUs have none: their
    /// threads meet others with every time slice.
    pub(crate) fn from_places<'a>(
        topology: &Topology,
        places: impl Iterator<Item = (ThreadId, &'a PuSet)>,
    ) -> Self {
        let mut pairs = Vec::new();
        for (core, threads) in group_by_core(topology, places) {
            if threads.len() <= topology.cores()[core].pus.len() {
                for (index, &a) in threads.iter().enumerate() {
                    pairs.extend(threads[index + 1..].iter().map(|&b| (a, b)));
                }
            }
        }
        Self(pairs)
    }

    /// Adds an interval. `of` returns the running time of a thread, ns, and the share of it in place.
    /// Two threads were in place together for at least the sum of their shares less one (Fréchet's
    /// lower bound), so the tally is a lower bound.
    pub(crate) fn add_interval(
        &self,
        of: impl Fn(ThreadId) -> Option<(f64, f64)>,
        tally: &mut AdherenceTally,
    ) {
        for &(a, b) in &self.0 {
            if let (Some((a_ns, a)), Some((b_ns, b))) = (of(a), of(b)) {
                tally.add(a_ns.min(b_ns), (a + b - 1.0).max(0.0));
            }
        }
    }
}

/// Threads by the core that their places lie within; others are left out.
pub(crate) fn group_by_core<'a>(
    topology: &Topology,
    places: impl Iterator<Item = (ThreadId, &'a PuSet)>,
) -> BTreeMap<usize, Vec<ThreadId>> {
    let mut by_core: BTreeMap<usize, Vec<ThreadId>> = BTreeMap::new();
    for (thread, pus) in places {
        if let Some(core) = core_of(topology, pus) {
            by_core.entry(core).or_default().push(thread);
        }
    }
    by_core
}

/// The core that all of these CPUs belong to; `None` if they belong to several.
fn core_of(topology: &Topology, pus: &PuSet) -> Option<usize> {
    let core = topology.core_of(pus.first()?)?;
    let is_within = pus.iter().all(|pu| topology.core_of(pu) == Some(core));
    is_within.then_some(core)
}

/// Threads that run on one core at the same time, a group for each core that has several and gives
/// them more than one CPU.
pub(crate) fn neighbours<'a>(
    topology: &Topology,
    places: impl Iterator<Item = (ThreadId, &'a PuSet)> + Clone,
) -> Vec<Vec<ThreadId>> {
    let mut pus: BTreeMap<usize, PuSet> = BTreeMap::new();
    for (_, place) in places.clone() {
        if let Some(core) = core_of(topology, place) {
            let taken = pus.entry(core).or_default();
            *taken = taken.union(place);
        }
    }
    let crowds = group_by_core(topology, places).into_iter();
    let groups = crowds.filter(|(core, threads)| threads.len() > 1 && pus[core].len() > 1);
    groups.map(|(_, threads)| threads).collect()
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

#[cfg(test)]
mod pairs_tests {
    use super::*;

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    /// The pairs of threads 0, 1, ... with these places on two cores of two CPUs.
    fn pairs(places: &[&str]) -> CorePairs {
        let topology = Topology::uniform(2, 2).unwrap();
        let places: Vec<PuSet> = places.iter().map(|pus| pus.parse().unwrap()).collect();
        let named = (0..).map(thread).zip(&places);
        CorePairs::from_places(&topology, named)
    }

    #[test]
    fn only_threads_alone_on_a_core_are_pairs() {
        let topology = Topology::uniform(2, 2).unwrap();
        let of_core = |i: usize| topology.cores()[i].pus.iter().copied().collect::<PuSet>();
        let cores = [0, 1].map(|i| of_core(i).to_string());
        let [one, other] = [cores[0].as_str(), cores[1].as_str()];
        let of = |places: &[&str]| pairs(places).0;
        assert_eq!(of(&[one, other, one]), [(thread(0), thread(2))]);
        assert_eq!(of(&[one, one, one]), []);
        let first = topology.cores()[0].pus[0].0.to_string();
        assert_eq!(of(&[one, &first]), [(thread(0), thread(1))]);
        let all = topology.pus().to_string();
        assert_eq!(of(&[one, &all]), []);
    }

    #[test]
    fn time_together_is_a_lower_bound() {
        let mut tally = AdherenceTally::default();
        let core = Topology::uniform(2, 2).unwrap().cores()[0].pus.clone();
        let core = core.into_iter().collect::<PuSet>().to_string();
        let all = pairs(&[&core, &core]);
        let times = |share| move |_| Some((10.0, share));
        all.add_interval(times(1.0), &mut tally);
        assert_eq!(tally.share(), Some(1.0));
        all.add_interval(times(0.5), &mut tally);
        assert_eq!(tally.share(), Some(0.5));
        all.add_interval(|t| (t.tid == 0).then_some((10.0, 1.0)), &mut tally);
        assert_eq!(tally.ran_ns, 20.0);
    }

    /// Groups of the threads 0, 1, ... with these places on two cores of two CPUs.
    fn groups(places: &[&str]) -> Vec<Vec<u32>> {
        let topology = Topology::uniform(2, 2).unwrap();
        let places: Vec<PuSet> = places.iter().map(|pus| pus.parse().unwrap()).collect();
        let named = (0..).map(thread).zip(&places);
        let groups = neighbours(&topology, named).into_iter();
        groups
            .map(|group| group.into_iter().map(|t| t.tid).collect())
            .collect()
    }

    #[test]
    fn threads_of_one_core_are_a_group() {
        let topology = Topology::uniform(2, 2).unwrap();
        let core = |i: usize| topology.cores()[i].pus.clone();
        let text = |pus: &[PuId]| pus.iter().copied().collect::<PuSet>().to_string();
        let [one, other] = [text(&core(0)), text(&core(1))];
        let [first, second] = [text(&core(0)[..1]), text(&core(0)[1..])];
        let all = topology.pus().to_string();
        assert_eq!(groups(&[&one, &other, &one]), [[0, 2]]);
        assert_eq!(groups(&[&first, &second]), [[0, 1]]);
        assert_eq!(groups(&[&one, &one, &one, &other]), [[0, 1, 2]]);
        assert_eq!(groups(&[&one, &other]), [[0; 0]; 0], "each alone");
        assert_eq!(
            groups(&[&first, &first]),
            [[0; 0]; 0],
            "in turns on one CPU"
        );
        assert_eq!(groups(&[&one, &all]), [[0; 0]; 0], "anywhere is no seat");
    }
}
