//! Policies in which logical cores take turns on the large core: `hrrs` and `kuths`.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), HRRS and KUTHS.
//!
//! `hrrs` (hardware round-robin) keeps a queue of the logical cores on small cores. At the end of
//! each quantum, or at once when the large core goes idle, the head is exchanged with the logical
//! core on the large core, which is appended. Idle logical cores and those in kernel mode are
//! passed over, and a large core in kernel mode is waited for. The algorithm's text has a queue,
//! but the unit that the source draws has a counter: see the option `turns` and
//! docs/contributing/decisions/0014-hardware-units.md. `hrrs` observes which logical cores run
//! something and which are in kernel mode; 1 ms in hardware, 4 ms in software. It promises that no
//! logical core keeps the large core for more than one quantum unless no other can run.
//!
//! `kuths` gives the large core to the thread that has just come back from the kernel, because such
//! a thread has often waited for others that will soon wait for it. A transition bit per logical
//! core is set at any transition from kernel to user code: from a futex wait, from waking others,
//! from input and output, after a time slice, a tick or another interrupt. At the end of a quantum:
//! - if no bit is set: round robin, as `hrrs`;
//! - if only the large core's is set: no exchange;
//! - if exactly one small core's is set: that one gets the large core, even if the large core's is
//!   set;
//! - if several small cores' are set: they take turns.
//!
//! Bits are cleared each quantum. In software form, as on a live kernel, the bit counts returns
//! from futex calls and other blocking system calls, because every CPU has a tick in each quantum,
//! which would set all bits. If groups of cores have private last-level regions, exchanges stay
//! inside a group ([`ExchangeGroups`](super::ExchangeGroups)).

use super::logical_core_map::{LogicalCore, LogicalCoreGroup};
use super::swapper::{FORM, LATENCY, Swap, SwapRule, Swapper, Tick, form, latency};
use crate::policy::{
    ALL_USUAL, OptionInfo, PolicyError, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng,
};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[doc(alias = "hardware round-robin")]
pub(crate) const HRRS: PolicyInfo = PolicyInfo {
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
    open: open::<Hrrs>,
};

#[doc(alias = "kernel-to-user")]
pub(crate) const KUTHS: PolicyInfo = PolicyInfo {
    name: "kuths",
    needs: &[Signal::CpuTime, Signal::FutexReturns],
    tier_min: Tier::Software,
    summary: "gives the large core to a thread that has just returned from the kernel",
    open: open::<Kuths>,
    ..HRRS
};

/// Rule that is made of an order of turns, and the policy's name.
trait TurnRule: SwapRule {
    const NAME: &'static str;

    fn new(order: TurnOrder) -> Self;
}

fn open<R: TurnRule + 'static>(
    topology: &Topology,
    _: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let form = form(options)?;
    let rule = R::new(turn_order(options)?);
    let policy = Swapper::new(rule, form).with_latency(latency(options)?);
    policy.open(topology, R::NAME)
}

pub(super) const TURNS: OptionInfo = OptionInfo {
    name: "turns",
    default: "queue",
    meaning: "queue (who is passed over is first next time) or counter (waits for the next round)",
};

pub(super) fn turn_order(options: &PolicyOptions<'_>) -> Result<TurnOrder, PolicyError> {
    let words = [("queue", TurnOrder::Queue), ("counter", TurnOrder::Counter)];
    options.one_of(TURNS.name, &words, "queue or counter")
}

/// Data that keeps the order of turns. The two differ once a logical core is passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TurnOrder {
    /// A queue, to which a logical core that leaves the large core is appended, as in the
    /// algorithm's text (Markovic, HRRS).
    #[default]
    Queue,
    /// A counter that goes round the logical cores, as in the source's drawing of the unit.
    Counter,
}

/// The order of the logical cores on small cores, and that in which those on large cores came
/// there.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundRobin {
    order: TurnOrder,
    small: VecDeque<usize>,
    large: VecDeque<usize>,
    /// The counter: one more than the logical core that was chosen last.
    from: usize,
}

impl RoundRobin {
    pub(super) fn new(order: TurnOrder) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    /// Follows exchanges that others made; newcomers go to the end of a queue.
    pub(super) fn update_queues(&mut self, group: &LogicalCoreGroup<'_>) {
        align_queue(&mut self.small, &group.small);
        align_queue(&mut self.large, &group.large);
        self.sort_by_counter();
    }

    fn sort_by_counter(&mut self) {
        let from = self.from;
        if self.order == TurnOrder::Counter {
            let small = self.small.make_contiguous();
            small.sort_unstable_by_key(|&l| (l < from, l));
        }
    }

