//! The most important resources of each program beside each co-runner: the source's Table V.

use super::{CoRunnerPair, MappingRow, MappingTable, SharedResource, Thresholds, Usage, attribute};
use serde::Serialize;
use std::collections::BTreeMap;

/// Resources that decide between a program's best mapping and the one that is compared with.
#[doc(alias = "most important resource")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Importance {
    /// The mapping under which the program is fastest.
    pub best: String,
    /// Time under the mapping that is compared with, by time under the best.
    pub slower: f64,
    /// The resources that by themselves make it slower by the threshold, by their names in the
    /// source's Table V, the largest part first; none where none does.
    pub resources: Vec<&'static str>,
    /// The logarithms of the resources' parts, those of the cores included.
    pub parts: BTreeMap<SharedResource, f64>,
}

impl Importance {
    /// Logarithm of the part that no resource explains.
    pub fn unexplained_part(&self) -> f64 {
        libm::log(self.slower) - self.parts.values().sum::<f64>()
    }
}

/// Finds, for each program and co-runner, the resources that the change from its best mapping to
/// `base` is attributed to most, with L2, prefetchers and memory path as one; pairs without cycles
/// or utilisation, or without `base` or another mapping, are left out.
pub fn importance(
    table: &MappingTable,
    base: &str,
    thresholds: &Thresholds,
) -> BTreeMap<CoRunnerPair, Importance> {
    let pairs = table.pairs().into_iter();
    pairs
        .filter_map(|(pair, rows)| Some((pair, pair_importance(&rows, base, thresholds)?)))
        .collect()
}

fn pair_importance(
    rows: &[&MappingRow],
    base: &str,
    thresholds: &Thresholds,
) -> Option<Importance> {
    let base = rows.iter().find(|row| row.mapping == base)?;
    let time = |row: &&&MappingRow| row.usage.time_s;
    let best = rows.iter().min_by(|a, b| time(a).total_cmp(&time(b)))?;
    if rows.len() < 2 {
        return None;
    }
    let parts = parts(&best.usage, &base.usage)?;
    Some(Importance {
        best: best.mapping.clone(),
        slower: base.usage.time_s / best.usage.time_s,
        resources: largest_resources(&parts, libm::log(1.0 + thresholds.moves)),
        parts,
    })
}

/// Names of the resources with a part of at least `least`, the largest first.
fn largest_resources(parts: &BTreeMap<SharedResource, f64>, least: f64) -> Vec<&'static str> {
    let mut sums: BTreeMap<&'static str, f64> = BTreeMap::new();
    for (resource, part) in parts {
        *sums.entry(resource.table_name()).or_default() += part;
    }
    let mut named: Vec<(&'static str, f64)> = sums
        .into_iter()
        .filter(|(_, part)| *part >= least)
        .collect();
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    named.into_iter().map(|(name, _)| name).collect()
}

fn parts(best: &Usage, base: &Usage) -> Option<BTreeMap<SharedResource, f64>> {
    let attribution = attribute(best, base)?;
    let mut parts = attribution.resources;
    parts.insert(SharedResource::Cores, attribution.utilisation);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::Amount;
    use super::*;

    /// Stall cycles of L2, memory path and branch predictor.
    fn row(mapping: &str, time_s: f64, cycles: f64, stalls: [f64; 3]) -> MappingRow {
        let resources = [
            SharedResource::L2,
            SharedResource::MemoryPath,
            SharedResource::BranchPredictor,
        ];
        let amount = |(resource, stall)| {
            let amount = Amount {
                used: 1.0,
                stall_cycles: Some(stall),
            };
            (resource, amount)
        };
        MappingRow {
            mapping: mapping.to_owned(),
            program: "a".to_owned(),
            co_runner: "b".to_owned(),
            usage: Usage {
                time_s,
                cycles: Some(cycles),
                utilisation: Some(cycles / (4.0 * time_s)),
                amounts: resources.into_iter().zip(stalls).map(amount).collect(),
                memory: None,
            },
        }
    }

    fn only(rows: Vec<MappingRow>) -> Importance {
        let all = importance(&MappingTable { rows }, "os", &Thresholds::default());
        all.into_values().next().unwrap()
    }

    /// By hand: of four cycles more, three are L2's and one the branch predictor's.
    #[test]
    fn several_resources_may_matter_the_largest_part_first() {
        let found = only(vec![
            row("os", 3.0, 12.0, [4.0, 0.0, 2.0]),
            row("iso", 2.0, 8.0, [1.0, 0.0, 1.0]),
            row("spr", 5.0, 12.0, [4.0, 0.0, 2.0]),
        ]);
        assert_eq!((found.best.as_str(), found.slower), ("iso", 1.5));
        assert_eq!(found.resources, ["lm", "branch-predictor"]);
    }

    /// By hand: two cycles by the L2 and two by the memory path outweigh three by the predictor.
    #[test]
    fn cache_and_memory_path_count_as_one() {
        let found = only(vec![
            row("os", 3.0, 15.0, [3.0, 3.0, 4.0]),
            row("iso", 2.0, 8.0, [1.0, 1.0, 1.0]),
        ]);
        assert_eq!(found.resources[0], "lm");
        let [l2, predictor] =
            [SharedResource::L2, SharedResource::BranchPredictor].map(|r| found.parts[&r]);
        assert!(l2 < predictor && 2.0 * l2 > predictor);
    }

    #[test]
    fn the_same_cycles_over_a_longer_time_are_for_want_of_cores() {
        let found = only(vec![
            row("os", 4.0, 8.0, [1.0; 3]),
            row("iso", 2.0, 8.0, [1.0; 3]),
        ]);
        assert_eq!(found.resources, ["cores"]);
        assert!((found.parts[&SharedResource::Cores] - libm::log(2.0)).abs() < 1e-12);
    }

    #[test]
    fn where_os_is_best_or_nearly_nothing_is_important() {
        let found = only(vec![
            row("os", 2.02, 8.08, [1.1, 1.0, 1.0]),
            row("iso", 2.0, 8.0, [1.0; 3]),
            row("spr", 9.0, 9.0, [1.0; 3]),
        ]);
        assert!(found.resources.is_empty() && found.best == "iso");
        let found = only(vec![
            row("os", 2.0, 8.0, [1.0; 3]),
            row("iso", 9.0, 9.0, [1.0; 3]),
        ]);
        assert_eq!((found.best.as_str(), found.resources.len()), ("os", 0));
    }

    #[test]
    fn without_what_is_compared_with_there_is_no_answer() {
        let rows = vec![
            row("int", 2.0, 8.0, [1.0; 3]),
            row("iso", 9.0, 9.0, [1.0; 3]),
        ];
        assert!(importance(&MappingTable { rows }, "os", &Thresholds::default()).is_empty());
    }
}
