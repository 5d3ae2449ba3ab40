//! `l1-bandwidth`: the cores' requests to their L1 data caches as equal as possible.
//!
//! Source: Feliu, Sahuquillo, Petit, Duato, "L1-bandwidth aware thread allocation in multicore SMT
//! processors" (PACT 2013), as Feliu et al. (HPCA 2016), section 6, use it as a baseline.
//!
//! Observes accesses to the L1D per second, by default every 100 ms. Threads are assigned from the
//! one with most accesses to the one with least, each to the core with the fewest so far among
//! those with the fewest threads: heavy ones meet light ones.
//!
//! Promises: no core has two threads more than another, and of two threads per core the heaviest
//! is next to the lightest.

use super::grouping::{GroupedThreads, leave_to_os, place_groups};
use crate::plan::{Decision, Fact, Reason};
use crate::policy::{ALL_USUAL, OptionInfo, Policy, PolicyInfo, PolicyRng, View, Wishes};
use crate::signal::{Signal, Tier};

#[doc(alias = "L1-bandwidth aware")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "l1-bandwidth",
    family: "symbiosis",
    source: "Feliu et al., PACT 2013",
    needs: &[Signal::CpuTime, Signal::L1dAccesses],
    uses: ALL_USUAL,
    tier_min: Tier::Counters,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "balances the cores' requests to their L1 data caches",
    options: &[OptionInfo {
        name: "active",
        default: "0.1",
        meaning: "threads below this share of one PU are left to the OS (0 to 1)",
    }],
    open: |_, _, options| {
        let active = options.share("active")?;
        Ok(Box::new(L1Bandwidth { active }))
    },
};

struct L1Bandwidth {
    active: f64,
}

impl Policy for L1Bandwidth {
    fn wishes(&self) -> Wishes {
        Wishes {
            l1d_accesses: true,
            ..Wishes::default()
        }
    }

    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        let room = view.topology.pus().len();
        let crew = GroupedThreads::new(view, self.active, room, |_| false);
        for (thread, why) in &crew.left {
            leave_to_os(thread, why, &mut decision);
        }
        // Counts stand for rates, because the quantum is equally long for all threads.
        let members = crew.members.iter();
        let loads: Vec<f64> = members
            .map(|t| t.sample.get(Signal::L1dAccesses).unwrap_or(0.0))
            .collect();
        let groups = balance_groups(&loads, view.topology.cores().len());
        let fact = |name: &'static str, value| Fact {
            name: name.into(),
            value,
            unit: "accesses per quantum".into(),
        };
        place_groups(
            view.topology,
            &crew,
            &groups,
            |_, _| true,
            &mut decision,
            |group, member| Reason {
                considered: "all threads, from most to fewest L1D accesses".to_owned(),
                chosen: "on the core with the fewest L1D accesses so far".to_owned(),
                facts: vec![
                    fact("L1D accesses", loads[member]),
                    fact("of its core", group.iter().map(|&i| loads[i]).sum()),
                ],
            },
        );
        decision
    }
}

/// Groups of threads for so many cores: the heaviest first, each to the least loaded of the cores
/// with the fewest threads.
fn balance_groups(loads: &[f64], cores: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|&a, &b| loads[b].total_cmp(&loads[a]).then(a.cmp(&b)));
    let mut groups: Vec<(f64, Vec<usize>)> = vec![(0.0, Vec::new()); cores.min(loads.len())];
    for thread in order {
        let emptiest = groups
            .iter_mut()
            .min_by(|a, b| a.1.len().cmp(&b.1.len()).then(a.0.total_cmp(&b.0)));
        if let Some((sum, members)) = emptiest {
            *sum += loads[thread];
            members.push(thread);
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_heaviest_is_beside_the_lightest() {
        let groups = balance_groups(&[1.0, 8.0, 3.0, 6.0], 2);
        assert_eq!(groups, [vec![1, 0], vec![3, 2]]);
    }

    #[test]
    fn an_under_full_machine_has_cores_with_one() {
        assert_eq!(
            balance_groups(&[5.0, 1.0, 2.0], 4),
            [vec![0], vec![2], vec![1]]
        );
        assert_eq!(balance_groups(&[5.0, 1.0, 2.0], 2), [vec![0], vec![2, 1]]);
        assert!(balance_groups(&[], 2).is_empty());
    }

    proptest! {
        #[test]
        fn every_thread_has_one_core_evenly(
            loads in prop::collection::vec(0.0f64..1e9, 1..40),
            cores in 1usize..12,
        ) {
            let groups = balance_groups(&loads, cores);
            let mut all: Vec<usize> = groups.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..loads.len()).collect::<Vec<_>>());
            let most = groups.iter().map(Vec::len).max().unwrap_or(0);
            let least = groups.iter().map(Vec::len).min().unwrap_or(0);
            prop_assert!(most - least <= 1 && groups.len() <= cores);
        }
    }
}
