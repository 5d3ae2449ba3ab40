//! The policies that give the large cores to the threads with the best scores: `pie`, `mlp-ratio`,
//! `mem-dominance`, `fair-time` and `fair-progress`.
//!
//! At the end of each quantum, the thread with the best score on a small core takes a large core
//! from the thread with the worst score there.
//!
//! Sources: Van Craeynest, Jaleel, Eeckhout, Narvaez and Emer, "Scheduling Heterogeneous
//! Multi-Cores through Performance Impact Estimation (PIE)", ISCA 2012, which compares PIE with
//! `mlp-ratio` and `mem-dominance` in section 2; Van Craeynest, Akram,
//! Heirman, Jaleel and Eeckhout, "Fairness-Aware Scheduling on Single-ISA Heterogeneous
//! Multi-Cores", PACT 2013, for `fair-time` (equal-time scheduling) and `fair-progress`
//! (equal-progress scheduling, the "fairness-aware scheduler" of Markovic's thesis).
//!
//! - `pie`: the estimated ratio of a thread's speeds on large and small cores
//!   ([`pie_model`](super::pie_model)). Weighted speedup is greatest if the threads with the
//!   highest ratios have the large cores. It observes what PIE's own hardware counts, which the
//!   described `acmp` machines do and no live one does. Pitfall: the gain is mostly overestimated
//!   from a small core and underestimated from a large one, so threads with about equal ratios can
//!   change places each quantum; `margin` prevents that.
//! - `mlp-ratio`: the ratio of memory-level parallelism on a large core to that on a small core,
//!   from the same counts. Pitfall: it shows how misses overlap, not how much they matter, so
//!   threads with few but overlapping misses go first.
//! - `mem-dominance`: the lowest share of time stalled behind memory. Pitfall, and the point of
//!   PIE: a large core overlaps misses, so memory-bound threads can gain more from it than others.
//!   Shares are also higher on a large core, which has less else to wait for, so equal threads can
//!   change places each quantum.
//! - `fair-time`: the smallest share of a thread's time on large cores, so that threads that always
//!   run come to have equal shares. Equal time is not equal progress: a thread that gains little
//!   from a large core loses less by waiting for it.
//! - `fair-progress`: the largest slowdown against a large core all the time, S = (T_big + T_small)
//!   / (T_big + T_small/R), with T the time on either kind of core and R the speed on a large one
//!   over that on a small one. R is PIE's last estimate (`ratio=pie`), or the ratio of a thread's
//!   speeds in its last quanta on either kind of core (`ratio=measured`), which needs only
//!   instructions.

use super::logical_core_map::ActiveThread;
use super::pie_model::{PIE_SIGNALS, PieCounts, PieEstimates, PieModel};
use super::scores::{BestScoreRule, MARGIN, Score, Ties, margin};
use super::swapper::{SOFTWARE_FORM, Swapper, form};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

#[doc(alias = "performance impact estimation")]
pub(crate) const PIE: PolicyInfo = PolicyInfo {
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
    open: open_pie,
};

pub(crate) const MLP_RATIO: PolicyInfo = PolicyInfo {
    name: "mlp-ratio",
    source: "Van Craeynest et al., ISCA 2012, section 2",
    summary: "gives the large core to the thread whose misses overlap most more there",
    open: open_mlp_ratio,
    ..PIE
};

fn open_pie(
    topology: &Topology,
    offers: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    open_estimated(PIE.name, PieScore::speedup, topology, offers, options)
}

fn open_mlp_ratio(
    topology: &Topology,
    offers: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    open_estimated(
        MLP_RATIO.name,
        PieScore::mlp_ratio,
        topology,
        offers,
        options,
    )
}

fn open_estimated(
    name: &'static str,
    score: fn(PieEstimates) -> PieScore,
    topology: &Topology,
    offers: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let (margin, form) = (margin(options)?, form(options)?);
    let model = PieModel::from_topology(topology, offers, name)?;
    let score = score(PieEstimates::new(model));
    Swapper::new(BestScoreRule::new(score, margin, Ties::RoundRobin), form).open(topology, name)
}

/// Score by one of PIE's estimates.
#[derive(Debug)]
struct PieScore {
    estimates: PieEstimates,
    /// Computes the estimate from a quantum's counts, which are from a large core if the last
    /// argument is true.
    estimate: fn(&PieModel, &PieCounts, bool) -> Option<f64>,
    why: &'static str,
}

