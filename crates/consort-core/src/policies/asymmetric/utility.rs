//! `utility`: the large core goes where it shortens the program most: to a bottleneck, or to a
//! thread that lags behind.
//!
//! Source: Joao, Suleman, Mutlu, Patt, "Utility-based acceleration of multithreaded applications on
//! asymmetric CMPs" (ISCA 2013), UBA: utility = local speedup x share of the time x effect on the
//! program. The product is recalled and not checked against the text of the paper; the estimates of
//! its terms are ours:
//!
//! - *Local speedup*: the part of a thread's time that a large core takes away, 1 - 1/S, with S
//!   the ratio of its recent instructions per second on large and small cores (each quantum
//!   weighs half as much as the next). S is 2 for a thread that has not been on both.
//! - *Lagging threads*: the active threads of a program that have committed least since its last
//!   barrier, or ever if it has none. Threads that the last one would reach within a quantum lag
//!   with it. Share of the time: that in which the thread ran in the last quantum. Effect: 1 /
//!   number of lagging threads, because all of them have to be faster.
//! - *Bottlenecks*: share x effect is the time that threads waited for it in the last quantum /
//!   (quantum x number of the program's other threads), shared among its executers: 1 for one
//!   that all others wait for all the time. Executers as in `bottleneck`.
//!
//! Each quantum the utilities are computed anew. Then and when any thread stalls or continues, an
//! active thread of higher utility on a small core is exchanged with that on the large core.
//!
//! Observes instructions, and locks and barriers, which an instrumented library reports.
//!
//! Pitfall: threads with little to do lag behind by this measure although no thread waits for them.

use super::logical_core_map::{LogicalCore, LogicalCoreGroup};
use super::swapper::{FORM, Swap, SwapRule, Swapper, Tick, form, promote};
use crate::bottleneck::{Bottleneck, BottleneckKind};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Thread waiting time in the last quantum over the quantum's length.
    share: BTreeMap<u64, f64>,
    /// Share times effect of each present executer's lock or barrier.
    executers: BTreeMap<ThreadId, f64>,
}

