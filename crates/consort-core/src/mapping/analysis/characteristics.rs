//! Characteristics of a program by itself: the source's Table III.

use serde::Serialize;

/// Counts of a program alone. Each item is absent where nothing counts it.
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

/// Characteristics that follow from these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AloneCharacteristics {
    /// Data sharing: share of the L2 misses that siblings under one L2 save over siblings under
    /// several, where the one is no larger; below 0 where its smaller size costs more.
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
    /// Prefetcher excess: lines that they bring in addition, by those that come without them.
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
            prefetch_effectiveness: effectiveness(alone),
            prefetch_excess: alone
                .lines_in
                .and_then(|(with, without)| Some(ratio(with, without)? - 1.0)),
            prefetch_fraction: alone.prefetch_fraction,
        }
    }
}

fn effectiveness(alone: &AloneCounts) -> Option<f64> {
    Some(1.0 - ratio(alone.l2_misses?, alone.l2_misses_unprefetched?)?)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

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