    /// Logical cores on small cores, the next turn first.
    pub(super) fn small_cores_by_turn<'g, 'a>(
        &'g self,
        group: &'g LogicalCoreGroup<'a>,
    ) -> impl DoubleEndedIterator<Item = &'g LogicalCore<'a>> {
        let find = |l: &usize| group.small.iter().find(|core| core.logical == *l);
        self.small.iter().filter_map(find)
    }

    /// The logical core that has to leave its large core: an idle one, else the one that has been
    /// there longest.
    fn demotion_candidate<'g, 'a>(
        &self,
        group: &'g LogicalCoreGroup<'a>,
    ) -> Option<&'g LogicalCore<'a>> {
        group.large.iter().min_by_key(|core| {
            let place = self.large.iter().position(|&l| l == core.logical);
            (!core.is_idle(), place)
        })
    }

    /// Appends the logical core that leaves the large core to the queue, and sets the counter to
    /// continue after the one that gets it.
    pub(super) fn record_swap(&mut self, small: usize, large: usize) {
        self.small.retain(|&l| l != small);
        self.small.push_back(large);
        self.large.retain(|&l| l != large);
        self.large.push_back(small);
        self.from = small + 1;
        self.sort_by_counter();
    }
}

fn align_queue(queue: &mut VecDeque<usize>, cores: &[LogicalCore<'_>]) {
    queue.retain(|&l| cores.iter().any(|core| core.logical == l));
    for core in cores {
        if !queue.contains(&core.logical) {
            queue.push_back(core.logical);
        }
    }
}

/// The turns in one group.
#[derive(Debug, Default)]
struct GroupTurns {
    queue: RoundRobin,
    /// True if a quantum's exchange still waits for the large core to leave the kernel.
    due: bool,
}

impl GroupTurns {
    fn new(order: TurnOrder) -> Self {
        Self {
            queue: RoundRobin::new(order),
            due: false,
        }
    }

    /// Returns the logical core that has to leave the large core now, if any: at the end of a
    /// quantum, when it is idle, or when it has left the kernel that delayed an exchange.
    fn demotion_candidate(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick) -> Option<usize> {
        self.queue.update_queues(group);
        let large = self.queue.demotion_candidate(group)?;
        self.due |= tick.is_quantum || large.is_idle();
        let now = self.due && !large.is_in_kernel();
        now.then_some(large.logical)
    }

    /// Exchanges the first ready logical core in the queue that `may` have the large core.
    fn swap_next(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        large: usize,
        may: impl Fn(usize) -> bool,
        why: &'static str,
    ) -> Option<Swap> {
        self.due = false;
        let small = self
            .queue
            .small_cores_by_turn(group)
            .find(|core| core.is_ready() && may(core.logical))
            .map(|core| core.logical)?;
        self.queue.record_swap(small, large);
        Some(Swap { small, large, why })
    }
}

#[derive(Debug, Default)]
struct Hrrs {
    order: TurnOrder,
    groups: BTreeMap<usize, GroupTurns>,
}

impl TurnRule for Hrrs {
    const NAME: &'static str = HRRS.name;

    fn new(order: TurnOrder) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }
}

impl SwapRule for Hrrs {
    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let turns = self.groups.entry(group.index);
        let turns = turns.or_insert_with(|| GroupTurns::new(self.order));
        let Some(large) = turns.demotion_candidate(group, tick) else {
            return Vec::new();
        };
        let swap = turns.swap_next(group, large, |_| true, "round robin");
        swap.into_iter().collect()
    }
}

#[derive(Debug, Default)]
struct Kuths {
    order: TurnOrder,
    groups: BTreeMap<usize, TransitionBits>,
}

/// The bits of a group, with its turns.
#[derive(Debug)]
struct TransitionBits {
    turns: GroupTurns,
    /// Logical cores whose bit is set.
    set: BTreeSet<usize>,
    /// The bits of the last quantum, while its exchange waits for the large core to leave the
    /// kernel.
    due: Option<BTreeSet<usize>>,
}

impl TurnRule for Kuths {
    const NAME: &'static str = KUTHS.name;

    fn new(order: TurnOrder) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }
}

impl SwapRule for Kuths {
    const CALLS: bool = true;

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let bits = self.groups.entry(group.index);
        let bits = bits.or_insert_with(|| TransitionBits {
            turns: GroupTurns::new(self.order),
            set: BTreeSet::new(),
            due: None,
        });
        let cores = group.logical_cores();
        let returned = cores.filter(|core| core.has_returned_to_user());
        bits.set.extend(returned.map(|core| core.logical));
        if tick.is_quantum {
            bits.due = Some(std::mem::take(&mut bits.set));
        }
        bits.choose_swap(group, tick).into_iter().collect()
    }
}