impl Uba {
    fn record_executers(&mut self, bottlenecks: &[Bottleneck]) {
        self.executers.clear();
        for one in bottlenecks {
            let share = self.share.get(&one.id).copied().unwrap_or(0.0);
            // Before a thread waits at a barrier, all threads are equally far from it.
            if one.kind == BottleneckKind::Barrier && one.waiters.is_empty() {
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

    /// The highest utility of a logical core's active threads; `None` if it has none.
    fn utility(&self, core: &LogicalCore<'_>) -> Option<f64> {
        let utility = |thread: &ThreadId| {
            let bottleneck = self.executers.get(thread).copied().unwrap_or(0.0);
            let effect = bottleneck.max(self.lagging.effect(*thread));
            self.speeds.gain(*thread) * effect
        };
        core.active.iter().map(utility).max_by(f64::total_cmp)
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
            let length_ns = tick.quantum_ns.max(1) as f64;
            let waited = std::mem::take(&mut self.waited_ns).into_iter();
            self.share = waited.map(|(id, ns)| (id, ns as f64 / length_ns)).collect();
            self.lagging.end_quantum(groups, length_ns);
            self.speeds.end_quantum();
        }
    }

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        _: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        let why = "it has the highest utility";
        let swap = promote(group, |core| self.utility(core), why);
        swap.into_iter().collect()
    }
}

/// Speedup of a thread that has not been on both kinds of cores recently. It is high, so that such
/// a thread gets a large core and is measured.
const UNKNOWN_RATIO: f64 = 2.0;

/// Work done on one kind of core, recent work counting most.
#[derive(Clone, Copy, Debug, Default)]
struct CoreKindWork {
    instructions: f64,
    ns: f64,
}

impl CoreKindWork {
    fn rate(self) -> Option<f64> {
        (self.instructions > 0.0 && self.ns > 0.0).then(|| self.instructions / self.ns)
    }
}

#[derive(Debug, Default)]
struct ThreadSpeeds {
    /// Work of each thread on large and on small cores.
    work: BTreeMap<ThreadId, [CoreKindWork; 2]>,
    /// Large/small ratio when the last quantum ended, of threads that were on both. It holds for a
    /// quantum. If it were renewed at every interval, the refill after an exchange would lower it
    /// at once, and threads would be exchanged back and forth (seen in runs of ocean.cont).
    ratios: BTreeMap<ThreadId, f64>,
}

impl ThreadSpeeds {
    fn add_interval(&mut self, groups: &[LogicalCoreGroup<'_>]) {
        for group in groups {
            for (kind, cores) in [&group.large, &group.small].into_iter().enumerate() {
                for ran in cores.iter().flat_map(|core| &core.ran) {
                    let work = &mut self.work.entry(ran.thread).or_default()[kind];
                    work.instructions += ran.progress;
                    work.ns += ran.cpu_ns;
                }
            }
        }
    }

    /// Finds the ratios for the next quantum, in which all earlier work weighs half as much.
    fn end_quantum(&mut self) {
        self.ratios.clear();
        for (thread, work) in &mut self.work {
            if let [Some(large), Some(small)] = work.map(CoreKindWork::rate) {
                self.ratios.insert(*thread, large / small);
            }
            for one in work {
                one.instructions *= 0.5;
                one.ns *= 0.5;
            }
        }
    }

    /// The part of a thread's time on a small core that a large one takes away, 0 to 1.
    fn gain(&self, thread: ThreadId) -> f64 {
        let known = self.ratios.get(&thread).copied();
        (1.0 - 1.0 / known.unwrap_or(UNKNOWN_RATIO)).max(0.0)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct ThreadProgress {
    /// Instructions since the program's last barrier, or ever.
    all: f64,
    /// Instructions in this quantum.
    quantum: f64,
    /// Time on a CPU in this quantum, ns.
    ran_ns: f64,
}

/// The progress of all threads, and the threads that lag behind their siblings.
#[derive(Debug, Default)]
struct LaggingThreads {
    progress: BTreeMap<ThreadId, ThreadProgress>,
    /// Threads that wait at each barrier.
    waiters: BTreeMap<u64, BTreeSet<ThreadId>>,
    /// Share times effect of each thread that lagged when the last quantum ended.
    effects: BTreeMap<ThreadId, f64>,
}

impl LaggingThreads {
    /// Records the threads that wait at barriers. When one leaves a barrier, the progress of its
    /// program starts again from 0.
    fn record_barriers(&mut self, bottlenecks: &[Bottleneck]) {
        let barriers = bottlenecks.iter();
        let barriers = barriers.filter(|one| one.kind == BottleneckKind::Barrier);
        let now: BTreeMap<u64, BTreeSet<ThreadId>> = barriers
            .map(|one| (one.id, one.waiters.iter().copied().collect()))
            .collect();
        let before = std::mem::replace(&mut self.waiters, now);
        for (id, waited) in before {
            let waits = self.waiters.get(&id);
            let left = |t: &&ThreadId| !waits.is_some_and(|waits| waits.contains(t));
            if let Some(gone) = waited.iter().find(left) {
                for (thread, progress) in &mut self.progress {
                    if thread.pid == gone.pid {
                        progress.all = 0.0;
                    }
                }
            }
        }
    }

    fn add_interval(&mut self, groups: &[LogicalCoreGroup<'_>]) {
        let cores = groups.iter().flat_map(LogicalCoreGroup::logical_cores);
        for ran in cores.flat_map(|core| &core.ran) {
            let progress = self.progress.entry(ran.thread).or_default();
            progress.all += ran.progress;
            progress.quantum += ran.progress;
            progress.ran_ns += ran.cpu_ns;
        }
    }

    /// Finds the threads that lag now, and begins a quantum.
    fn end_quantum(&mut self, groups: &[LogicalCoreGroup<'_>], quantum_ns: f64) {
        let mut programs: BTreeMap<u32, Vec<(ThreadId, ThreadProgress)>> = BTreeMap::new();
        let cores = groups.iter().flat_map(LogicalCoreGroup::logical_cores);
        for &thread in cores.flat_map(|core| &core.active) {
            let progress = *self.progress.entry(thread).or_default();
            let program = programs.entry(thread.pid).or_default();
            program.push((thread, progress));
        }
        let programs = programs.into_values();
        self.effects = programs
            .flat_map(|program| lagging_effects(&program, quantum_ns))
            .collect();
        for progress in self.progress.values_mut() {
            progress.quantum = 0.0;
            progress.ran_ns = 0.0;
        }
    }

    /// Share times effect of a lagging thread; 0 for others.
    fn effect(&self, thread: ThreadId) -> f64 {
        self.effects.get(&thread).copied().unwrap_or(0.0)
    }

    /// Number of other threads of the program that have run.
    fn siblings(&self, thread: ThreadId) -> usize {
        let is_sibling = |other: &&ThreadId| other.pid == thread.pid && **other != thread;
        self.progress.keys().filter(is_sibling).count()
    }
}

/// Share times effect of the lagging ones among a program's active threads.
fn lagging_effects(active: &[(ThreadId, ThreadProgress)], quantum_ns: f64) -> Vec<(ThreadId, f64)> {
    let least = active.iter().min_by(|a, b| a.1.all.total_cmp(&b.1.all));
    let Some((_, last)) = least else {
        return Vec::new();
    };
    let reach = last.all + last.quantum;
    let lagging = active.iter().filter(|(_, progress)| progress.all <= reach);
    let number = lagging.clone().count() as f64;
    lagging
        .map(|(thread, progress)| (*thread, (progress.ran_ns / quantum_ns).min(1.0) / number))
        .collect()
}

#[cfg(test)]
impl ThreadSpeeds {
    /// Sets the rates on large and small cores, instructions per ns.
    fn set(&mut self, thread: ThreadId, large: f64, small: f64) {
        let work = |instructions| CoreKindWork {
            instructions,
            ns: 1.0,
        };
        self.work.insert(thread, [work(large), work(small)]);
        self.end_quantum();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUSY, Bench, Did, QUANTUM_NS, bottleneck, chip};
    use super::BottleneckKind::{Barrier, Lock};
    use super::*;
    use crate::sample::IntervalEnd;
    use crate::testing::thread_id;
    use proptest::prelude::*;

    /// Threads 0 to 3 on logical cores of the same numbers, with what they committed, in thousands.
    fn all(thousands: [u32; 4]) -> [Did; 4] {
        let mut number = 0..4;
        thousands.map(|t| Did {
            instructions: f64::from(t) * 1e3,
            occupant: number.next(),
            ..BUSY
        })
    }

    fn waiting(mut did: [Did; 4], who: &[usize]) -> [Did; 4] {
        who.iter().for_each(|&t| did[t].waits = true);
        did
    }

    /// Four threads that have just come and are known.
    fn bench() -> Bench<Uba> {
        let mut bench = Bench::new(chip(1, 3, 1), Uba::default());
        assert_eq!(
            bench.turn(&all([0; 4]), 0, IntervalEnd::Activity),
            [0, 1, 2, 3]
        );
        bench
    }

    #[test]
    fn thread_with_least_progress_is_accelerated() {
        // Thread 2 is at 100, and 100 more would not bring it to the next, at 300. One lags: its
        // utility is (1 - 1/2) x 1 / 1.
        assert_eq!(bench().quantum(&all([900, 300, 100, 500])), [2, 1, 0, 3]);
    }

    #[test]
    fn threads_within_reach_of_the_last_lag() {
        // The last is at 300 and does 300 in a quantum: 0, which has done 550, lags too.
        assert_eq!(bench().quantum(&all([550, 700, 300, 900])), [0, 1, 2, 3]);
    }

    #[test]
    fn threads_that_wait_do_not_lag() {
        let did = waiting(all([900, 700, 100, 300]), &[2]);
        assert_eq!(bench().quantum(&did), [3, 1, 2, 0]);
    }

    #[test]
    fn progress_counts_from_the_last_barrier() {
        let mut bench = bench();
        let did = waiting(all([900, 100, 900, 900]), &[0, 2, 3]);
        bench.tell(&[bottleneck(Barrier, (&[1], &[0, 2, 3]), 0)]);
        assert_eq!(bench.quantum(&did), [1, 0, 2, 3]);
        // All go on.
        bench.tell(&[]);
        bench.turn(&all([0; 4]), 0, IntervalEnd::Activity);
        // Since the barrier 2 is the last. Ever since it would be 1, with 700 against 1000.
        assert_eq!(bench.quantum(&all([700, 600, 100, 800])), [1, 2, 0, 3]);
    }

    #[test]
    fn bottleneck_effect_is_its_share_of_waiting() {
        let mut bench = bench();
        // Everybody else waits for the holder for half of the quantum: 3 x Q/2 / (Q x 3) = 1/2. All
        // four lag: 1/4 each.
        bench.tell(&[bottleneck(Lock, (&[3], &[0, 1, 2]), 3 * QUANTUM_NS / 2)]);
        assert_eq!(bench.quantum(&all([500; 4])), [0, 1, 2, 3]);
        // The share is known when the quantum is over.
        bench.tell(&[bottleneck(Lock, (&[3], &[0]), 0)]);
        assert_eq!(bench.activity(&all([1; 4])), [3, 1, 2, 0]);
    }

    #[test]
    fn lagging_thread_outweighs_a_small_bottleneck() {
        let mut bench = bench();
        // One waits for a tenth of the quantum: 1/10 / 3. One lags: 1.
        bench.tell(&[bottleneck(Lock, (&[3], &[1]), QUANTUM_NS / 10)]);
        assert_eq!(bench.quantum(&all([900, 300, 100, 500])), [2, 1, 0, 3]);
        assert_eq!(bench.activity(&all([0; 4])), [2, 1, 0, 3]);
    }

    #[test]
    fn late_threads_share_the_effect_of_a_barrier() {
        let mut rule = Uba::default();
        rule.share.insert(0, 0.6);
        rule.record_executers(&[bottleneck(Barrier, (&[1, 2], &[0, 3]), 0)]);
        assert!(rule.executers.values().all(|&effect| effect == 0.3));
        assert_eq!(rule.executers.len(), 2);
        // A barrier without waiters has no late threads.
        rule.record_executers(&[bottleneck(Barrier, (&[1, 2], &[]), 0)]);
        assert!(rule.executers.is_empty());
    }

    #[test]
    fn local_speedup_is_measured_on_both_kinds() {
        let mut bench = bench();
        // Thread 0 does 800 on the large core, 1 to 3 do 400, 200 and 300 on small ones. Thread 2
        // is the last and comes to the large core, where it does 220: a ratio of 1.1.
        assert_eq!(bench.quantum(&all([800, 500, 200, 700])), [2, 1, 0, 3]);
        // Now 0 does 720 on a small core, a ratio of 1.11. Progress is 1520, 520, 420 and 720: with
        // 2 lags 1, whose ratio is not known and is taken for 2.
        assert_eq!(bench.quantum(&all([720, 20, 220, 20])), [2, 0, 1, 3]);
    }

    #[test]
    fn thread_without_speedup_gains_nothing() {
        let mut speeds = ThreadSpeeds::default();
        let thread = thread_id(1);
        assert_eq!(speeds.gain(thread), 0.5);
        speeds.set(thread, 4.0, 1.0);
        assert_eq!(speeds.gain(thread), 0.75);
        speeds.set(thread, 1.0, 2.0);
        assert_eq!(speeds.gain(thread), 0.0);
    }
    proptest! {
        #[test]
        fn lagging_effects_sum_to_at_most_one(
            done in prop::collection::vec((0.0..1e9, 0.0..1e6, 0.0..2e6), 1..16),
        ) {
            let thread = |(tid, &(all, quantum, ran_ns)): (usize, &(f64, f64, f64))| {
                (thread_id(tid as u32), ThreadProgress { all, quantum, ran_ns })
            };
            let active: Vec<_> = done.iter().enumerate().map(thread).collect();
            let found = lagging_effects(&active, 1e6);
            let sum: f64 = found.iter().map(|(_, effect)| effect).sum();
            prop_assert!(sum <= 1.0 + 1e-9);
            // The last one always lags.
            let least = done.iter().map(|d| d.0).fold(f64::INFINITY, f64::min);
            let last = |id: &ThreadId| active.iter().any(|(t, p)| t == id && p.all == least);
            prop_assert!(found.iter().any(|(id, _)| last(id)));
        }
    }
}
