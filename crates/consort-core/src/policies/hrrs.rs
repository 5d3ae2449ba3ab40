//! `hrrs`: hardware round-robin; all logical cores get the large core in turn.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), HRRS.
//!
//! A queue of the logical cores on small cores. At the end of each quantum, or at once when the
//! large core goes idle, the head is exchanged with the logical core on the large core, which is
//! appended. Idle logical cores and those in kernel mode are passed over; a large core in kernel
//! mode is waited for.
//!
//! The algorithm's text has a queue, the unit that the source draws a counter: the option `turns`,
//! and docs/decisions/0014-hardware-units.md.
//!
//! Observes which logical cores run something and which are in kernel mode; 1 ms in hardware,
//! 4 ms in software. Promises that nobody keeps the large core for more than one quantum unless
//! nobody else can run.

use super::asymmetric::{
    FORM, LATENCY, LogicalCore, LogicalCoreGroup, RoundRobin, Swap, SwapRule, Swapper, TURNS, Tick,
    TurnOrder, form, latency, turn_order,
};
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

#[doc(alias = "hardware round-robin")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "hrrs",
    family: "asymmetry",
    source: "Markovic, PhD thesis, UPC 2015",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "gives the large core to every thread in turn",
    options: &[FORM, TURNS, LATENCY],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let form = form(options)?;
    let rule = Hrrs {
        order: turn_order(options)?,
        ..Hrrs::default()
    };
    let policy = Swapper::new(rule, form).with_latency(latency(options)?);
    policy.open(topology, INFO.name)
}

/// Turns, by group.
#[derive(Debug, Default)]
pub(super) struct Hrrs {
    order: TurnOrder,
    groups: BTreeMap<usize, GroupTurns>,
}

/// The turns in one group.
#[derive(Debug, Default)]
pub(super) struct GroupTurns {
    queue: RoundRobin,
    /// True where a quantum's exchange still waits for the large core to leave the kernel.
    due: bool,
}

impl GroupTurns {
    pub(super) fn new(order: TurnOrder) -> Self {
        Self {
            queue: RoundRobin::new(order),
            due: false,
        }
    }

    /// Returns the logical core that has to give way now, if any: at the end of a quantum, when the
    /// large core is idle, or when it has left the kernel that held an exchange up.
    pub(super) fn demotion_candidate(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
    ) -> Option<usize> {
        self.queue.update_queues(group);
        let large = self.queue.demotion_candidate(group)?;
        self.due |= tick.is_quantum || large.is_idle();
        let now = self.due && !large.is_in_kernel();
        now.then_some(large.logical)
    }

    /// Leaves the large core to the logical core that has it, until the end of the next quantum.
    pub(super) fn keep_large_core(&mut self) {
        self.due = false;
    }

    /// Exchanges the first in the queue that is ready and that `may` have the large core.
    pub(super) fn swap_next(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        large: usize,
        may: impl Fn(usize) -> bool,
        why: &'static str,
    ) -> Option<Swap> {
        self.due = false;
        let ready = |seat: &LogicalCore<'_>| seat.is_ready() && may(seat.logical);
        let small = self.queue.next_candidate(group, ready)?;
        self.queue.record_swap(small, large);
        Some(Swap {
            small,
            large,
            why: why.into(),
        })
    }
}