impl PieScore {
    fn speedup(estimates: PieEstimates) -> Self {
        Self {
            estimates,
            estimate: PieModel::ratio,
            why: "its estimated gain from a large core is the highest",
        }
    }

    fn mlp_ratio(estimates: PieEstimates) -> Self {
        Self {
            estimates,
            estimate: |model, counts, _| model.mlp_ratio(counts),
            why: "its misses overlap most more on a large core",
        }
    }
}

impl Score for PieScore {
    fn reason(&self) -> &'static str {
        self.why
    }

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        self.estimates.add_counts(ran, on_large);
    }

    fn end_quantum(&mut self) {
        self.estimates.end_quantum(self.estimate);
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.estimates.forget(is_gone);
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        self.estimates.last_estimate(thread)
    }
}

pub(crate) const MEM_DOMINANCE: PolicyInfo = PolicyInfo {
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
    open: open_mem_dominance,
};

fn open_mem_dominance(
    topology: &Topology,
    _: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let margin = margin(options)?;
    let rule = BestScoreRule::new(MemDominance::default(), margin, Ties::RoundRobin);
    Swapper::new(rule, form(options)?).open(topology, MEM_DOMINANCE.name)
}

#[derive(Debug, Default)]
struct MemDominance {
    /// Since the quantum began: time stalled and time on a CPU, ns.
    now: BTreeMap<ThreadId, (f64, f64)>,
    /// Share of the last quantum.
    share: BTreeMap<ThreadId, f64>,
}

impl Score for MemDominance {
    fn reason(&self) -> &'static str {
        "it waits for memory least"
    }

    fn record_interval(&mut self, ran: &ActiveThread<'_>, _: bool) {
        let time_ns = ran.sample.cpu_time_ns();
        if let Some(share) = ran.sample.get(Signal::MemoryStall) {
            // Weighted by time, so that a short interval does not count as much as a long one.
            let now = self.now.entry(ran.thread).or_default();
            now.0 += share * time_ns;
            now.1 += time_ns;
        }
    }

    fn end_quantum(&mut self) {
        for (thread, (stalled_ns, time_ns)) in std::mem::take(&mut self.now) {
            if time_ns > 0.0 {
                self.share.insert(thread, stalled_ns / time_ns);
            }
        }
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.now.retain(|&id, _| !is_gone(id));
        self.share.retain(|&id, _| !is_gone(id));
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        self.share.get(&thread).map(|share| -share)
    }
}

#[doc(alias = "equal-time scheduling")]
pub(crate) const FAIR_TIME: PolicyInfo = PolicyInfo {
    name: "fair-time",
    family: "asymmetry",
    source: "Van Craeynest et al., PACT 2013",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "evens out the time that threads have on large cores",
    options: &[
        SOFTWARE_FORM,
        OptionInfo {
            name: "order",
            default: "round-robin",
            meaning: "of equals: round-robin or random",
        },
    ],
    open: open_fair_time,
};

fn open_fair_time(
    topology: &Topology,
    _: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let words = [("round-robin", Ties::RoundRobin), ("random", Ties::Random)];
    let order = options.one_of("order", &words, "round-robin or random")?;
    let rule = BestScoreRule::new(FairTime::default(), 0.0, order);
    Swapper::new(rule, form(options)?).open(topology, FAIR_TIME.name)
}

#[derive(Debug, Default)]
struct FairTime(BTreeMap<ThreadId, CoreKindTimes>);

impl Score for FairTime {
    fn reason(&self) -> &'static str {
        "it has had the smallest share of its time on large cores"
    }

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        self.0.entry(ran.thread).or_default().add(ran, on_large);
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.0.retain(|&id, _| !is_gone(id));
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        let share = self.0.get(&thread)?.large_share()?;
        Some(-share)
    }
}

#[doc(alias = "fairness-aware scheduler")]
#[doc(alias = "equal-progress scheduling")]
pub(crate) const FAIR_PROGRESS: PolicyInfo = PolicyInfo {
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
    open: open_fair_progress,
};

fn open_fair_progress(
    topology: &Topology,
    offers: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let words = [("pie", true), ("measured", false)];
    let is_estimated = options.one_of("ratio", &words, "pie or measured")?;
    let (margin, form) = (margin(options)?, form(options)?);
    let name = FAIR_PROGRESS.name;
    let mut source = SpeedupSource::Measured;
    if is_estimated {
        let model = PieModel::from_topology(topology, offers, name)?;
        source = SpeedupSource::Pie(PieEstimates::new(model));
    }
    let score = FairProgress::new(source, topology);
    Swapper::new(BestScoreRule::new(score, margin, Ties::RoundRobin), form).open(topology, name)
}