impl TransitionBits {
    fn choose_swap(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick) -> Option<Swap> {
        let large = self.turns.demotion_candidate(group, tick)?;
        let bits = self.due.take().unwrap_or_default();
        if group.small.iter().any(|core| bits.contains(&core.logical)) {
            let may = |l| bits.contains(&l);
            let why = "it has returned from the kernel";
            return self.turns.swap_next(group, large, may, why);
        }
        let mut large_cores = group.large.iter();
        let is_idle = large_cores.any(|core| core.logical == large && core.is_idle());
        if bits.contains(&large) && !is_idle {
            // It keeps the large core until the end of the next quantum.
            self.turns.due = false;
            return None;
        }
        let why = "round robin, because no thread has returned from the kernel";
        self.turns.swap_next(group, large, |_| true, why)
    }
}

#[cfg(test)]
mod hrrs_tests {
    use super::super::testing::{BUSY, Bench, Did, IDLE, chip};
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
    fn head_of_queue_takes_large_core_each_quantum() {
        let mut bench = bench();
        // Logical cores 0 to 3; who is on CPU 0 after each quantum.
        let turns: Vec<Vec<u32>> = (0..5).map(|_| bench.quantum(&[BUSY; 4])).collect();
        assert_eq!(turns[0], [1, 0, 2, 3]);
        assert_eq!(turns[1], [1, 2, 0, 3]);
        assert_eq!(turns[2], [1, 2, 3, 0]);
        assert_eq!(turns[3], [0, 2, 3, 1]);
        assert_eq!(turns[4], [2, 0, 3, 1]);
    }

    #[test]
    fn idle_large_core_is_exchanged_at_once() {
        let mut bench = bench();
        assert_eq!(bench.activity(&[BUSY; 4]), [0, 1, 2, 3]);
        assert_eq!(bench.activity(&[IDLE, BUSY, BUSY, BUSY]), [1, 0, 2, 3]);
    }

    #[test]
    fn idle_or_kernel_small_core_is_passed_over() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BUSY, IDLE, KERNEL, BUSY]), [3, 1, 2, 0]);
        // Those passed over keep their place at the head.
        assert_eq!(bench.quantum(&[BUSY; 4]), [3, 0, 2, 1]);
    }

    #[test]
    fn core_passed_over_by_counter_waits_a_round() {
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
    fn large_core_in_kernel_is_waited_for() {
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
        fn large_core_changes_each_quantum_if_others_run(
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
        fn counter_equals_queue_without_passed_over_cores(n in 1u32..16) {
            let mut queue = Bench::new(chip(1, n, 1), Hrrs::default());
            let rule = Hrrs { order: TurnOrder::Counter, ..Hrrs::default() };
            let mut counter = Bench::new(chip(1, n, 1), rule);
            let all = vec![BUSY; n as usize + 1];
            for _ in 0..3 * all.len() {
                prop_assert_eq!(queue.quantum(&all), counter.quantum(&all));
            }
        }

        #[test]
        fn busy_threads_have_equal_turns(n in 1u32..16) {
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

#[cfg(test)]
mod kuths_tests {
    use super::super::testing::{BUSY, Bench, Did, IDLE, chip};
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
    fn large_core_bit_alone_prevents_the_exchange() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BACK, BUSY, BUSY, BUSY]), [0, 1, 2, 3]);
        // Not later in the next quantum either.
        assert_eq!(bench.activity(&[BUSY; 4]), [0, 1, 2, 3]);
    }

    #[test]
    fn single_small_core_bit_takes_the_large_core() {
        assert_eq!(bench().quantum(&[BUSY, BUSY, BUSY, BACK]), [3, 1, 2, 0]);
    }

    #[test]
    fn small_core_bit_counts_despite_large_core_bit() {
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
    fn reported_privilege_level_is_the_bit() {
        let reported = |calls: bool, returns: &'static [(Signal, f64)]| Did {
            returned: calls,
            counts: returns,
            ..BUSY
        };
        // The call of core 1 has not come back yet; core 3 comes from a tick.
        let called = reported(true, &[(Signal::UserReturns, 0.0)]);
        let ticked = reported(false, &[(Signal::UserReturns, 1.0)]);
        assert_eq!(bench().quantum(&[BUSY, called, BUSY, ticked]), [3, 1, 2, 0]);
    }

    #[test]
    fn bits_are_cleared_each_quantum() {
        let mut bench = bench();
        assert_eq!(bench.quantum(&[BUSY, BUSY, BUSY, BACK]), [3, 1, 2, 0]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [3, 0, 2, 1]);
    }

    #[test]
    fn return_counts_at_the_quantum_end() {
        let mut bench = bench();
        assert_eq!(bench.activity(&[BUSY, BUSY, BUSY, BACK]), [0, 1, 2, 3]);
        assert_eq!(bench.quantum(&[BUSY; 4]), [3, 1, 2, 0]);
    }

    #[test]
    fn small_core_in_kernel_is_passed_over() {
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