impl SwapRule for Hrrs {
    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let order = self.order;
        let turns = self.groups.entry(group.index);
        let turns = turns.or_insert_with(|| GroupTurns::new(order));
        let Some(large) = turns.demotion_candidate(group, tick) else {
            return Vec::new();
        };
        let swap = turns.swap_next(group, large, |_| true, "round robin");
        swap.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, IDLE, chip};
    use super::*;
    use proptest::prelude::*;

    const KERNEL: Did = Did {
        kernel: true,
        ..BUSY
    };

    fn bench() -> Bench<Hrrs> {
        Bench::new(chip(1, 3, 1), Hrrs::default())
    }

    #[test]
    fn each_quantum_the_head_of_the_queue_takes_the_large_core_and_the_leaver_is_appended() {
        let mut bench = bench();
        // Logical cores 0 to 3; who is on PU 0 after each quantum.
        let turns: Vec<Vec<u32>> = (0..5).map(|_| bench.quantum(&[BUSY; 4])).collect();
        assert_eq!(turns[0], [1, 0, 2, 3]);
        assert_eq!(turns[1], [1, 2, 0, 3]);
        assert_eq!(turns[2], [1, 2, 3, 0]);
        assert_eq!(turns[3], [0, 2, 3, 1]);
        assert_eq!(turns[4], [2, 0, 3, 1]);
    }

    #[test]
    fn the_exchange_is_at_once_when_the_large_core_goes_idle() {
        let mut bench = bench();
        assert_eq!(bench.activity(&[BUSY; 4]), [0, 1, 2, 3]);
        assert_eq!(bench.activity(&[IDLE, BUSY, BUSY, BUSY]), [1, 0, 2, 3]);
    }

    #[test]
    fn an_idle_or_kernel_mode_small_core_is_passed_over() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BUSY, IDLE, KERNEL, BUSY]), [3, 1, 2, 0]);
        // Those passed over keep their place at the head.
        assert_eq!(bench.quantum(&[BUSY; 4]), [3, 0, 2, 1]);
    }

    #[test]
    fn those_whom_a_counter_passes_over_wait_for_the_next_round() {
        let rule = Hrrs {
            order: TurnOrder::Counter,
            ..Hrrs::default()
        };
        let mut bench = Bench::new(chip(1, 3, 1), rule);
        assert_eq!(bench.quantum(&[BUSY, IDLE, BUSY, BUSY]), [2, 1, 0, 3]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [2, 1, 3, 0]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [0, 1, 3, 2]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [1, 0, 3, 2]);
    }

    #[test]
    fn a_large_core_in_kernel_mode_is_waited_for() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[KERNEL, BUSY, BUSY, BUSY]), [0, 1, 2, 3]);
        assert_eq!(bench.activity(&[BUSY; 4]), [1, 0, 2, 3]);
        // Only the exchange that was due.
        assert_eq!(bench.activity(&[BUSY; 4]), [1, 0, 2, 3]);
    }

    #[test]
    fn each_large_core_has_turns_of_its_own() {
        let mut bench = Bench::new(chip(2, 6, 1), Hrrs::default());
        let after = bench.quantum(&[BUSY; 8]);
        assert_eq!(after, [2, 5, 0, 3, 4, 1, 6, 7]);
    }

    proptest! {
        #[test]
        fn nobody_keeps_the_large_core_for_more_than_one_quantum_unless_nobody_else_can_run(
            quanta in prop::collection::vec(prop::array::uniform4(any::<bool>()), 1..60),
        ) {
            let mut bench = bench();
            let mut held = None;
            for busy in quanta {
                let did = busy.map(|b| if b { BUSY } else { IDLE });
                let pus = bench.quantum(&did);
                let on_large = pus.iter().position(|&pu| pu == 0);
                let others = |l: usize| (0..4).any(|other| other != l && busy[other]);
                if let Some(l) = held.filter(|&l| others(l)) {
                    prop_assert_ne!(Some(l), on_large);
                }
                held = on_large;
            }
        }

        #[test]
        fn a_counter_and_a_queue_are_the_same_where_nobody_is_passed_over(n in 1u32..16) {
            let mut queue = Bench::new(chip(1, n, 1), Hrrs::default());
            let rule = Hrrs { order: TurnOrder::Counter, ..Hrrs::default() };
            let mut counter = Bench::new(chip(1, n, 1), rule);
            let all = vec![BUSY; n as usize + 1];
            for _ in 0..3 * all.len() {
                prop_assert_eq!(queue.quantum(&all), counter.quantum(&all));
            }
        }

        #[test]
        fn everybody_that_always_runs_has_the_large_core_equally_often(n in 1u32..16) {
            let mut bench = Bench::new(chip(1, n, 1), Hrrs::default());
            let all = vec![BUSY; n as usize + 1];
            let mut turns = vec![0; all.len()];
            for _ in 0..3 * all.len() {
                let pus = bench.quantum(&all);
                turns[pus.iter().position(|&pu| pu == 0).unwrap()] += 1;
            }
            prop_assert!(turns.iter().all(|&t| t == 3), "{:?}", turns);
        }
    }
}
