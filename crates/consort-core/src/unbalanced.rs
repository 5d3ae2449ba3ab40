//! Correction of every policy's plan for CPUs among which the operating system moves no threads.
//!
//! A place is usually a core or more, and the operating system spreads the threads of a place over
//! its CPUs. On CPUs that it does not balance ([`Topology::unbalanced_pus`]), threads stay where
//! they were put, so that two can share one CPU while another is idle. A place there is therefore
//! one CPU. A thread that could run there as well as elsewhere, for example because a tool set its
//! mask to all CPUs, has not chosen such CPUs and is kept off them.

use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement};
use crate::pu_set::PuSet;
use crate::sample::Observation;
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Removes unbalanced CPUs from the masks of threads that may also run elsewhere.
pub(crate) fn hide_unbalanced(topology: &Topology, seen: &mut Observation) {
    let unbalanced = topology.unbalanced_pus();
    if unbalanced.is_empty() {
        return;
    }
    for thread in &mut seen.threads {
        let elsewhere = thread.original.difference(unbalanced);
        if !elsewhere.is_empty() && elsewhere != *thread.original {
            thread.original = Arc::new(elsewhere);
        }
    }
}

/// Replaces places on unbalanced CPUs by single CPUs, as evenly as possible. A thread keeps its
/// earlier CPU, else the one that it is on, if no other thread needs it more.
pub(crate) fn split_places(
    topology: &Topology,
    seen: &Observation,
    current: &BTreeMap<ThreadId, Placement>,
    decision: &mut Decision,
) {
    let unbalanced = topology.unbalanced_pus();
    if unbalanced.is_empty() {
        return;
    }
    let mut load: BTreeMap<PuId, usize> = BTreeMap::new();
    let mut waiting: Vec<(ThreadId, PuSet)> = Vec::new();
    for thread in seen.managed_threads() {
        match decision.placements.get(&thread.id) {
            Some(Placement::Restricted(pus)) => {
                let there = pus.intersection(unbalanced);
                let elsewhere = pus.difference(unbalanced);
                if there.is_empty() {
                    continue;
                }
                if !elsewhere.is_empty() {
                    (decision.placements).insert(thread.id, Placement::Restricted(elsewhere));
                } else if let (1, Some(pu)) = (pus.len(), pus.first()) {
                    *load.entry(pu).or_default() += 1;
                } else {
                    waiting.push((thread.id, there));
                }
            }
            // The operating system does not move these threads, so their CPUs are taken.
            _ if thread.sample.cpu_time_ns() > 0.0 => {
                let pu = thread.last_pu.filter(|pu| unbalanced.contains(*pu));
                pu.into_iter()
                    .for_each(|pu| *load.entry(pu).or_default() += 1);
            }
            _ => {}
        }
    }
    // Threads that keep their CPU come first, because a newcomer could take it, and then two
    // threads would move.
    let mut homeless = Vec::new();
    for (id, pus) in waiting {
        let before = match current.get(&id) {
            Some(Placement::Restricted(one)) if one.len() == 1 => one.first(),
            _ => None,
        };
        let last = seen.thread(id).and_then(|thread| thread.last_pu);
        let kept = [before, last].into_iter().flatten();
        let free = |pu: &PuId| pus.contains(*pu) && !load.contains_key(pu);
        match kept.into_iter().find(free) {
            Some(pu) => place_on_pu(decision, &mut load, id, pu),
            None => homeless.push((id, pus)),
        }
    }
    for (id, pus) in homeless {
        let loaded = |pu: &PuId| load.get(pu).copied().unwrap_or(0);
        if let Some(pu) = pus.iter().min_by_key(|pu| (loaded(pu), *pu)) {
            place_on_pu(decision, &mut load, id, pu);
        }
    }
}

