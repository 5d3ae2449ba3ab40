//! `pie`: the threads that gain most from a large core get one, by performance impact estimation.
//!
//! Source: Van Craeynest, Jaleel, Eeckhout, Narvaez and Emer, "Scheduling Heterogeneous
//! Multi-Cores through Performance Impact Estimation (PIE)", ISCA 2012.
//!
//! Each quantum a thread's speed on the other kind of core is estimated from its cycle stack,
//! misses and dependences on this one. Weighted speedup is greatest when the threads with the
//! highest estimated ratio of speeds have the large cores, so the highest on a small core takes
//! one from the lowest on a large core.
//!
//! Observes what PIE's own hardware counts, which the described `acmp` machines do and no live one
//! does. Pitfall: the gain is mostly overestimated from a small core and underestimated from a
//! large one, so threads with about equal ratios can change places each quantum; `margin` holds
//! them.

use super::asymmetric::{
    ActiveThread, BestScoreRule, MARGIN, PIE_SIGNALS, PieEstimates, PieModel, SOFTWARE_FORM, Score,
    Swapper, Ties, form, margin,
};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{SignalOffers, Tier};
use crate::topology::Topology;

#[doc(alias = "performance impact estimation")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "pie",
    family: "asymmetry",
    source: "Van Craeynest et al., ISCA 2012",
    needs: &PIE_SIGNALS,
    uses: ALL_USUAL,
    tier_min: Tier::Counters,
    quantum_ms: 4,
    live: false,
    simulated: true,
    summary: "gives the large core to the thread that it is estimated to speed up most",
    options: &[SOFTWARE_FORM, MARGIN],
    open,
};

fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let (margin, form) = (margin(options)?, form(options)?);
    let score = Pie(PieEstimates::new(PieModel::from_topology(
        topology, offers, INFO.name,
    )?));
    Swapper::new(BestScoreRule::new(score, margin, Ties::RoundRobin), form)
        .open(topology, INFO.name)
}

#[derive(Debug)]
struct Pie(PieEstimates);

impl Score for Pie {
    const WHY: &'static str = "its estimated gain from a large core is the highest";

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        self.0.add_counts(ran, on_large);
    }

    fn end_quantum(&mut self) {
        self.0.end_quantum(PieModel::ratio);
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.0.forget(is_gone);
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        self.0.last_estimate(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, chip, estimates};
    use super::*;
    use crate::signal::Signal;

    /// A million instructions without misses in 4 million cycles; in order they take 2 million.
    const CHAINS: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 0.0),
            (Signal::LlcMissCycles, 0.0),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 2e6),
        ],
        ..BUSY
    };

    /// Misses that overlap as little here as there: one per 1000 instructions.
    const ALONE: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 1e3),
            (Signal::LlcMissCycles, 3e6),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 0.5e6),
        ],
        ..BUSY
    };

    fn bench() -> Bench<BestScoreRule<Pie>> {
        let chip = chip(1, 1, 1);
        let rule = BestScoreRule::new(Pie(estimates(&chip)), 0.0, Ties::RoundRobin);
        Bench::new(chip, rule)
    }

    #[test]
    fn the_highest_predicted_benefit_gets_the_big_core() {
        // On the large core ALONE: CPI_small = 0.5 + 3·1 = 3.5 of 4: 0.875.
        // On the small core CHAINS: CPI_big = 1/4 of 4: 16.
        let mut bench = bench();
        bench.quantum(&[ALONE, CHAINS]);
        assert_eq!(bench.quantum(&[ALONE, CHAINS]), [1, 0]);
        // Now CHAINS on the large core: CPI_small = 2 of 4, 0.5; ALONE on the small one:
        // CPI_big = 1/4 + 3 = 3.25 of 4, 1.23. The counts of a test do not change with the core,
        // so they go back.
        assert_eq!(bench.quantum(&[ALONE, CHAINS]), [0, 1]);
    }
}
