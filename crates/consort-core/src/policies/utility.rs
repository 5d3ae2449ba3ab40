//! `utility`: the large core goes where it shortens the program most, be that a bottleneck or a
//! thread that lags behind.
//!
//! Source: Joao, Suleman, Mutlu, Patt, "Utility-based acceleration of multithreaded applications
//! on asymmetric CMPs" (ISCA 2013), UBA: utility = local speedup x share of the time x effect on
//! the program. The product is recalled and not checked against the text of the paper; how its
//! terms are estimated is ours:
//!
//! - *Local speedup*: the part of a thread's time that a large core takes away, 1 - 1/S, with S
//!   the ratio of its recent instructions per second on large and small cores (each quantum
//!   weighs half as much as the next). A thread that has not been on both is taken for twice as
//!   fast.
//! - *Lagging threads*: the active threads of a program that have committed least since its last
//!   barrier, or ever where there is none. Those that the last one would reach within a quantum
//!   lag with it. Share of the time: that in which it ran in the last quantum; effect: 1 / number
//!   of those that lag, since all of them have to be faster.
//! - *Bottlenecks*: share x effect is the time that threads waited for it in the last quantum /
//!   (quantum x number of the program's other threads), shared among its executers: 1 for one
//!   that everybody else waits for all the time. Executers as in `bottleneck`.
//!
//! Each quantum the utilities are computed anew. Then and whenever somebody stalls or goes on, an
//! active thread of higher utility on a small core is exchanged with that on the large core.
//!
//! Observes instructions, and locks and barriers, which an instrumented library tells.
//!
//! Pitfall: threads with little to do lag behind by this measure although nobody waits for them.

mod lagging_threads;
mod speed;

use super::asymmetric::{
    FORM, LogicalCore, LogicalCoreGroup, Swap, SwapRule, Swapper, Tick, form, promote,
};
use crate::bottleneck::{Bottleneck, BottleneckKind};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use lagging_threads::LaggingThreads;
use speed::ThreadSpeeds;
use std::collections::BTreeMap;

#[doc(alias = "UBA")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "utility",
    family: "asymmetry",
    source: "Joao et al., ISCA 2013",
    needs: &[Signal::CpuTime, Signal::Instructions, Signal::Bottlenecks],
    uses: ALL_USUAL,
    tier_min: Tier::Counters,
    quantum_ms: 4,
    live: false,
    simulated: true,
    summary: "gives the large core to the bottleneck or laggard that gains its program most",
    options: &[FORM],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Swapper::new(Uba::default(), form(options)?).open(topology, INFO.name)
}

#[derive(Debug, Default)]
struct Uba {
    speeds: ThreadSpeeds,
    lagging: LaggingThreads,
    /// Thread waiting time by lock or barrier in this quantum, thread·ns.
    waited_ns: BTreeMap<u64, u64>,
    /// Thread waiting time in the last quantum by the quantum's length.
    share: BTreeMap<u64, f64>,
    /// Share times effect of the lock or barrier that each executer executes now.
    executers: BTreeMap<ThreadId, f64>,
}

impl Uba {
    /// Notes who executes which bottlenecks now.
    fn record_executers(&mut self, bottlenecks: &[Bottleneck]) {
        self.executers.clear();
        for one in bottlenecks {
            let barrier = one.kind == BottleneckKind::Barrier;
            let share = self.share.get(&one.id).copied().unwrap_or(0.0);
            if barrier && one.waiters.is_empty() {
                continue;
            }
            for thread in &one.executers {
                let others = self.lagging.siblings(*thread).max(1) as f64;
                let effect = share / others / one.executers.len() as f64;
                let best = self.executers.entry(*thread).or_default();
                *best = best.max(effect);
            }
        }
    }

    /// Begins a quantum with what the last one has told.
    fn end_quantum(&mut self, groups: &[LogicalCoreGroup<'_>], quantum_ns: u64) {
        let length_ns = quantum_ns.max(1) as f64;
        let waited = std::mem::take(&mut self.waited_ns).into_iter();
        self.share = waited.map(|(id, ns)| (id, ns as f64 / length_ns)).collect();
        self.lagging.end_quantum(groups, length_ns);
        self.speeds.end_quantum();
    }

    /// The highest utility of a logical core's active threads.
    fn utility(&self, seat: &LogicalCore<'_>) -> Option<f64> {
        let of = |thread: &ThreadId| {
            let bottleneck = self.executers.get(thread).copied().unwrap_or(0.0);
            let effect = bottleneck.max(self.lagging.effect(*thread));
            self.speeds.gain(*thread) * effect
        };
        seat.active.iter().map(of).max_by(f64::total_cmp)
    }
}

impl SwapRule for Uba {
    fn note_bottlenecks(&mut self, bottlenecks: &[Bottleneck], _: Tick) {
        for one in bottlenecks {
            *self.waited_ns.entry(one.id).or_default() += one.waited_ns;
        }
        self.lagging.record_barriers(bottlenecks);
        self.record_executers(bottlenecks);
    }

    fn record_interval(&mut self, groups: &[LogicalCoreGroup<'_>], tick: Tick) {
        self.speeds.add_interval(groups);
        self.lagging.add_interval(groups);
        if tick.is_quantum {
            self.end_quantum(groups, tick.quantum_ns);
        }
    }

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        _: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let why = "it has the highest utility";
        let swap = promote(group, |seat| self.utility(seat), why);
        swap.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
