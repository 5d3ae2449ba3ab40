//! Threads that run at the same rate because everything around them is the same.
//!
//! Two L2 domains of one LLC domain on which the same demands run in the same way give their
//! threads the same rates, and so do two LLC domains of one node. One of the threads stands for
//! all of them, which is as exact as solving for each and as much faster as there are twins: teams
//! of equal threads on chips of many cores are mostly that.

use super::types::{Demand, RunningThread};
use crate::chip::{Chip, PuPlace};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Threads that stand for others.
#[derive(Clone, Debug)]
pub(crate) struct RepresentativeThreads<'a> {
    /// One thread of each kind.
    pub(crate) running: Vec<RunningThread<'a>>,
    /// Number of threads that each of `running` stands for, itself included.
    pub(crate) times: Vec<f64>,
    /// Number of these threads that are in its LLC domain.
    pub(crate) in_llc: Vec<f64>,
    /// Position in `running` of the thread that stands for each given thread.
    pub(crate) of: Vec<usize>,
}

/// A thread of an L2 domain: rank of its core among the busy ones there, the core's type, its
/// demand, its node and package.
type ThreadSignature = [usize; 6];

impl<'a> RepresentativeThreads<'a> {
    /// The twins among running threads.
    pub(crate) fn new(chip: &Chip, running: &[RunningThread<'a>]) -> Self {
        let kinds = kinds(running);
        if kinds
            .iter()
            .max()
            .is_none_or(|most| most + 1 == running.len())
        {
            return Self::without_twins(running);
        }
        let places: Vec<PuPlace> = running.iter().map(|r| chip.places()[r.pu]).collect();
        let stands = stand_ins(&places, &kinds, &|llc| chip.llc_kib(llc).to_bits() as usize);
        Self::from_representatives(running, &places, &stands)
    }

    fn without_twins(running: &[RunningThread<'a>]) -> Self {
        Self {
            running: running.to_vec(),
            times: vec![1.0; running.len()],
            in_llc: vec![1.0; running.len()],
            of: (0..running.len()).collect(),
        }
    }

    /// From the index of the thread that stands for each.
    fn from_representatives(
        running: &[RunningThread<'a>],
        places: &[PuPlace],
        stands: &[usize],
    ) -> Self {
        let mut twins = Self {
            running: Vec::new(),
            times: Vec::new(),
            in_llc: Vec::new(),
            of: vec![0; running.len()],
        };
        for (i, &stand) in stands.iter().enumerate() {
            if stand == i {
                twins.of[i] = twins.running.len();
                twins.running.push(running[i]);
                twins.times.push(0.0);
                twins.in_llc.push(0.0);
            }
        }
        for (i, &stand) in stands.iter().enumerate() {
            let at = twins.of[stand];
            twins.of[i] = at;
            twins.times[at] += 1.0;
            if places[i].llc == places[stand].llc {
                twins.in_llc[at] += 1.0;
            }
        }
        twins
    }

    /// Returns for every given thread the value of the thread that stands for it.
    pub(crate) fn spread<T: Copy>(&self, of_each: &[T]) -> Vec<T> {
        self.of.iter().map(|&at| of_each[at]).collect()
    }
}

/// Number of each thread's demand, by first appearance.
fn kinds(running: &[RunningThread<'_>]) -> Vec<usize> {
    let mut known = BTreeMap::new();
    let kind = |r: &RunningThread<'_>| number(&mut known, key(r.demand));
    running.iter().map(kind).collect()
}

/// A key that is equal for equal demands alone. No result depends on the order of phases'
/// addresses.
fn key(demand: &Demand) -> impl Ord + use<> {
    let lock = demand.lock.as_ref();
    (
        (
            Arc::as_ptr(&demand.phase) as usize,
            demand.intensity.to_bits(),
        ),
        (demand.program, demand.text, demand.home_node),
        (demand.shared_data.to_bits(), demand.shared_code.to_bits()),
        lock.map(|l| (l.per_minstr.to_bits(), l.hold_instr.to_bits(), l.count)),
    )
}

/// The number of a key, a new one if it was not known.
fn number<K: Ord>(known: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = known.len();
    *known.entry(key).or_insert(next)
}

/// For each thread its representative. The representatives of the threads of an LLC domain are all
/// in one domain.
fn stand_ins(places: &[PuPlace], kinds: &[usize], capacity: &dyn Fn(usize) -> usize) -> Vec<usize> {
    let mut l2s: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (i, place) in places.iter().enumerate() {
        l2s.entry((place.llc, place.l2)).or_default().push(i);
    }
    let mut known = BTreeMap::new();
    // Each LLC domain's L2 domains: what they are, and their threads.
    let mut llcs: BTreeMap<usize, Vec<(usize, Vec<usize>)>> = BTreeMap::new();
    for ((llc, _), mut members) in l2s {
        members.sort_by_key(|&i| (places[i].core, i));
        let what = number(&mut known, signature(places, kinds, capacity, &members));
        llcs.entry(llc).or_default().push((what, members));
    }
    let mut stands: Vec<usize> = (0..places.len()).collect();
    let mut first: BTreeMap<(Vec<usize>, usize), Vec<usize>> = BTreeMap::new();
    for l2s in llcs.values_mut() {
        l2s.sort();
        let all: Vec<usize> = l2s.iter().map(|(what, _)| *what).collect();
        for (what, members) in l2s {
            let of = first.entry((all.clone(), *what));
            let of = of.or_insert_with(|| members.clone());
            for (&i, &first) in members.iter().zip(of.iter()) {
                stands[i] = first;
            }
        }
    }
    stands
}

fn signature(
    places: &[PuPlace],
    kinds: &[usize],
    capacity: &dyn Fn(usize) -> usize,
    members: &[usize],
) -> Vec<ThreadSignature> {
    let (mut rank, mut last) = (0, places[members[0]].core);
    let member = |&i: &usize| {
        let place = places[i];
        rank += usize::from(place.core != last);
        last = place.core;
        let kib = capacity(place.llc);
        [
            rank,
            place.core_type,
            kinds[i],
            place.node,
            place.package,
            kib,
        ]
    };
    members.iter().map(member).collect()
}
