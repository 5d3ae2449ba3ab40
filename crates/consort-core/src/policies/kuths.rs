//! `kuths`: the thread that has just come back from the kernel gets the large core.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), KUTHS: a thread that returns to user mode has often waited for others that
//! will soon wait for it.
//!
//! A transition bit per logical core, set at any transition from kernel to user code: from a futex
//! wait, from waking others, from input and output, after a time slice, a tick or another
//! interrupt. At the end of a quantum:
//! - no bit set: round robin, as `hrrs`;
//! - only the large core's set: no exchange;
//! - exactly one small core's set: that one gets the large core, even if the large core's is set;
//! - several small cores' set: they take turns.
//!
//! Bits are cleared each quantum. In software form, as on a live kernel, the bit is the count of
//! returns from futex calls and other blocking system calls: every PU has a tick in each of its
//! quanta, which would set all bits.
//!
//! Many cores: where groups of cores have private last-level regions, exchanges stay inside a
//! group ([`super::asymmetric::ExchangeGroups`]).

use super::asymmetric::{
    FORM, LATENCY, LogicalCoreGroup, Swap, SwapRule, Swapper, TURNS, Tick, TurnOrder, form,
    latency, turn_order,
};
use super::hrrs::GroupTurns;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

#[doc(alias = "kernel-to-user")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "kuths",
    family: "asymmetry",
    source: "Markovic, PhD thesis, UPC 2015",
    needs: &[Signal::CpuTime, Signal::FutexReturns],
    uses: ALL_USUAL,
    tier_min: Tier::Software,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "gives the large core to a thread that has just returned from the kernel",
    options: &[FORM, TURNS, LATENCY],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let form = form(options)?;
    let rule = Kuths {
        order: turn_order(options)?,
        ..Kuths::default()
    };
    let policy = Swapper::new(rule, form).with_latency(latency(options)?);
    policy.open(topology, INFO.name)
}

/// Bits and turns, by group.
#[derive(Debug, Default)]
struct Kuths {
    order: TurnOrder,
    groups: BTreeMap<usize, TransitionBits>,
}

#[derive(Debug)]
struct TransitionBits {
    turns: GroupTurns,
    /// Logical cores whose transition bit is set.
    set: BTreeSet<usize>,
    /// The bits of the last quantum, while its exchange waits for the large core to leave the
    /// kernel.
    due: Option<BTreeSet<usize>>,
}

impl SwapRule for Kuths {
    const CALLS: bool = true;

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let order = self.order;
        let bits = self.groups.entry(group.index);
        let bits = bits.or_insert_with(|| TransitionBits::new(order));
        bits.record_returns(group, tick);
        bits.choose_swap(group, tick).into_iter().collect()
    }
}

impl TransitionBits {
    fn new(order: TurnOrder) -> Self {
        Self {
            turns: GroupTurns::new(order),
            set: BTreeSet::new(),
            due: None,
        }
    }

    fn record_returns(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick) {
        let returned = group
            .logical_cores()
            .filter(|seat| seat.has_returned_to_user());
        self.set.extend(returned.map(|seat| seat.logical));
        if tick.is_quantum {
            self.due = Some(std::mem::take(&mut self.set));
        }
    }

    fn choose_swap(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick) -> Option<Swap> {
        let large = self.turns.demotion_candidate(group, tick)?;
        let bits = self.due.take().unwrap_or_default();
        let of_small = |l: &usize| group.small.iter().any(|seat| seat.logical == *l);
        if bits.iter().any(of_small) {
            let may = |l| bits.contains(&l);
            return self
                .turns
                .swap_next(group, large, may, "it has returned from the kernel");
        }
        let idle = group
            .large
            .iter()
            .any(|s| s.logical == large && s.is_idle());
        if bits.contains(&large) && !idle {
            self.turns.keep_large_core();
            return None;
        }
        let why = "round robin, since nobody has returned from the kernel";
        self.turns.swap_next(group, large, |_| true, why)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, IDLE, chip};
    use super::*;

    const BACK: Did = Did {
        returned: true,
        ..BUSY
    };

    fn bench() -> Bench<Kuths> {
        Bench::new(chip(1, 3, 1), Kuths::default())
    }

    #[test]
    fn no_bit_set_is_round_robin() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BUSY; 4]), [1, 0, 2, 3]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [1, 2, 0, 3]);
    }

    #[test]
    fn only_the_large_core_s_bit_set_is_no_exchange() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BACK, BUSY, BUSY, BUSY]), [0, 1, 2, 3]);
        // Not later in the next quantum either.
        assert_eq!(bench.activity(&[BUSY; 4]), [0, 1, 2, 3]);
    }

    #[test]
    fn exactly_one_small_core_s_bit_set_takes_the_large_core() {
        assert_eq!(bench().quantum(&[BUSY, BUSY, BUSY, BACK]), [3, 1, 2, 0]);
    }

    #[test]
    fn one_small_core_s_bit_counts_even_if_the_large_core_s_is_set_too() {
        assert_eq!(bench().quantum(&[BACK, BUSY, BACK, BUSY]), [2, 1, 0, 3]);
    }

    #[test]
    fn several_small_cores_with_bits_take_turns() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BUSY, BUSY, BACK, BACK]), [2, 1, 0, 3]);
        assert_eq!(bench.quantum(&[BACK, BUSY, BUSY, BACK]), [2, 1, 3, 0]);
        assert_eq!(bench.quantum(&[BACK, BUSY, BACK, BUSY]), [0, 1, 3, 2]);
    }

    #[test]
    fn where_the_privilege_level_is_told_it_is_the_bit() {
        let told = |calls: bool, returns: &'static [(Signal, f64)]| Did {
            returned: calls,
            counts: returns,
            ..BUSY
        };
        // The call of core 1 has not come back yet; core 3 comes from a tick.
        let called = told(true, &[(Signal::UserReturns, 0.0)]);
        let ticked = told(false, &[(Signal::UserReturns, 1.0)]);
        assert_eq!(bench().quantum(&[BUSY, called, BUSY, ticked]), [3, 1, 2, 0]);
    }

    #[test]
    fn bits_are_cleared_each_quantum() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BUSY, BUSY, BUSY, BACK]), [3, 1, 2, 0]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [3, 0, 2, 1]);
    }

    #[test]
    fn a_return_within_the_quantum_counts_at_its_end() {
        let mut bench = bench();
        assert_eq!(bench.activity(&[BUSY, BUSY, BUSY, BACK]), [0, 1, 2, 3]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [3, 1, 2, 0]);
    }

    #[test]
    fn a_chosen_small_core_in_kernel_mode_gives_way_to_the_next() {
        let kernel = Did {
            kernel: true,
            ..BACK
        };
        assert_eq!(bench().quantum(&[BUSY, BUSY, kernel, BACK]), [3, 1, 2, 0]);
    }

    #[test]
    fn an_idle_large_core_is_filled_at_once() {
        let mut bench = bench();
        assert_eq!(bench.activity(&[IDLE, BUSY, BUSY, BUSY]), [1, 0, 2, 3]);
    }

    #[test]
    fn many_cores_exchange_inside_their_group_only() {
        let mut bench = Bench::new(chip(2, 6, 2), Kuths::default());
        let mut did = [BUSY; 8];
        did[3] = BACK;
        // The other group, whose bits are all clear, takes turns.
        assert_eq!(bench.quantum(&did), [3, 1, 2, 0, 5, 4, 6, 7]);
    }
}
