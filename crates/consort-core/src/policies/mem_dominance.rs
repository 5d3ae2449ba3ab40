//! `mem-dominance`: memory-bound threads go to small cores.
//!
//! Source: Van Craeynest, Jaleel, Eeckhout, Narvaez and Emer, "Scheduling Heterogeneous
//! Multi-Cores through Performance Impact Estimation (PIE)", ISCA 2012, section 2, where it stands
//! for the schedulers before PIE.
//!
//! Each quantum, the thread on a small core with the lowest share of its time stalled behind
//! memory takes a large core from the thread with the highest.
//!
//! Observes the share of time stalled behind loads. Pitfall, and the point of PIE: a large core
//! overlaps misses, so memory-bound threads can gain more from it than others; and since shares
//! are higher on a large core, which has less else to wait for, threads alike can change places
//! each quantum.

use super::asymmetric::{
    ActiveThread, BestScoreRule, MARGIN, SOFTWARE_FORM, Score, Swapper, Ties, form, margin,
};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "mem-dominance",
    family: "asymmetry",
    source: "Van Craeynest et al., ISCA 2012, section 2",
    needs: &[Signal::CpuTime, Signal::MemoryStall],
    uses: ALL_USUAL,
    tier_min: Tier::Sampling,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "keeps memory-bound threads on small cores",
    options: &[SOFTWARE_FORM, MARGIN],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let rule = BestScoreRule::new(MemDominance::default(), margin(options)?, Ties::RoundRobin);
    Swapper::new(rule, form(options)?).open(topology, INFO.name)
}

#[derive(Debug, Default)]
struct MemDominance {
    /// Since the quantum began: time stalled and time in all, ns.
    now: BTreeMap<ThreadId, (f64, f64)>,
    /// Share of the last quantum.
    share: BTreeMap<ThreadId, f64>,
}

impl Score for MemDominance {
    const WHY: &'static str = "it waits for memory least";

    fn record_interval(&mut self, ran: &ActiveThread<'_>, _: bool) {
        let time_ns = ran.sample.cpu_time_ns();
        if let Some(share) = ran.sample.get(Signal::MemoryStall) {
            let now = self.now.entry(ran.thread).or_default();
            now.0 += share * time_ns;
            now.1 += time_ns;
        }
    }

    fn end_quantum(&mut self) {
        let ran = std::mem::take(&mut self.now).into_iter();
        let shares = ran.filter(|(_, (_, time_ns))| *time_ns > 0.0);
        self.share
            .extend(shares.map(|(t, (stalled, time))| (t, stalled / time)));
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.now.retain(|&id, _| !is_gone(id));
        self.share.retain(|&id, _| !is_gone(id));
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        self.share.get(&thread).map(|share| -share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, chip};
    use super::*;

    const fn stalled(counts: &'static [(Signal, f64)]) -> Did {
        Did { counts, ..BUSY }
    }

    const MOST: Did = stalled(&[(Signal::MemoryStall, 0.8)]);
    const SOME: Did = stalled(&[(Signal::MemoryStall, 0.5)]);
    const LEAST: Did = stalled(&[(Signal::MemoryStall, 0.1)]);

    fn bench() -> Bench<BestScoreRule<MemDominance>> {
        let rule = BestScoreRule::new(MemDominance::default(), 0.0, Ties::RoundRobin);
        Bench::new(chip(1, 2, 1), rule)
    }

    #[test]
    fn memory_bound_threads_are_on_small_cores_always() {
        let mut bench = bench();
        let did = [MOST, SOME, LEAST];
        bench.quantum(&did);
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
    }

    #[test]
    fn shares_are_those_of_the_whole_quantum() {
        let mut bench = bench();
        let alike = [SOME, SOME, SOME];
        bench.quantum(&alike);
        // A thousandth of the quantum at 0.1 leaves 0.4996, which is still the lowest.
        bench.activity(&[SOME, SOME, LEAST]);
        assert_eq!(bench.quantum(&alike), [2, 1, 0]);
    }
}
