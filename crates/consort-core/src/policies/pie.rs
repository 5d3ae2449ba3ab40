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
    Best, Estimates, Impact, MARGIN, PIE_SIGNALS, Ran, SOFTWARE_FORM, Score, Swapper, Ties, form,
    margin,
};
use crate::ids::ThreadId;
use crate::policy::{Options, Policy, PolicyError, PolicyInfo};
use crate::signal::{Offers, Tier};
use crate::topology::Topology;

#[doc(alias = "performance impact estimation")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "pie",
    family: "asymmetry",
    source: "Van Craeynest et al., ISCA 2012",
    needs: &PIE_SIGNALS,
    tier_min: Tier::Counters,
    quantum_ms: 4,
    live: false,
    simulated: true,
    summary: "gives the large core to the thread that it is estimated to speed up most",
    options: &[SOFTWARE_FORM, MARGIN],
    build,
};

fn build(options: &Options<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let rule = Best::new(Pie::default(), margin(options)?, Ties::RoundRobin);
    Ok(Box::new(Swapper::new(rule, form(options)?)))
}

#[derive(Debug, Default)]
struct Pie(Estimates);

impl Score for Pie {
    const NAME: &'static str = INFO.name;
    const WHY: &'static str = "its estimated gain from a large core is the highest";

    fn prepare(&mut self, topology: &Topology, offers: &Offers) -> Result<(), PolicyError> {
        self.0.prepare(Impact::of(topology, offers, Self::NAME)?);
        Ok(())
    }

    fn note(&mut self, ran: &Ran<'_>, on_large: bool) {
        self.0.note(ran, on_large);
    }

    fn conclude(&mut self) {
        self.0.conclude(Impact::ratio);
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.0.forget(is_gone);
    }

    fn of(&self, thread: ThreadId) -> Option<f64> {
        self.0.of(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, chip};
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

    fn bench() -> Bench<Best<Pie>> {
        let rule = Best::new(Pie::default(), 0.0, Ties::RoundRobin);
        let mut bench = Bench::new(chip(1, 1, 1), rule);
        let offers = PIE_SIGNALS.map(|s| (s, Tier::Counters)).into_iter();
        bench.prepare(&offers.collect()).unwrap();
        bench
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

    #[test]
    fn a_machine_that_does_not_count_is_refused() {
        let rule = Best::new(Pie::default(), 0.0, Ties::RoundRobin);
        let mut bench = Bench::new(chip(1, 1, 1), rule);
        let error = bench.prepare(&Offers::default()).unwrap_err().to_string();
        assert!(
            error.starts_with("policy pie estimates by PIE's counters"),
            "{error}"
        );
    }
}
