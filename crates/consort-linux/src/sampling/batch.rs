//! The records of one round.

use crate::perf::record::PerfRecord;

/// The records of all rings in one round, and the numbers of those that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// Records in order of time.
    pub records: Vec<PerfRecord>,
    /// CPU time that one sample of this batch stands for, ns.
    pub sample_ns: u64,
    /// Number of records that found a ring full, or were not readable.
    pub lost: u64,
    /// Number of samples left out on purpose, to stay within the sampler's budget.
    pub thinned: u64,
}

impl RecordBatch {
    /// Takes a record in: losses are counted, records that tell nothing of a thread are dropped,
    /// all others are kept.
    pub(crate) fn push(&mut self, record: PerfRecord) {
        match record {
            PerfRecord::Lost { count } => self.lost += count,
            PerfRecord::Throttle { .. } | PerfRecord::Other { .. } => {}
            kept => self.records.push(kept),
        }
    }

    /// Puts the records of all rings into one order.
    pub(crate) fn sort(&mut self) {
        self.records.sort_by_key(|r| r.time_ns().unwrap_or(0));
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        let is_sample = |r: &&PerfRecord| matches!(r, PerfRecord::Sample { .. });
        self.records.iter().filter(is_sample).count()
    }
}
