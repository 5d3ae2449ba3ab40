//! Gain of a thread from a large core: performance impact estimation (PIE).
//!
//! Source: Van Craeynest, Jaleel, Eeckhout, Narvaez and Emer, "Scheduling Heterogeneous
//! Multi-Cores through Performance Impact Estimation (PIE)", ISCA 2012, section 4.
//!
//! A thread's cycles per instruction (CPI) on the other kind of core are estimated from its counts
//! on this one:
//!
//! - on the small core, CPI_big = 1/W_big + CPI_mem,small · MLP_small/MLP_big;
//! - on the large core, CPI_small = CPI_base,small + CPI_mem,big · MLP_big/MLP_small;
//!
//! with MLP_big = misses per instruction × reorder buffer and MLP_small = misses per instruction ×
//! distance to the first use. Memory-level parallelism is the mean number of outstanding misses
//! while there is one, so estimates below 1 count as 1. Times are compared, not cycles, because
//! clocks may differ: memory takes the same time at any clock.
//!
//! Pitfall: the model assumes that all but memory runs at full width on the large core, so threads
//! that are limited by branches or long dependences seem to gain more than they do.

use super::groups::ExchangeGroups;
use super::logical_core_map::ActiveThread;
use crate::ids::ThreadId;
use crate::policy::PolicyError;
use crate::sample::Sample;
use crate::signal::{Signal, SignalOffers};
use crate::topology::{Pipeline, Topology};
use std::collections::BTreeMap;

/// Signals that the estimate needs.
pub(super) const PIE_SIGNALS: [Signal; 6] = [
    Signal::Cycles,
    Signal::Instructions,
    Signal::LlcMisses,
    Signal::LlcMissCycles,
    Signal::UseDistances,
    Signal::InOrderCycles,
];

/// Counts of a thread on one kind of core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PieCounts {
    /// Sums in the order of [`PIE_SIGNALS`].
    sums: [f64; 6],
}

impl PieCounts {
    /// Adds a sample, unless the thread did not run or a signal is missing.
    fn add(&mut self, sample: &Sample) {
        let values = PIE_SIGNALS.map(|signal| sample.get(signal));
        let [Some(cycles), Some(instructions), ..] = values else {
            return;
        };
        if cycles <= 0.0 || instructions <= 0.0 || values.iter().any(Option::is_none) {
            return;
        }
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum += value.unwrap_or(0.0);
        }
    }

    fn per_instruction(&self) -> Option<CountsPerInstruction> {
        let [cycles, instructions, rest @ ..] = self.sums;
        let [misses, miss_cycles, use_distance, in_order_cycles] = rest.map(|s| s / instructions);
        (instructions > 0.0).then_some(CountsPerInstruction {
            cycles: cycles / instructions,
            misses,
            miss_cycles,
            use_distance,
            in_order_cycles,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct CountsPerInstruction {
    cycles: f64,
    misses: f64,
    miss_cycles: f64,
    use_distance: f64,
    in_order_cycles: f64,
}

/// The two kinds of cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PieModel {
    width: f64,
    rob_entries: f64,
    large_hz: f64,
    small_hz: f64,
}

impl PieModel {
    /// Reads a machine's cores: large are those with the highest capacity, small those with the
    /// next.
    ///
    /// # Errors
    /// [`PolicyError::Unfit`] if all cores are alike, if a signal is not counted, if pipelines are
    /// not known, or if they are not out of order in large and in order in small cores.
    pub(super) fn from_topology(
        topology: &Topology,
        offers: &SignalOffers,
        policy: &'static str,
    ) -> Result<Self, PolicyError> {
        ExchangeGroups::require(topology, policy)?;
        let missing = offers.missing_signals(&PIE_SIGNALS);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|signal| signal.name()).collect();
            let missing = names.join(", ");
            return Err(PolicyError::Unfit {
                policy,
                why: format!(
                    "estimates by PIE's counters, and this machine does not count {missing}; \
                     use an acmp machine, or 'fair-progress:ratio=measured'"
                ),
            });
        }
        read_pipelines(topology).ok_or_else(|| PolicyError::Unfit {
            policy,
            why: "needs large cores that execute out of order and small ones that execute in \
                  order, with width and reorder buffer told; use an acmp machine"
                .to_owned(),
        })
    }

    /// Speed of a thread on a large core over that on a small one, from its counts on either;
    /// `None` without counts.
    pub(super) fn ratio(&self, counted: &PieCounts, on_large: bool) -> Option<f64> {
        let per = counted.per_instruction()?;
        let (here, other) = if on_large {
            (self.large_hz, self.small_hz)
        } else {
            (self.small_hz, self.large_hz)
        };
        let measured_s = per.cycles / here;
        let memory_s = per.miss_cycles / here;
        let overlap = self.mlp_ratio_of(&per);
        Some(if on_large {
            (per.in_order_cycles / other + memory_s * overlap) / measured_s
        } else {
            measured_s / (1.0 / self.width / other + memory_s / overlap)
        })
    }

    /// MLP_big/MLP_small, the ratio of memory-level parallelism; `None` without counts.
    pub(super) fn mlp_ratio(&self, counted: &PieCounts) -> Option<f64> {
        counted.per_instruction().map(|per| self.mlp_ratio_of(&per))
    }

    fn mlp_ratio_of(&self, per: &CountsPerInstruction) -> f64 {
        let mlp = |reach: f64| (per.misses * reach).max(1.0);
        mlp(self.rob_entries) / mlp(per.use_distance)
    }
}

