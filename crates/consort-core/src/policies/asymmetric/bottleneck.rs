//! `bottleneck`: the thread that makes the most others wait gets the large core.
//!
//! Source: Joao, Suleman, Mutlu, Patt, "Bottleneck identification and scheduling in multithreaded
//! applications" (ASPLOS 2012), BIS; on a chip that exchanges threads between large and small
//! cores, as in Markovic (PhD thesis, UPC 2015).
//!
//! - Every lock and barrier has a count of thread waiting time: how long threads have waited for
//!   it, summed over threads. Counts are halved every 100,000 cycles, so that a lock which no
//!   longer makes threads wait is forgotten. Waiting in an interval is added after the halvings
//!   that fall into it.
//! - A lock or barrier is a bottleneck from 1,024 cycles of waiting on. Its executers are the
//!   holder of a lock, whether or not a thread waits at this moment. The executers of a barrier are
//!   the threads that have not reached it, once a thread waits there.
//! - As soon as a small core has an executer of a larger bottleneck than the large core has, the
//!   two are exchanged. A large core on which nothing runs is filled at once.
//!
//! Both numbers are recalled and not checked against the text of the paper: take them for
//! estimates.
//!
//! Times are those cycles at 2.66 GHz, the clock of the published asymmetric chip. No thread is
//! sent back to a small core when the bottleneck is over, because that would be a second exchange.
//!
//! Observes locks and barriers, which an instrumented library reports; 1 ms in hardware, 4 ms in
//! software, and at once in both when a thread stalls or continues.
//!
//! Pitfall: a bottleneck that is shorter than an exchange costs more than it gains.

use super::logical_core_map::{LogicalCore, LogicalCoreGroup};
use super::swapper::{FORM, Swap, SwapRule, Swapper, Tick, form, promote};
use crate::bottleneck::{Bottleneck, BottleneckKind};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

#[doc(alias = "BIS")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "bottleneck",
    family: "asymmetry",
    source: "Joao et al., ASPLOS 2012",
    needs: &[Signal::CpuTime, Signal::Bottlenecks],
    uses: ALL_USUAL,
    tier_min: Tier::Software,
    quantum_ms: 4,
    live: false,
    simulated: true,
    summary: "gives the large core to the thread that keeps most others waiting at a lock or barrier",
    options: &[FORM],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Swapper::new(Bis::default(), form(options)?).open(topology, INFO.name)
}

/// Clock at which the published scheme's cycles are converted to time, cycles per ns.
const GHZ: f64 = 2.66;
/// Waiting from which on a lock or barrier is a bottleneck, thread·ns.
const THRESHOLD_NS: f64 = 1024.0 / GHZ;
/// Time between halvings of all counts, ns.
const HALVING_NS: u64 = (100_000.0 / GHZ) as u64;

#[derive(Debug, Default)]
struct Bis {
    /// Thread waiting time by lock or barrier, thread·ns.
    waited_ns: BTreeMap<u64, f64>,
    /// Time since the last halving, ns.
    since_ns: u64,
    /// The largest bottleneck of each present executer, thread·ns.
    executers: BTreeMap<ThreadId, f64>,
}

impl Bis {
    /// Halves the counts as often as is due, and forgets those below 1 ns.
    fn halve_counts(&mut self, interval_ns: u64) {
        self.since_ns += interval_ns;
        let times = self.since_ns / HALVING_NS;
        self.since_ns %= HALVING_NS;
        // Beyond 64 halvings nothing is left of any count of ns.
        let factor = 0.5f64.powi(times.min(64) as i32);
        self.waited_ns.values_mut().for_each(|ns| *ns *= factor);
        self.waited_ns.retain(|_, ns| *ns >= 1.0);
    }

    fn add(&mut self, one: &Bottleneck) {
        let count = self.waited_ns.entry(one.id).or_default();
        *count += one.waited_ns as f64;
        // Before a thread waits at a barrier, all threads are equally far from it.
        let is_executed = one.kind == BottleneckKind::Lock || !one.waiters.is_empty();
        if *count < THRESHOLD_NS || !is_executed {
            return;
        }
        for thread in &one.executers {
            let largest = self.executers.entry(*thread).or_default();
            *largest = largest.max(*count);
        }
    }

    /// The largest bottleneck of a logical core's active threads; `None` if it is idle.
    fn claim(&self, core: &LogicalCore<'_>) -> Option<f64> {
        if core.is_idle() {
            return None;
        }
        let largest = |t: &ThreadId| self.executers.get(t).copied().unwrap_or(0.0);
        Some(core.active.iter().map(largest).fold(0.0, f64::max))
    }
}

