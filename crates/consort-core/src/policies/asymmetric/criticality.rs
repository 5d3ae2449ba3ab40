//! `criticality`: the thread that has run most while others waited gets the large core.
//!
//! Source: Du Bois, Eyerman, Sartor, Eeckhout, "Criticality stacks: identifying critical threads
//! in parallel programs using synchronization behavior" (ISCA 2013); as a scheduler for large and
//! small cores after Markovic (PhD thesis, UPC 2015).
//!
//! - When the active state of any thread changes, each thread that was active until then adds the
//!   time since the last change, divided by the number of active threads, to its criticality.
//!   Threads of all programs and groups count.
//! - The most critical active thread of a group runs on its large core.
//! - It is rescheduled only after such a change, and at most once per quantum. A change after the
//!   quantum's exchange takes effect when the quantum ends.
//!
//! Observes which threads are active: runnable and not waiting for siblings, spinning or asleep. In
//! software form a thread that is queued behind others counts as active, because it waits for a CPU
//! and not for a sibling. If intervals do not end with activity, as on live machines, changes are
//! noticed at the end of the quantum.
//!
//! Pitfall: sums are never forgotten, so after a long life a thread's past outweighs what it does
//! now; that is the published metric.

use super::logical_core_map::{LogicalCore, LogicalCoreGroup};
use super::swapper::{FORM, Swap, SwapRule, Swapper, Tick, form, promote};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

#[doc(alias = "criticality stacks")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "criticality",
    family: "asymmetry",
    source: "Du Bois et al., ISCA 2013",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "gives the large core to the thread that has run most while others waited",
    options: &[OptionInfo {
        default: "software",
        ..FORM
    }],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Swapper::new(CriticalityRule::default(), form(options)?).open(topology, INFO.name)
}

#[derive(Debug, Default)]
struct CriticalityRule {
    /// Criticality by thread, ns.
    sums: BTreeMap<ThreadId, f64>,
    /// Threads that have been active since the last interval ended.
    active: BTreeSet<ThreadId>,
    /// True if that set has changed with the interval that has just ended.
    changed: bool,
    groups: BTreeMap<usize, RescheduleState>,
}

#[derive(Debug, Default)]
struct RescheduleState {
    /// True if some thread's state has changed since the group's last decision.
    due: bool,
    /// True if the group has been rescheduled in this quantum.
    spent: bool,
}

impl CriticalityRule {
    /// Adds the interval to the sums of the threads that were active in it.
    fn add_interval(&mut self, interval_ns: u64) {
        let share_ns = interval_ns as f64 / self.active.len() as f64;
        for thread in &self.active {
            *self.sums.entry(*thread).or_default() += share_ns;
        }
    }

    /// The criticality of the most critical active thread; `None` if no thread is active.
    fn highest_criticality(&self, core: &LogicalCore<'_>) -> Option<f64> {
        let sum = |t: &ThreadId| self.sums.get(t).copied().unwrap_or(0.0);
        core.active.iter().map(sum).max_by(f64::total_cmp)
    }
}

