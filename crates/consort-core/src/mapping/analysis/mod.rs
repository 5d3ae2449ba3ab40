//! Analysis of resources that matter, from the use of the hardware by programs under each mapping.
//!
//! Source: Wang et al., "Performance Analysis of Thread Mappings with a Holistic View of the
//! Hardware Resources" (ISPASS 2012), sections IV to VI.
//!
//! Fill a [`MappingTable`] with one [`MappingRow`] per program, co-runner and mapping; then call
//! [`key_resources`], [`importance()`], [`memory_correlation`], and [`attribute`] for any two rows.
//! [`AloneCharacteristics`] come from runs alone. All amounts are per run of the program, so that
//! mappings under which a program ran more often stay comparable. Quantities that are not counted
//! are absent, never 0, and questions that need them are not answered.

mod attribution;
mod key;
mod l2mp;

pub use attribution::{Attribution, Importance, attribute, importance};
pub use key::{KeyResource, ResourceFinding, Thresholds, key_resources};
pub use l2mp::{MemoryPath, memory_correlation};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use strum::VariantArray;

/// Hardware use of one program under one mapping, per run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Time of a run, s: the source's `Exec_Time`.
    pub time_s: f64,
    /// Cycles of its threads on CPUs, summed: `Exec_Cycles`. If cycles are not counted, CPU time in
    /// ns may replace them as long as the frequency is the same under all mappings.
    pub cycles: Option<f64>,
    /// Share of the cores' time that its threads were on them, 0 to 1: `Utilisation`.
    pub utilisation: Option<f64>,
    /// Counts of resources.
    pub amounts: BTreeMap<SharedResource, Amount>,
    /// Cost of the L2, its prefetchers and the memory path as one.
    pub memory: Option<MemoryPath>,
}

/// One program under one mapping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MappingRow {
    /// The mapping.
    pub mapping: String,
    /// The program.
    pub program: String,
    /// The other program on the machine.
    pub co_runner: String,
    /// Hardware use.
    pub usage: Usage,
}

/// Programs under mappings.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MappingTable {
    /// One row per program, co-runner and mapping.
    pub rows: Vec<MappingRow>,
}

/// A program with its co-runner.
pub type CoRunnerPair = (String, String);

impl MappingTable {
    /// The rows of each program and co-runner, in order of names.
    pub fn pairs(&self) -> BTreeMap<CoRunnerPair, Vec<&MappingRow>> {
        let mut pairs: BTreeMap<CoRunnerPair, Vec<&MappingRow>> = BTreeMap::new();
        for row in &self.rows {
            let pair = (row.program.clone(), row.co_runner.clone());
            pairs.entry(pair).or_default().push(row);
        }
        pairs
    }
}

/// Relative range below which values differ by the rounding of sums alone.
const ROUNDING: f64 = 1e-12;

/// Excess of the largest value over the smallest, relative to the smallest; 0 if all are 0 or differ
/// by rounding.
fn relative_range(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (low, high) = (
        values.clone().fold(f64::INFINITY, f64::min),
        values.fold(0.0, f64::max),
    );
    let range = if high <= 0.0 { 0.0 } else { high / low - 1.0 };
    if range < ROUNDING { 0.0 } else { range }
}

/// A part of the hardware whose sharing a mapping decides.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
pub enum SharedResource {
    /// The L1 data cache; used: misses.
    L1d,
    /// The L1 instruction cache; used: misses.
    L1i,
    /// The cache that domains share, the source's L2; used: demand misses.
    L2,
    /// The prefetchers of that cache; used: lines that they brought.
    Prefetcher,
    /// The path to memory; used: transactions of all kinds.
    MemoryPath,
    /// The branch predictor; used: mispredicted branches.
    BranchPredictor,
    /// The data TLB; used: page walks.
    Tlb,
    /// The unit that lets loads pass stores; used: loads that were replayed.
    Disambiguation,
    /// The cores; used: share of their time.
    Cores,
}

impl SharedResource {
    /// All resources, nearest to the core first.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1d => "l1d",
            Self::L1i => "l1i",
            Self::L2 => "l2",
            Self::Prefetcher => "prefetcher",
            Self::MemoryPath => "memory-path",
            Self::BranchPredictor => "branch-predictor",
            Self::Tlb => "tlb",
            Self::Disambiguation => "disambiguation",
            Self::Cores => "cores",
        }
    }

    /// Returns true if more use is better. For resources that are counted per run less is better.
    pub fn more_is_better(self) -> bool {
        self == Self::Cores
    }

    /// Name in the source's Table V, where the L2, its prefetchers and the memory path are one
    /// resource, LM.
    pub fn table_name(self) -> &'static str {
        match self {
            Self::L2 | Self::Prefetcher | Self::MemoryPath => "lm",
            other => other.name(),
        }
    }

    /// Unit in which its use is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Self::L1d | Self::L1i | Self::L2 => "misses",
            Self::Prefetcher => "lines",
            Self::MemoryPath => "transactions",
            Self::BranchPredictor => "mispredictions",
            Self::Tlb => "walks",
            Self::Disambiguation => "replays",
            Self::Cores => "share of the cores' time",
        }
    }
}

