//! `fair-progress`: the threads that have been slowed down most get the large cores.
//!
//! Source: Van Craeynest, Akram, Heirman, Jaleel and Eeckhout, "Fairness-Aware Scheduling on
//! Single-ISA Heterogeneous Multi-Cores" (PACT 2013), equal-progress scheduling; it is the
//! "fairness-aware scheduler" of Markovic's thesis.
//!
//! A thread's slowdown against a large core of its own is S = (T_big + T_small) / (T_big +
//! T_small/R), with T its time on either kind of core and R its speed on a large one over that on a
//! small one. At the end of each quantum, the most slowed-down thread on a small core takes a large
//! core from the least slowed-down there.
//!
//! R is the last estimate by PIE (`ratio=pie`), which needs its counters, or the ratio of its
//! speeds in its last quanta on either kind of core (`ratio=measured`), which needs instructions
//! only. Before there is an estimate, it is the ratio of the cores' capacities; a ratio that has to
//! be measured is not guessed: a thread that has never had a large core goes first, or a guess
//! below the ratio of the others would keep it away from large cores for good.

use super::asymmetric::{
    ActiveThread, BestScoreRule, CoreKindRates, CoreKindTimes, MARGIN, PieEstimates, PieModel,
    SOFTWARE_FORM, Score, Swapper, Ties, form, margin,
};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

#[doc(alias = "fairness-aware scheduler")]
#[doc(alias = "equal-progress scheduling")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "fair-progress",
    family: "asymmetry",
    source: "Van Craeynest et al., PACT 2013",
    needs: &[Signal::CpuTime, Signal::Instructions],
    uses: ALL_USUAL,
    tier_min: Tier::Counters,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "gives the large core to the thread that small cores have slowed down most",
    options: &[
        SOFTWARE_FORM,
        OptionInfo {
            name: "ratio",
            default: "pie",
            meaning: "how much faster a thread is on a large core: pie (estimated) or measured",
        },
        MARGIN,
    ],
    open,
};

fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let words = [("pie", true), ("measured", false)];
    let is_estimated = options.one_of("ratio", &words, "pie or measured")?;
    let (margin, form) = (margin(options)?, form(options)?);
    let ratio = if is_estimated {
        SpeedupSource::Pie(PieEstimates::new(PieModel::from_topology(
            topology, offers, INFO.name,
        )?))
    } else {
        SpeedupSource::Measured
    };
    let score = FairProgress::new(ratio, topology);
    Swapper::new(BestScoreRule::new(score, margin, Ties::RoundRobin), form)
        .open(topology, INFO.name)
}

/// Source of R, the speedup of a thread by a large core.
#[derive(Debug)]
enum SpeedupSource {
    Pie(PieEstimates),
    Measured,
}

#[derive(Debug)]
struct FairProgress {
    from: SpeedupSource,
    /// R of threads of which nothing is known: the ratio of capacities.
    usual: f64,
    threads: BTreeMap<ThreadId, (CoreKindTimes, CoreKindRates)>,
}

impl FairProgress {
    fn new(from: SpeedupSource, topology: &Topology) -> Self {
        Self {
            from,
            usual: capacity_ratio(topology),
            threads: BTreeMap::new(),
        }
    }

    fn speedup_ratio(&self, thread: ThreadId, rates: CoreKindRates) -> f64 {
        match &self.from {
            SpeedupSource::Pie(estimates) => estimates.last_estimate(thread).unwrap_or(self.usual),
            SpeedupSource::Measured => rates.ratio().unwrap_or(f64::INFINITY),
        }
    }
}

impl Score for FairProgress {
    const WHY: &'static str = "small cores have slowed it down most";

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let (times, rates) = self.threads.entry(ran.thread).or_default();
        times.add(ran, on_large);
        rates.add(ran, on_large);
        if let SpeedupSource::Pie(estimates) = &mut self.from {
            estimates.add_counts(ran, on_large);
        }
    }

    fn end_quantum(&mut self) {
        self.threads.values_mut().for_each(|(_, r)| r.end_quantum());
        if let SpeedupSource::Pie(estimates) = &mut self.from {
            estimates.end_quantum(PieModel::ratio);
        }
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        if let SpeedupSource::Pie(estimates) = &mut self.from {
            estimates.forget(is_gone);
        }
        self.threads.retain(|&id, _| !is_gone(id));
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        let (times, rates) = self.threads.get(&thread)?;
        times.slowdown(self.speedup_ratio(thread, *rates))
    }
}