impl SwapRule for CriticalityRule {
    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.sums.retain(|&id, _| !is_gone(id));
    }

    fn record_interval(&mut self, groups: &[LogicalCoreGroup<'_>], tick: Tick) {
        // Before the set changes: the interval belongs to the threads that were active in it.
        self.add_interval(tick.interval_ns);
        let cores = groups.iter().flat_map(LogicalCoreGroup::logical_cores);
        let active = cores.flat_map(|core| core.active.iter().copied()).collect();
        self.changed = active != self.active;
        self.active = active;
    }

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let state = self.groups.entry(group.index).or_default();
        state.due |= self.changed;
        state.spent &= !tick.is_quantum;
        let waits = group.large.iter().any(LogicalCore::is_in_kernel);
        if !state.due || state.spent || waits {
            return Vec::new();
        }
        let why = "it has run most while others waited";
        let swap = promote(group, |core| self.highest_criticality(core), why);
        let spent = swap.is_some();
        let state = RescheduleState { due: false, spent };
        self.groups.insert(group.index, state);
        swap.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUSY, Bench, Did, IDLE, QUANTUM_NS, chip};
    use super::*;
    use crate::sample::IntervalEnd;
    use crate::testing::thread_id;
    use proptest::prelude::*;

    const WAITS: Did = Did {
        waits: true,
        ..BUSY
    };

    /// A bench with four threads that have just come, which the rule has seen once.
    fn bench() -> Bench<CriticalityRule> {
        let mut bench = Bench::new(chip(1, 3, 1), CriticalityRule::default());
        assert_eq!(
            bench.turn(&ran([BUSY; 4]), 0, IntervalEnd::Quantum),
            [0, 1, 2, 3]
        );
        bench
    }

    /// Threads 0 to 3 on logical cores of the same numbers.
    fn ran(did: [Did; 4]) -> [Did; 4] {
        let mut number = 0..4;
        did.map(|did| Did {
            occupant: number.next(),
            ..did
        })
    }

    #[test]
    fn active_threads_share_the_interval() {
        let mut rule = CriticalityRule {
            active: [1, 2, 3, 4].map(thread_id).into(),
            ..CriticalityRule::default()
        };
        rule.add_interval(100);
        rule.active = [1, 2].map(thread_id).into();
        rule.add_interval(30);
        // 100/4 each; then 30/2 for two of them.
        let sums: Vec<f64> = rule.sums.values().copied().collect();
        assert_eq!(sums, [40.0, 40.0, 25.0, 25.0]);
    }

    #[test]
    fn the_most_critical_runs_on_the_large_core() {
        let mut bench = bench();
        // 400/4 each, then 0 and 1 stall, and 2 and 3 run for 100/2 each, then 2 stalls and 3 has
        // 100 for itself: 100, 100, 150, 250.
        bench.turn(&ran([WAITS, WAITS, BUSY, BUSY]), 400, IntervalEnd::Activity);
        bench.turn(
            &ran([WAITS, WAITS, WAITS, BUSY]),
            100,
            IntervalEnd::Activity,
        );
        let all = ran([BUSY; 4]);
        assert_eq!(bench.turn(&all, 100, IntervalEnd::Quantum), [2, 1, 3, 0]);
    }

    #[test]
    fn waiting_threads_give_way() {
        let mut bench = bench();
        let pus = bench.activity(&ran([WAITS, IDLE, BUSY, BUSY]));
        assert_eq!(pus, [2, 1, 0, 3]);
    }

    #[test]
    fn it_is_rescheduled_only_at_such_changes() {
        let mut bench = bench();
        // Thread 3 runs alone and becomes the most critical, but is not ready for an exchange.
        let kernel = Did {
            kernel: true,
            ..BUSY
        };
        bench.turn(
            &ran([WAITS, WAITS, WAITS, kernel]),
            1,
            IntervalEnd::Activity,
        );
        // No state changes.
        let same = ran([WAITS, WAITS, WAITS, BUSY]);
        assert_eq!(bench.quantum(&same), [0, 1, 2, 3]);
        // A state changes.
        let other = ran([BUSY, WAITS, WAITS, BUSY]);
        assert_eq!(bench.quantum(&other), [3, 1, 2, 0]);
    }

    #[test]
    fn it_is_rescheduled_at_most_once_per_quantum() {
        let mut bench = bench();
        assert_eq!(
            bench.activity(&ran([WAITS, BUSY, BUSY, BUSY])),
            [1, 0, 2, 3]
        );
        // Another change, which has to wait for the end of the quantum.
        let others = ran([BUSY, WAITS, BUSY, BUSY]);
        assert_eq!(bench.activity(&others), [1, 0, 2, 3]);
        assert_eq!(bench.turn(&others, 0, IntervalEnd::Quantum), [1, 2, 0, 3]);
    }

    #[test]
    fn large_core_in_kernel_is_waited_for() {
        let mut bench = bench();
        let kernel = Did {
            kernel: true,
            ..WAITS
        };
        assert_eq!(
            bench.activity(&ran([kernel, BUSY, BUSY, BUSY])),
            [0, 1, 2, 3]
        );
        assert_eq!(
            bench.activity(&ran([WAITS, BUSY, BUSY, BUSY])),
            [1, 0, 2, 3]
        );
    }

    #[test]
    fn the_active_threads_of_all_groups_are_counted() {
        let mut bench = Bench::new(chip(2, 2, 1), CriticalityRule::default());
        let did = |waits: [bool; 4]| {
            let mut number = 0..4;
            waits.map(|waits| Did {
                waits,
                occupant: number.next(),
                ..BUSY
            })
        };
        // Groups are CPUs 0 and 2, 1 and 3. Thread 0 waits while three run for 300, then thread 0
        // runs alone for 240: thread 2 has 100, by its group alone it would have 300.
        let pus = bench.turn(&did([true, false, false, false]), 0, IntervalEnd::Quantum);
        assert_eq!(pus, [2, 1, 0, 3]);
        let pus = bench.turn(&did([false, true, true, true]), 300, IntervalEnd::Quantum);
        assert_eq!(pus, [0, 1, 2, 3]);
        let pus = bench.turn(&did([false; 4]), 240, IntervalEnd::Quantum);
        assert_eq!(pus, [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn criticalities_sum_to_the_active_time(
            intervals in prop::collection::vec((prop::array::uniform4(any::<bool>()), 1u64..QUANTUM_NS), 1..40),
        ) {
            let mut rule = CriticalityRule::default();
            let mut busy_ns = 0;
            for (active, ns) in intervals {
                let on = (0..4).filter(|&t| active[t as usize]);
                rule.active = on.map(thread_id).collect();
                busy_ns += if rule.active.is_empty() { 0 } else { ns };
                rule.add_interval(ns);
            }
            let sum: f64 = rule.sums.values().sum();
            prop_assert!((sum - busy_ns as f64).abs() < 1e-6 * (1.0 + sum));
        }
    }
}