impl fmt::Display for SharedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Use of a resource by a program, per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Amount {
    /// Amount in the unit of [`SharedResource::unit`].
    pub used: f64,
    /// Cycles that its threads stalled for the resource, if they are counted.
    pub stall_cycles: Option<f64>,
}

/// Counts of a program alone. Items that were not counted are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AloneCounts {
    /// Time of a run, s.
    pub time_s: f64,
    /// Number of its threads.
    pub threads: f64,
    /// Instructions.
    pub instructions: Option<f64>,
    /// Misses of the L2 that were waited for.
    pub l2_misses: Option<f64>,
    /// Misses of the L2 with the threads' share of one cache domain, and with all domains.
    pub l2_misses_together_apart: Option<(f64, f64)>,
    /// Misses of the L2 without prefetchers.
    pub l2_misses_unprefetched: Option<f64>,
    /// Lines read from memory, with and without prefetchers.
    pub lines_in: Option<(f64, f64)>,
    /// Bytes to and from memory.
    pub memory_bytes: Option<f64>,
    /// Share of memory transactions that prefetchers make.
    pub prefetch_fraction: Option<f64>,
    /// Misses of the L1I.
    pub l1i_misses: Option<f64>,
    /// Time blocked in input and output, all threads, s.
    pub io_s: Option<f64>,
    /// Time that threads wait for siblings, spinning or asleep, s.
    pub sibling_s: Option<f64>,
    /// Times that a thread was switched in.
    pub switches: Option<f64>,
}

/// Characteristics that follow from the counts of a program alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AloneCharacteristics {
    /// Data sharing: share of the L2 misses that siblings save under one L2 instead of several, if
    /// the one is no larger; below 0 if its smaller size costs more.
    pub data_sharing: Option<f64>,
    /// Cache demand: L2 misses per 1000 instructions.
    pub l2_mpki: Option<f64>,
    /// Bandwidth demand, MB/s.
    pub bandwidth_mb_s: Option<f64>,
    /// I/O: share of the threads' time, 0 to 1.
    pub io_share: Option<f64>,
    /// Synchronisation: share of the threads' time that they wait for siblings, 0 to 1.
    pub sibling_share: Option<f64>,
    /// Times per second that a thread was switched in.
    pub switches_per_s: Option<f64>,
    /// Instruction footprint: L1I misses per 1000 instructions.
    pub l1i_mpki: Option<f64>,
    /// Prefetcher effectiveness: share of the L2 misses that prefetchers remove.
    pub prefetch_effectiveness: Option<f64>,
    /// Prefetcher excess: additional lines, over the lines without prefetchers.
    pub prefetch_excess: Option<f64>,
    /// Share of memory transactions that prefetchers make.
    pub prefetch_fraction: Option<f64>,
}

impl From<&AloneCounts> for AloneCharacteristics {
    fn from(alone: &AloneCounts) -> Self {
        let per_kilo = |n: Option<f64>| Some(1000.0 * n? / alone.instructions?);
        let of_time = |s: Option<f64>| ratio(s?, alone.threads * alone.time_s);
        Self {
            data_sharing: alone
                .l2_misses_together_apart
                .and_then(|(together, apart)| Some(1.0 - ratio(together, apart)?)),
            l2_mpki: per_kilo(alone.l2_misses),
            bandwidth_mb_s: alone
                .memory_bytes
                .and_then(|b| ratio(b / 1e6, alone.time_s)),
            io_share: of_time(alone.io_s),
            sibling_share: of_time(alone.sibling_s),
            switches_per_s: alone.switches.and_then(|n| ratio(n, alone.time_s)),
            l1i_mpki: per_kilo(alone.l1i_misses),
            prefetch_effectiveness: alone
                .l2_misses
                .zip(alone.l2_misses_unprefetched)
                .and_then(|(with, without)| Some(1.0 - ratio(with, without)?)),
            prefetch_excess: alone
                .lines_in
                .and_then(|(with, without)| Some(ratio(with, without)? - 1.0)),
            prefetch_fraction: alone.prefetch_fraction,
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_no_variation() {
        let range = |high: f64| relative_range([1.0, high].into_iter());
        assert_eq!(range(1.0 + 4e-15), 0.0);
        assert!((range(1.5) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn rates_follow_from_counts() {
        let alone = AloneCounts {
            time_s: 2.0,
            threads: 4.0,
            instructions: Some(1e6),
            l2_misses: Some(500.0),
            l2_misses_together_apart: Some((300.0, 400.0)),
            l2_misses_unprefetched: Some(2000.0),
            lines_in: Some((2600.0, 2000.0)),
            memory_bytes: Some(8e6),
            io_s: Some(0.8),
            ..AloneCounts::default()
        };
        let found = AloneCharacteristics::from(&alone);
        assert_eq!(
            (found.l2_mpki, found.bandwidth_mb_s),
            (Some(0.5), Some(4.0))
        );
        assert_eq!(
            (found.data_sharing, found.io_share),
            (Some(0.25), Some(0.1))
        );
        assert_eq!(found.prefetch_effectiveness, Some(0.75));
        assert!((found.prefetch_excess.unwrap() - 0.3).abs() < 1e-12);
        assert_eq!((found.l1i_mpki, found.sibling_share), (None, None));
    }
}