/// Source of R, the speedup of a thread by a large core.
#[derive(Debug)]
enum SpeedupSource {
    Pie(PieEstimates),
    Measured,
}

#[derive(Debug)]
struct FairProgress {
    source: SpeedupSource,
    /// R of threads without an estimate by PIE: the ratio of the cores' capacities.
    usual: f64,
    threads: BTreeMap<ThreadId, (CoreKindTimes, CoreKindRates)>,
}

impl FairProgress {
    fn new(source: SpeedupSource, topology: &Topology) -> Self {
        let types = topology.core_types().iter();
        let mut capacities: Vec<u32> = types.map(|t| t.capacity).collect();
        capacities.sort_unstable_by(|a, b| b.cmp(a));
        let next = capacities.get(1).copied().unwrap_or(capacities[0]);
        Self {
            source,
            usual: f64::from(capacities[0]) / f64::from(next.max(1)),
            threads: BTreeMap::new(),
        }
    }
}

impl Score for FairProgress {
    fn reason(&self) -> &'static str {
        "small cores have slowed it down most"
    }

    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let (times, rates) = self.threads.entry(ran.thread).or_default();
        times.add(ran, on_large);
        rates.add(ran, on_large);
        if let SpeedupSource::Pie(estimates) = &mut self.source {
            estimates.add_counts(ran, on_large);
        }
    }

    fn end_quantum(&mut self) {
        for (_, rates) in self.threads.values_mut() {
            rates.end_quantum();
        }
        if let SpeedupSource::Pie(estimates) = &mut self.source {
            estimates.end_quantum(PieModel::ratio);
        }
    }

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        if let SpeedupSource::Pie(estimates) = &mut self.source {
            estimates.forget(is_gone);
        }
        self.threads.retain(|&id, _| !is_gone(id));
    }

    fn thread_score(&self, thread: ThreadId) -> Option<f64> {
        let (times, rates) = self.threads.get(&thread)?;
        times.slowdown(match &self.source {
            SpeedupSource::Pie(estimates) => estimates.last_estimate(thread).unwrap_or(self.usual),
            // A ratio that has to be measured is not guessed: a thread that has never had a large
            // core goes first. A guess below the ratio of the others would keep it away from large
            // cores for good.
            SpeedupSource::Measured => rates.ratio().unwrap_or(f64::INFINITY),
        })
    }
}

/// Time that a thread has run on either kind of core, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CoreKindTimes {
    large_ns: f64,
    small_ns: f64,
}

impl CoreKindTimes {
    fn add(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let kind = if on_large {
            &mut self.large_ns
        } else {
            &mut self.small_ns
        };
        *kind += ran.sample.cpu_time_ns();
    }

    /// Share of a thread's time on large cores; `None` before it has run.
    fn large_share(self) -> Option<f64> {
        let both = self.large_ns + self.small_ns;
        (both > 0.0).then(|| self.large_ns / both)
    }

    /// Slowdown against a large core all the time, for a speed ratio R of large to small cores.
    fn slowdown(self, ratio: f64) -> Option<f64> {
        let both = self.large_ns + self.small_ns;
        (both > 0.0).then(|| both / (self.large_ns + self.small_ns / ratio))
    }
}

/// Progress and time on one kind of core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CoreKindRate {
    progress: f64,
    time_ns: f64,
}

/// Speed of a thread in its last quantum on either kind of core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CoreKindRates {
    /// On small and large cores, since the quantum began.
    now: [CoreKindRate; 2],
    /// On small and large cores, in the last quantum there.
    last: [CoreKindRate; 2],
}

impl CoreKindRates {
    fn add(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let now = &mut self.now[usize::from(on_large)];
        now.progress += ran.progress;
        now.time_ns += ran.sample.cpu_time_ns();
    }

    fn end_quantum(&mut self) {
        for (last, now) in self.last.iter_mut().zip(&mut self.now) {
            if now.time_ns > 0.0 {
                *last = *now;
            }
            *now = CoreKindRate::default();
        }
    }

    /// Speed on a large core over that on a small one; `None` before the thread has run on both.
    fn ratio(self) -> Option<f64> {
        let [small, large] = self.last.map(|rate| rate.progress / rate.time_ns);
        let ratio = large / small;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }
}

#[cfg(test)]
mod tests;