fn place_on_pu(decision: &mut Decision, load: &mut BTreeMap<PuId, usize>, id: ThreadId, pu: PuId) {
    *load.entry(pu).or_default() += 1;
    decision
        .placements
        .insert(id, Placement::Restricted(pu.into()));
    let reason = decision.report.threads.entry(id).or_default();
    let why = format!("CPU {pu} alone, because the OS moves no thread between isolated CPUs");
    reason.chosen = match reason.chosen.is_empty() {
        true => why,
        false => format!("{}; {why}", reason.chosen),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observation, thread_id};
    use proptest::prelude::*;

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    /// Two cores of two CPUs, with these unbalanced; CPUs 0 and 2 are a core.
    fn machine(unbalanced: &str) -> Topology {
        Topology::uniform(2, 2)
            .unwrap()
            .with_unbalanced(&set(unbalanced))
    }

    /// Places of threads 1, 2, ... that a policy put on these CPUs, after the earlier places.
    fn places(unbalanced: &str, wanted: &[&str], before: &[&str]) -> Vec<String> {
        let topology = machine(unbalanced);
        let threads: Vec<(u32, f64)> = (1..).zip(wanted).map(|(tid, _)| (tid, 0.5)).collect();
        let seen = observation(&topology, &threads);
        let place = |(tid, pus): (u32, &&str)| (thread_id(tid), Placement::Restricted(set(pus)));
        let mut decision = Decision {
            placements: (1..).zip(wanted).map(place).collect(),
            ..Decision::default()
        };
        let current = (1..).zip(before).map(place).collect();
        split_places(&topology, &seen, &current, &mut decision);
        let text = |placement: &Placement| match placement {
            Placement::Restricted(pus) => pus.to_string(),
            Placement::Unrestricted => "anywhere".to_owned(),
        };
        decision.placements.values().map(text).collect()
    }

    #[test]
    fn threads_of_an_unbalanced_core_get_a_pu_each() {
        let mut two = places("0,2", &["0,2", "0,2"], &[]);
        two.sort_unstable();
        assert_eq!(two, ["0", "2"]);
        let three = places("0,2", &["0,2", "0,2", "0,2"], &[]);
        let on = |pu: &str| three.iter().filter(|place| *place == pu).count();
        assert_eq!(on("0").abs_diff(on("2")), 1, "{three:?}");
    }

    #[test]
    fn places_that_were_given_stay() {
        assert_eq!(places("0,2", &["0,2", "0,2"], &["2", "0"]), ["2", "0"]);
        assert_eq!(
            places("0-3", &["0-3", "0-3", "0"], &["3", "1"]),
            ["3", "1", "0"]
        );
    }

    #[test]
    fn balanced_places_stay_whole() {
        assert_eq!(places("", &["0,2", "0,2"], &[]), ["0,2", "0,2"]);
        assert_eq!(places("0,2", &["1,3", "1,3"], &[]), ["1,3", "1,3"]);
        assert_eq!(places("2", &["0,2"], &[]), ["0"], "half of a core");
    }

    #[test]
    fn threads_avoid_unchosen_unbalanced_pus() {
        let topology = machine("2-3");
        let mut seen = observation(&topology, &[(1, 0.5), (2, 0.5)]);
        seen.threads[1].original = Arc::new(set("2-3"));
        hide_unbalanced(&topology, &mut seen);
        let masks: Vec<String> = seen
            .threads
            .iter()
            .map(|t| t.original.to_string())
            .collect();
        assert_eq!(masks, ["0-1", "2-3"]);
    }

    proptest! {
        #[test]
        fn places_stay_inside_and_are_even(wanted in prop::collection::vec(1u32..16, 1..7)) {
            let wanted: Vec<String> = { wanted.iter() }
                .map(|bits| (0..4).filter(|i| bits >> i & 1 == 1).map(PuId).collect::<PuSet>().to_string())
                .collect();
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            for (place, wanted) in places("0-3", &wanted, &[]).iter().zip(&wanted) {
                prop_assert_eq!(set(place).len(), 1);
                prop_assert!(set(place).is_subset(&set(wanted)));
            }
            if wanted.iter().all(|pus| *pus == "0-3") {
                let places = places("0-3", &wanted, &[]);
                for pu in ["0", "1", "2", "3"] {
                    let on = places.iter().filter(|place| *place == pu).count();
                    prop_assert!(on <= wanted.len().div_ceil(4));
                }
            }
        }
    }
}
