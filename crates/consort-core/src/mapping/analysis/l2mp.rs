//! L2MP: the cost of the L2, its prefetchers and the memory path as one resource.
//!
//! L2MP = L2 misses × memory latency, and the latency is outstanding-request cycles/(reads −
//! instruction fetches) (Wang et al., ISPASS 2012).

use super::MappingTable;
use crate::stats::pearson;
use serde::Serialize;
use std::collections::BTreeMap;

/// The counters of L2MP, per run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryPath {
    /// Misses of the L2 that were waited for.
    pub l2_misses: f64,
    /// Cycles that requests were outstanding, summed over requests.
    pub outstanding_cycles: f64,
    /// Lines read from memory, those of instructions included.
    pub reads: f64,
    /// Lines of instructions among the reads.
    pub instruction_fetches: f64,
}

impl MemoryPath {
    /// Mean time of a read of data, cycles; `None` without such reads.
    pub fn latency_cycles(&self) -> Option<f64> {
        let reads = self.reads - self.instruction_fetches;
        (reads > 0.0).then(|| self.outstanding_cycles / reads)
    }

    /// L2MP, cycles.
    #[doc(alias = "L2MP")]
    pub fn l2mp_cycles(&self) -> Option<f64> {
        Some(self.l2_misses * self.latency_cycles()?)
    }
}

/// Correlation of L2MP with executed cycles for each program, over all its mappings and co-runners.
/// Programs with fewer than three rows, or without variation, are left out.
pub fn memory_correlation(table: &MappingTable) -> BTreeMap<String, f64> {
    let mut points: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for row in &table.rows {
        let known = points.entry(&row.program).or_default();
        let l2mp_cycles = row.usage.memory.and_then(|path| path.l2mp_cycles());
        known.extend(l2mp_cycles.zip(row.usage.cycles));
    }
    let correlations = points
        .into_iter()
        .filter(|(_, points)| points.len() >= 3)
        .filter_map(|(program, points)| Some((program.to_owned(), pearson(&points)?)));
    correlations.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_of_data_alone() {
        let path = MemoryPath {
            l2_misses: 40.0,
            outstanding_cycles: 9000.0,
            reads: 100.0,
            instruction_fetches: 10.0,
        };
        assert_eq!(path.latency_cycles(), Some(100.0));
        assert_eq!(path.l2mp_cycles(), Some(4000.0));
        let none = MemoryPath {
            reads: 10.0,
            ..path
        };
        assert_eq!(none.l2mp_cycles(), None);
    }
}