/// Pipelines of the large and the next smaller cores, if they are as PIE assumes.
fn read_pipelines(topology: &Topology) -> Option<PieModel> {
    let mut types: Vec<_> = topology.core_types().iter().collect();
    types.sort_by_key(|t| std::cmp::Reverse(t.capacity));
    let pipeline = |at: usize| -> Option<Pipeline> { types.get(at)?.pipeline };
    let (large, small) = (pipeline(0)?, pipeline(1)?);
    // Only an out-of-order core has a reorder buffer.
    let rob_entries = large.rob_entries.filter(|_| small.rob_entries.is_none())?;
    Some(PieModel {
        width: large.dispatch_width,
        rob_entries: f64::from(rob_entries),
        large_hz: large.frequency_hz,
        small_hz: small.frequency_hz,
    })
}

/// An estimate per thread, renewed in each quantum in which the thread ran.
#[derive(Debug)]
pub(super) struct PieEstimates {
    model: PieModel,
    /// Counts of each thread since the quantum began; true if they are from a large core.
    now: BTreeMap<ThreadId, (bool, PieCounts)>,
    last: BTreeMap<ThreadId, f64>,
}

impl PieEstimates {
    pub(super) fn new(model: PieModel) -> Self {
        Self {
            model,
            now: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Adds an interval's counts. If a thread has changed its kind of core within the quantum, its
    /// earlier counts are dropped, because an estimate is from one kind.
    pub(super) fn add_counts(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let fresh = (on_large, PieCounts::default());
        let entry = self.now.entry(ran.thread).or_insert(fresh);
        if entry.0 != on_large {
            *entry = fresh;
        }
        entry.1.add(ran.sample);
    }

    /// Renews the estimates at the end of a quantum by `estimate`, which gets the counts, and true
    /// if they are from a large core.
    pub(super) fn end_quantum(
        &mut self,
        estimate: impl Fn(&PieModel, &PieCounts, bool) -> Option<f64>,
    ) {
        for (thread, (on_large, counted)) in std::mem::take(&mut self.now) {
            if let Some(value) = estimate(&self.model, &counted, on_large) {
                self.last.insert(thread, value);
            }
        }
    }

    pub(super) fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.now.retain(|&id, _| !is_gone(id));
        self.last.retain(|&id, _| !is_gone(id));
    }

    pub(super) fn last_estimate(&self, thread: ThreadId) -> Option<f64> {
        self.last.get(&thread).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use crate::sample::Reading;
    use crate::signal::Tier;
    use crate::topology::CoreType;
    use proptest::prelude::*;

    /// The chip of the thesis: 4-wide, 128 entries, clocks alike.
    fn impact() -> PieModel {
        let all = PIE_SIGNALS.map(|s| (s, Tier::Counters)).into_iter();
        PieModel::from_topology(&chip(1, 3, 1), &all.collect(), "pie").unwrap()
    }

    /// Counts of 1000 instructions with cycles, misses, cycles of misses, distance to first use,
    /// and cycles in order per instruction.
    fn counted(of: [f64; 5]) -> PieCounts {
        let mut sample = Sample::default();
        let [cycles, misses, miss_cycles, distance, in_order] = of;
        let per = [cycles, 1.0, misses, miss_cycles, distance, in_order];
        for (signal, value) in PIE_SIGNALS.into_iter().zip(per) {
            sample.set(
                signal,
                Reading::fully_counted(1000.0 * value, Tier::Counters, 1),
            );
        }
        let mut counted = PieCounts::default();
        counted.add(&sample);
        counted
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn mlp_ratio_uses_buffer_and_use_distance() {
        // 1/16 miss per instruction: 128/16 = 8 in the large core's buffer; 32/16 = 2 until the
        // first use; 8/2 = 4.
        near(
            impact().mlp_ratio(&counted([3.0, 0.0625, 1.0, 32.0, 1.0])),
            4.0,
        );
        // A distance of 4 lets 1/4 miss overlap, which is one miss alone: 8/1.
        near(
            impact().mlp_ratio(&counted([3.0, 0.0625, 1.0, 4.0, 1.0])),
            8.0,
        );
    }

    #[test]
    fn large_core_estimate_uses_width_and_overlap() {
        // CPI_big = 1/4 + 2·(1/8) = 0.5, of 3 measured: 6 times as fast.
        near(
            impact().ratio(&counted([3.0, 0.0625, 2.0, 4.0, 1.0]), false),
            6.0,
        );
    }

    #[test]
    fn small_core_estimate_uses_dependences_and_overlap() {
        // CPI_small = 1 + 0.5·8 = 5, of 2 measured: 2.5 times as fast.
        near(
            impact().ratio(&counted([2.0, 0.0625, 0.5, 4.0, 1.0]), true),
            2.5,
        );
    }

    #[test]
    fn clocks_count_but_not_for_memory() {
        let fast = PieModel {
            large_hz: 2e9,
            small_hz: 1e9,
            ..impact()
        };
        // Small: 3 ns, 2 ns of it memory. Large: 1/4 cycle is 0.125 ns, memory 2/8 ns.
        near(
            fast.ratio(&counted([3.0, 0.0625, 2.0, 4.0, 1.0]), false),
            3.0 / 0.375,
        );
        // Large: 2 cycles are 1 ns, 0.5 cycles of misses 0.25 ns. Small: 1 ns and 0.25·8 ns.
        near(
            fast.ratio(&counted([2.0, 0.0625, 0.5, 4.0, 1.0]), true),
            3.0,
        );
    }

    #[test]
    fn thread_that_has_not_run_is_unknown() {
        let idle = counted([0.0; 5]);
        assert_eq!(impact().ratio(&idle, true), None);
        assert_eq!(impact().mlp_ratio(&PieCounts::default()), None);
    }

    #[test]
    fn machines_without_counters_or_pipelines_are_refused() {
        let error =
            PieModel::from_topology(&chip(1, 3, 1), &SignalOffers::default(), "pie").unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy pie estimates by PIE's counters, and this machine does not count cycles, \
             instructions, llc-misses, llc-miss-cycles, use-distances, in-order-cycles; use an \
             acmp machine, or 'fair-progress:ratio=measured'"
        );
        let all = PIE_SIGNALS.map(|s| (s, Tier::Counters)).into_iter();
        let facts = chip(1, 3, 1).facts();
        let untold = |capacity| CoreType {
            capacity,
            ..CoreType::uniform()
        };
        let untold = Topology::new(facts, vec![untold(2), untold(1)]).unwrap();
        let error = PieModel::from_topology(&untold, &all.collect(), "pie").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("policy pie needs large cores that execute out of order"),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn ratios_are_finite_and_above_zero(
            base in 0.2f64..10.0, misses in 0.0f64..0.2, miss_cycles in 0.0f64..50.0,
            distance in 0.5f64..64.0, in_order in 0.25f64..5.0, on_large: bool,
        ) {
            let counted = counted([base + miss_cycles, misses, miss_cycles, distance, in_order]);
            let ratio = impact().ratio(&counted, on_large).unwrap();
            prop_assert!(ratio.is_finite() && ratio > 0.0, "{}", ratio);
        }
    }
}