impl SwapRule for Bis {
    fn note_bottlenecks(&mut self, bottlenecks: &[Bottleneck], tick: Tick) {
        self.halve_counts(tick.interval_ns);
        self.executers.clear();
        for one in bottlenecks {
            self.add(one);
        }
    }

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        _: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let why = "it keeps most others waiting";
        let swap = promote(group, |core| self.claim(core), why);
        swap.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUSY, Bench, Did, IDLE, bottleneck, chip};
    use super::BottleneckKind::{Barrier, Lock};
    use super::*;
    use crate::sample::IntervalEnd;

    /// Threads 0 to 3 on logical cores of the same numbers.
    fn all(did: [Did; 4]) -> [Did; 4] {
        let mut number = 0..4;
        did.map(|did| Did {
            occupant: number.next(),
            ..did
        })
    }

    /// CPUs of the threads after an activity, with these bottlenecks.
    fn after(did: [Did; 4], bottlenecks: &[Bottleneck]) -> Vec<u32> {
        let mut bench = Bench::new(chip(1, 3, 1), Bis::default());
        bench.tell(bottlenecks);
        bench.activity(&all(did))
    }

    const WAITS: Did = Did {
        waits: true,
        ..BUSY
    };

    #[test]
    fn lock_holder_with_most_waiting_is_accelerated() {
        let small = bottleneck(Lock, (&[1], &[0]), 1000);
        let mut large = bottleneck(Lock, (&[3], &[2]), 1001);
        assert_eq!(after([BUSY; 4], std::slice::from_ref(&small)), [1, 0, 2, 3]);
        large.id = 7;
        assert_eq!(after([BUSY; 4], &[small, large]), [3, 1, 2, 0]);
    }

    #[test]
    fn barrier_laggard_is_accelerated() {
        let barrier = bottleneck(Barrier, (&[2], &[0, 1, 3]), 3000);
        assert_eq!(after([WAITS, WAITS, BUSY, WAITS], &[barrier]), [2, 1, 0, 3]);
    }

    #[test]
    fn barrier_without_waiters_has_no_laggard() {
        let barrier = bottleneck(Barrier, (&[0, 1, 2, 3], &[]), 3000);
        assert_eq!(after([BUSY; 4], &[barrier]), [0, 1, 2, 3]);
    }

    #[test]
    fn executer_on_the_large_core_stays() {
        let barrier = bottleneck(Barrier, (&[0, 2], &[1, 3]), 3000);
        assert_eq!(after([BUSY, WAITS, BUSY, WAITS], &[barrier]), [0, 1, 2, 3]);
    }

    #[test]
    fn waiting_below_the_threshold_is_no_bottleneck() {
        // 1,024 cycles at 2.66 GHz are 384.96 ns.
        let lock = |ns| [bottleneck(Lock, (&[2], &[0]), ns)];
        assert_eq!(after([BUSY; 4], &lock(384)), [0, 1, 2, 3]);
        assert_eq!(after([BUSY; 4], &lock(385)), [2, 1, 0, 3]);
    }

    #[test]
    fn waiting_adds_up_over_intervals() {
        let mut bench = Bench::new(chip(1, 3, 1), Bis::default());
        let busy = all([BUSY; 4]);
        bench.tell(&[bottleneck(Lock, (&[2], &[0]), 200)]);
        assert_eq!(bench.activity(&busy), [0, 1, 2, 3]);
        bench.tell(&[bottleneck(Lock, (&[], &[]), 200)]);
        assert_eq!(bench.activity(&busy), [0, 1, 2, 3]);
        bench.tell(&[bottleneck(Lock, (&[3], &[]), 0)]);
        assert_eq!(bench.activity(&busy), [3, 1, 2, 0]);
    }

    #[test]
    fn counts_are_halved_every_100_000_cycles() {
        let mut rule = Bis::default();
        rule.add(&bottleneck(Lock, (&[2], &[0]), 1000));
        // 100,000 cycles at 2.66 GHz are 37,593 ns.
        rule.halve_counts(37_592);
        assert_eq!(rule.waited_ns[&1], 1000.0);
        rule.halve_counts(1);
        assert_eq!(rule.waited_ns[&1], 500.0);
        rule.halve_counts(3 * 37_593);
        assert_eq!(rule.waited_ns[&1], 62.5);
        rule.halve_counts(u64::MAX / 2);
        assert!(rule.waited_ns.is_empty());
    }

    #[test]
    fn idle_large_core_is_filled() {
        assert_eq!(after([IDLE, BUSY, BUSY, BUSY], &[]), [1, 0, 2, 3]);
        // One that spins is left until a bottleneck wants its place.
        assert_eq!(after([WAITS, BUSY, BUSY, BUSY], &[]), [0, 1, 2, 3]);
    }

    #[test]
    fn a_core_in_kernel_mode_is_not_exchanged() {
        let kernel = Did {
            kernel: true,
            ..BUSY
        };
        let lock = bottleneck(Lock, (&[2], &[0]), 1000);
        let held = std::slice::from_ref(&lock);
        assert_eq!(after([kernel, BUSY, BUSY, BUSY], held), [0, 1, 2, 3]);
        assert_eq!(after([BUSY, BUSY, kernel, BUSY], held), [0, 1, 2, 3]);
    }

    #[test]
    fn a_quantum_without_bottlenecks_changes_nothing() {
        let mut bench = Bench::new(chip(1, 3, 1), Bis::default());
        let pus = bench.turn(&all([BUSY; 4]), 1_000_000, IntervalEnd::Quantum);
        assert_eq!(pus, [0, 1, 2, 3]);
    }
}
