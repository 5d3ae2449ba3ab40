//! `fair-time`: every thread gets the same share of its time on large cores.
//!
//! Source: Van Craeynest, Akram, Heirman, Jaleel and Eeckhout, "Fairness-Aware Scheduling on
//! Single-ISA Heterogeneous Multi-Cores" (PACT 2013), equal-time scheduling.
//!
//! Tracks the time that each thread has had on large and on small cores. At the end of each
//! quantum, the thread with the smallest share of its time on large cores takes one from the
//! thread with the largest; of equals the one whose turn it is, or one by lot. Threads do not move
//! between cores of one kind.
//!
//! Observes CPU time. Promises that threads that always run come to have equal shares. Equal time
//! is not equal progress: who gains little from a large core is held up less by the wait.

use super::asymmetric::{
    ActiveThread, BestScoreRule, CoreKindTimes, SOFTWARE_FORM, Score, Swapper, Ties, form,
};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

#[doc(alias = "equal-time scheduling")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "fair-time",
    family: "asymmetry",
    source: "Van Craeynest et al., PACT 2013",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "evens out the time that threads have on large cores",
    options: &[
        SOFTWARE_FORM,
        OptionInfo {
            name: "order",
            default: "round-robin",
            meaning: "of equals: round-robin or random",
        },
    ],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let words = [("round-robin", Ties::RoundRobin), ("random", Ties::Random)];
    let order = options.one_of("order", &words, "round-robin or random")?;
    let rule = BestScoreRule::new(FairTime::default(), 0.0, order);
    Swapper::new(rule, form(options)?).open(topology, INFO.name)
}

#[derive(Debug, Default)]
struct FairTime(BTreeMap<ThreadId, CoreKindTimes>);

impl Score for FairTime {
    const WHY: &'static str = "it has had the smallest share of its time on large cores";

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        self.0.entry(ran.thread).or_default().add(ran, on_large);
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.0.retain(|&id, _| !is_gone(id));
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        let share = self.0.get(&thread)?.large_share()?;
        Some(-share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, chip};
    use super::*;
    use proptest::prelude::*;

    fn bench(large: u32, small: u32, order: Ties) -> Bench<BestScoreRule<FairTime>> {
        let rule = BestScoreRule::new(FairTime::default(), 0.0, order);
        Bench::new(chip(large, small, 1), rule)
    }

    /// Number of quanta that each of some threads that always run has the large core in.
    fn turns(
        bench: &mut Bench<BestScoreRule<FairTime>>,
        threads: usize,
        quanta: usize,
    ) -> Vec<usize> {
        let did: Vec<Did> = vec![BUSY; threads];
        let mut turns = vec![0; threads];
        for _ in 0..quanta {
            let pus = bench.quantum(&did);
            turns[pus.iter().position(|&pu| pu == 0).unwrap()] += 1;
        }
        turns
    }

    #[test]
    fn threads_are_mapped_so_as_to_even_out_the_quanta_that_each_has_had_per_kind_of_core() {
        let mut bench = bench(1, 3, Ties::RoundRobin);
        let did = [BUSY; 4];
        // What a thread does counts from the end of its first quantum.
        assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
        // Shares 1, 0, 0, 0: the first of those without takes the large core.
        assert_eq!(bench.quantum(&did), [1, 0, 2, 3]);
        // 1/2, 1/2, 0, 0: the next.
        assert_eq!(bench.quantum(&did), [1, 2, 0, 3]);
        // 1/3, 1/3, 1/3, 0: the last.
        assert_eq!(bench.quantum(&did), [1, 2, 3, 0]);
        // All 1/4: nobody moves.
        assert_eq!(bench.quantum(&did), [1, 2, 3, 0]);
        // 1/5, 1/5, 1/5, 2/5: the first in the queue again.
        assert_eq!(bench.quantum(&did), [0, 2, 3, 1]);
    }

    #[test]
    fn there_is_no_migration_among_cores_of_one_kind() {
        let mut bench = bench(1, 3, Ties::Random);
        let mut before = vec![0, 1, 2, 3];
        for _ in 0..50 {
            let after = bench.quantum(&[BUSY; 4]);
            for (b, a) in before.iter().zip(&after) {
                assert!(a == b || *a == 0 || *b == 0, "{before:?} {after:?}");
            }
            before = after;
        }
    }

    #[test]
    fn the_order_of_equals_is_round_robin_or_random() {
        let sequence = |order| -> Vec<Vec<u32>> {
            let mut bench = bench(1, 7, order);
            (0..20).map(|_| bench.quantum(&[BUSY; 8])).collect()
        };
        assert_ne!(sequence(Ties::RoundRobin), sequence(Ties::Random));
    }

    proptest! {
        #[test]
        fn threads_that_always_run_have_equal_turns(small in 1u32..12, random: bool) {
            let order = if random { Ties::Random } else { Ties::RoundRobin };
            let threads = small as usize + 1;
            let turns = turns(&mut bench(1, small, order), threads, 10 * threads);
            prop_assert!(turns.iter().all(|&t| (9..=11).contains(&t)), "{:?}", turns);
        }
    }
}
