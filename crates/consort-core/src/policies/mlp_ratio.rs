//! `mlp-ratio`: the threads whose misses overlap most more on a large core get one.
//!
//! Source: Van Craeynest, Jaleel, Eeckhout, Narvaez and Emer, "Scheduling Heterogeneous
//! Multi-Cores through Performance Impact Estimation (PIE)", ISCA 2012, section 2, where it is one
//! of the simpler rules that PIE is compared with.
//!
//! Each quantum, the thread on a small core with the highest ratio of memory-level parallelism on
//! a large core to that on a small core takes a large core from the thread with the lowest.
//!
//! Observes misses and the distance to first uses, as `pie`. Pitfall: it tells how misses overlap,
//! not how much they matter, so threads with few but overlapping misses go first.

use super::asymmetric::{
    ActiveThread, BestScoreRule, MARGIN, PIE_SIGNALS, PieEstimates, PieModel, SOFTWARE_FORM, Score,
    Swapper, Ties, form, margin,
};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{SignalOffers, Tier};
use crate::topology::Topology;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "mlp-ratio",
    family: "asymmetry",
    source: "Van Craeynest et al., ISCA 2012, section 2",
    needs: &PIE_SIGNALS,
    uses: ALL_USUAL,
    tier_min: Tier::Counters,
    quantum_ms: 4,
    live: false,
    simulated: true,
    summary: "gives the large core to the thread whose misses overlap most more there",
    options: &[SOFTWARE_FORM, MARGIN],
    open,
};

fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let (margin, form) = (margin(options)?, form(options)?);
    let score = MlpRatio(PieEstimates::new(PieModel::from_topology(
        topology, offers, INFO.name,
    )?));
    Swapper::new(BestScoreRule::new(score, margin, Ties::RoundRobin), form)
        .open(topology, INFO.name)
}

#[derive(Debug)]
struct MlpRatio(PieEstimates);

impl Score for MlpRatio {
    const WHY: &'static str = "its misses overlap most more on a large core";

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        self.0.add_counts(ran, on_large);
    }

    fn end_quantum(&mut self) {
        self.0
            .end_quantum(|impact, counted, _| impact.mlp_ratio(counted));
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

    /// A million instructions with 62500 misses, 1/16 each, at a distance of 32: 8/2 = 4.
    const FAR: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 62_500.0),
            (Signal::LlcMissCycles, 3e6),
            (Signal::UseDistances, 32e6),
            (Signal::InOrderCycles, 1e6),
        ],
        ..BUSY
    };

    /// The same at a distance of 4: 8/1 = 8.
    const NEAR: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 62_500.0),
            (Signal::LlcMissCycles, 1e6),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 1e6),
        ],
        ..BUSY
    };

    #[test]
    fn the_highest_mlp_big_over_mlp_small_is_on_the_big_core() {
        let chip = chip(1, 2, 1);
        let rule = BestScoreRule::new(MlpRatio(estimates(&chip)), 0.0, Ties::RoundRobin);
        let mut bench = Bench::new(chip, rule);
        bench.quantum(&[FAR, FAR, NEAR]);
        assert_eq!(bench.quantum(&[FAR, FAR, NEAR]), [2, 1, 0]);
        // It stays there, though its misses cost it less than theirs cost the others.
        assert_eq!(bench.quantum(&[FAR, FAR, NEAR]), [2, 1, 0]);
    }
}
