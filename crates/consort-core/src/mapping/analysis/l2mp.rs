//! L2MP: the cost of the L2, its prefetchers and the memory path as one resource.
//!
//! L2MP = L2 misses × memory latency, and the latency is outstanding-request cycles/(reads −
//! instruction fetches) (Wang et al., ISPASS 2012).

use super::MappingTable;
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
        .filter_map(|(program, points)| Some((program.to_owned(), correlation(&points)?)));
    correlations.collect()
}

/// Pearson's coefficient; `None` for fewer than three points or if one side does not vary.
pub fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / n, sum.1 + p.1 / n));
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let (xx, yy, xy) = (sum(|a, _| a * a), sum(|_, b| b * b), sum(|a, b| a * b));
    // Values that differ by rounding alone do not vary.
    let varies = |square: f64, mean: f64| square > n * mean * mean * 1e-24;
    (varies(xx, x) && varies(yy, y)).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// By hand: deviations (−1, 0, 1) and (−1, 1, 0), so 1/√(2·2).
    #[test]
    fn correlation_is_pearsons() {
        let r = correlation(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]).unwrap();
        assert!((r - 0.5).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(correlation(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    proptest! {
        #[test]
        fn points_on_a_line_correlate_fully(
            slope in prop_oneof![-9.0f64..-0.1, 0.1f64..9.0],
            xs in prop::collection::btree_set(-50i32..50, 3..9),
        ) {
            let points: Vec<(f64, f64)> = xs.iter().map(|&x| (x.into(), 3.0 + slope * f64::from(x))).collect();
            let r = correlation(&points).unwrap();
            prop_assert!((r - slope.signum()).abs() < 1e-9);
        }
    }
}
