//! Memory transactions by kind.

use consort_sim::contention::InstructionActivity;
use serde::Serialize;

/// Lines between the last level of cache and memory, by why they moved. On a Core 2 the bus
/// carries `reads + prefetches + fetches` as burst reads (`BUS_TRANS_BRD`), `fetches` apart as
/// `BUS_TRANS_IFETCH`, `writebacks` as `BUS_TRANS_WB`, and all of them as `BUS_TRANS_MEM`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Transactions {
    /// Data that a thread asked for and waited for.
    pub reads: f64,
    /// Data that prefetchers brought, of use or in vain.
    pub prefetches: f64,
    /// Code.
    pub fetches: f64,
    /// Written back.
    pub writebacks: f64,
}

impl Transactions {
    /// Adds what others moved.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.prefetches += other.prefetches;
        self.fetches += other.fetches;
        self.writebacks += other.writebacks;
    }

    /// All lines.
    pub fn total(&self) -> f64 {
        self.reads + self.prefetches + self.fetches + self.writebacks
    }

    /// Share of all lines that prefetchers brought, 0 to 1; none where nothing moved.
    pub fn prefetch_fraction(&self) -> Option<f64> {
        let total = self.total();
        (total > 0.0).then(|| self.prefetches / total)
    }
}

impl From<&InstructionActivity> for Transactions {
    fn from(flow: &InstructionActivity) -> Self {
        Self {
            reads: flow.llc_misses,
            prefetches: flow.prefetched_lines,
            fetches: flow.code_lines,
            writebacks: flow.written_lines,
        }
    }
}