/// Capacity of the largest cores by that of the next; 1 where all are alike.
fn capacity_ratio(topology: &Topology) -> f64 {
    let types = topology.core_types().iter();
    let mut capacities: Vec<u32> = types.map(|t| t.capacity).collect();
    capacities.sort_unstable_by(|a, b| b.cmp(a));
    let next = capacities.get(1).copied().unwrap_or(capacities[0]);
    f64::from(capacities[0]) / f64::from(next.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, chip, estimates};
    use super::*;

    fn bench(is_estimated: bool, small: u32) -> Bench<BestScoreRule<FairProgress>> {
        let chip = chip(1, small, 1);
        let from = match is_estimated {
            true => SpeedupSource::Pie(estimates(&chip)),
            false => SpeedupSource::Measured,
        };
        let rule = BestScoreRule::new(FairProgress::new(from, &chip), 0.0, Ties::RoundRobin);
        Bench::new(chip, rule)
    }

    /// A million instructions that a large core is estimated to speed up: 4 times from the small
    /// core, where CPI is 1 and would be 1/4; on the large core, with CPI 1, by those in order.
    const FOURFOLD: Did = Did {
        counts: &[
            (Signal::Cycles, 1e6),
            (Signal::LlcMisses, 0.0),
            (Signal::LlcMissCycles, 0.0),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 4e6),
        ],
        ..BUSY
    };

    /// The same twice: CPI is 0.5 on the small core.
    const TWOFOLD: Did = Did {
        counts: &[
            (Signal::Cycles, 0.5e6),
            (Signal::LlcMisses, 0.0),
            (Signal::LlcMissCycles, 0.0),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 1e6),
        ],
        ..BUSY
    };

    #[test]
    fn the_most_slowed_down_threads_are_on_the_big_cores() {
        let mut bench = bench(true, 2);
        let did = [TWOFOLD, TWOFOLD, FOURFOLD];
        bench.quantum(&did);
        // One quantum: S = 1 on the large core, 2 and 4 on small ones. FOURFOLD goes.
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        // Two: (1+1)/(1+1/2) = 1.33, 2, (1+1)/(1+1/4) = 1.6. The second goes.
        assert_eq!(bench.quantum(&did), [2, 0, 1]);
        // Three: 3/(1+2/2) = 1.5; 3/(1+2/2) = 1.5; 3/(1+2/4) = 2. FOURFOLD goes.
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        // Four: 4/(1+3/2) = 1.6; the second likewise; 4/(2+2/4) = 1.6. Nobody moves.
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        // Five: 5/(1+4/2) = 1.67 both; 5/(3+2/4) = 1.43. The first in the queue goes.
        assert_eq!(bench.quantum(&did), [0, 1, 2]);
    }

    #[test]
    fn nobody_is_kept_from_large_cores_by_a_guess() {
        // Large cores are 8 times as fast: who has an eighth of one is slowed down to 1 / (1/8 +
        // 7/8/8) = 4.3, more than the capacities of 1024 and 400 would say of who has had none.
        let on = |large: bool| Did {
            instructions: if large { 8e6 } else { 1e6 },
            ..BUSY
        };
        let mut bench = bench(false, 7);
        let (mut at, mut had) = (0, [0; 8]);
        for _ in 0..80 {
            let pus = bench.quantum(&[0, 1, 2, 3, 4, 5, 6, 7].map(|l| on(l == at)));
            at = pus.iter().position(|&pu| pu == 0).unwrap();
            had[at] += 1;
        }
        assert!(had.iter().all(|&n| (9..=11).contains(&n)), "{had:?}");
    }

    #[test]
    fn the_ratio_is_measured_once_a_thread_has_run_on_both() {
        let did = |millions: f64| Did {
            instructions: millions * 1e6,
            ..BUSY
        };
        let mut bench = bench(false, 1);
        bench.quantum(&[did(1.0), did(1.0)]);
        // Not known of either: who has never had the large core goes first.
        assert_eq!(bench.quantum(&[did(4.0), did(1.0)]), [1, 0]);
        // Both have been on both: the first went from 4 to 1, R = 4, S = 2/(1+1/4) = 1.6; the
        // second from 1 to 2, R = 2, S = 2/(1+1/2) = 1.33. So they change again.
        assert_eq!(bench.quantum(&[did(1.0), did(2.0)]), [0, 1]);
    }

    #[test]
    fn without_counters_it_says_that_it_can_measure() {
        let offers = INFO.needs.iter().map(|&signal| (signal, Tier::Counters));
        let spec = INFO.name.parse().unwrap();
        let opened = crate::policies::open(&chip(1, 1, 1), &offers.collect(), &spec);
        let text = opened.err().unwrap().to_string();
        assert!(
            text.contains("does not count") && text.contains("ratio=measured"),
            "{text}"
        );
    }
}
