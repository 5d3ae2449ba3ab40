//! Attribution of a program's slowdown between two mappings to cycles, utilisation and resources.
//!
//! Exec_Time = Exec_Cycles/(Cores · Utilisation · Frequency) (Wang et al., ISPASS 2012): with fixed
//! cores and frequency, the logarithm of a ratio of times is that of the ratio of cycles less that
//! of the ratio of utilisations. Stall cycles add up, and their difference over the logarithmic
//! mean of the cycles is their part of the logarithm of the ratio of cycles. The parts sum exactly
//! and do not depend on the direction (Ang, "Decomposition analysis for policymaking in energy",
//! Energy Policy 32, 2004: logarithmic mean Divisia index).

use crate::mapping::analysis::{
    CoRunnerPair, MappingRow, MappingTable, SharedResource, Thresholds, Usage,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A change of time in parts, each a summand of the natural logarithm of the ratio of times.
#[doc(alias = "Exec_Time")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// Logarithm of the ratio of times, positive if the second is slower.
    pub time: f64,
    /// Part of executed cycles.
    pub cycles: f64,
    /// Part of utilisation: waits of the program for CPUs, siblings, input and output.
    pub utilisation: f64,
    /// Parts of `cycles`, by resource with known stall cycles.
    pub resources: BTreeMap<SharedResource, f64>,
    /// Part of `cycles` that no resource's stall cycles explain.
    pub other_cycles: f64,
}

/// Splits the change from one mapping to another; `None` if cycles or utilisation are unknown.
pub fn attribute(from: &Usage, to: &Usage) -> Option<Attribution> {
    let (c, d) = (from.cycles?, to.cycles?);
    let utilisation = -ln_ratio(from.utilisation?, to.utilisation?)?;
    let mean = logarithmic_mean(c, d)?;
    let mut resources = BTreeMap::new();
    for (&resource, amount) in &from.amounts {
        let after = to
            .amounts
            .get(&resource)
            .and_then(|after| after.stall_cycles);
        if let Some((before, after)) = amount.stall_cycles.zip(after) {
            resources.insert(resource, (after - before) / mean);
        }
    }
    let cycles = ln_ratio(c, d)?;
    Some(Attribution {
        time: ln_ratio(from.time_s, to.time_s)?,
        cycles,
        utilisation,
        other_cycles: cycles - resources.values().sum::<f64>(),
        resources,
    })
}

fn ln_ratio(from: f64, to: f64) -> Option<f64> {
    (from > 0.0 && to > 0.0).then(|| libm::log(to / from))
}

/// (b − a)/ln(b/a), or a if both are equal.
fn logarithmic_mean(a: f64, b: f64) -> Option<f64> {
    let ln = ln_ratio(a, b)?;
    Some(if ln.abs() < 1e-12 { a } else { (b - a) / ln })
}

/// Resources that decide between a program's best mapping and a baseline mapping.
#[doc(alias = "most important resource")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Importance {
    /// The mapping under which the program is fastest.
    pub best: String,
    /// Time under the baseline mapping over time under the best.
    pub slower: f64,
    /// Resources that by themselves make the program slower by the threshold, by their names in the
    /// source's Table V, the largest part first; empty if there are none.
    pub resources: Vec<&'static str>,
    /// Logarithms of the resources' parts, including the cores.
    pub parts: BTreeMap<SharedResource, f64>,
}

impl Importance {
    /// Logarithm of the part that no resource explains.
    pub fn unexplained_part(&self) -> f64 {
        libm::log(self.slower) - self.parts.values().sum::<f64>()
    }
}

/// Finds, for each program and co-runner, the resources that contribute most to the change from its
/// best mapping to `base`. L2, prefetchers and memory path count as one. Pairs without cycles or
/// utilisation, or without `base` or another mapping, are left out.
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
    use super::*;
    use crate::mapping::analysis::Amount;
    use proptest::prelude::*;

    fn usage(time_s: f64, cycles: f64, stall: f64) -> Usage {
        let amount = Amount {
            used: 1.0,
            stall_cycles: Some(stall),
        };
        Usage {
            time_s,
            cycles: Some(cycles),
            // Four cores of 1 Hz.
            utilisation: Some(cycles / (4.0 * time_s)),
            amounts: BTreeMap::from([(SharedResource::L2, amount)]),
            memory: None,
        }
    }

    /// By hand: 8 cycles in 4 s on four cores of 1 Hz are a utilisation of 0.5; 12 in 4 s of 0.75.
    /// The time is the same: half as many cycles more, and as much better utilisation.
    #[test]
    fn cycles_and_utilisation_can_cancel() {
        let parts = attribute(&usage(4.0, 8.0, 2.0), &usage(4.0, 12.0, 6.0)).unwrap();
        assert_eq!(parts.time, 0.0);
        assert!((parts.cycles - libm::log(1.5)).abs() < 1e-12);
        assert!((parts.utilisation + libm::log(1.5)).abs() < 1e-12);
        // All of the four cycles more are stalls for the L2.
        assert!((parts.resources[&SharedResource::L2] - parts.cycles).abs() < 1e-12);
        assert!(parts.other_cycles.abs() < 1e-12);
    }

    #[test]
    fn missing_cycles_prevent_attribution() {
        let blind = Usage {
            cycles: None,
            ..usage(4.0, 8.0, 2.0)
        };
        assert_eq!(attribute(&blind, &usage(4.0, 8.0, 2.0)), None);
    }

    proptest! {
        #[test]
        fn parts_sum_and_reverse_with_the_direction(
            t in 0.1f64..10.0, u in 0.1f64..10.0,
            c in 1.0f64..100.0, d in 1.0f64..100.0, s in 0.0f64..1.0, r in 0.0f64..1.0,
        ) {
            let (a, b) = (usage(t, c, s * c), usage(u, d, r * d));
            let (there, back) = (attribute(&a, &b).unwrap(), attribute(&b, &a).unwrap());
            prop_assert!((there.cycles + there.utilisation - there.time).abs() < 1e-9);
            let inside: f64 = there.resources.values().sum::<f64>() + there.other_cycles;
            prop_assert!((inside - there.cycles).abs() < 1e-9);
            prop_assert!((there.resources[&SharedResource::L2] + back.resources[&SharedResource::L2]).abs() < 1e-9);
        }
    }

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
    fn important_resources_are_sorted_by_part() {
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
    fn equal_cycles_in_longer_time_blame_cores() {
        let found = only(vec![
            row("os", 4.0, 8.0, [1.0; 3]),
            row("iso", 2.0, 8.0, [1.0; 3]),
        ]);
        assert_eq!(found.resources, ["cores"]);
        assert!((found.parts[&SharedResource::Cores] - libm::log(2.0)).abs() < 1e-12);
    }

    #[test]
    fn nearly_best_baseline_has_no_important_resource() {
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
    fn missing_baseline_has_no_answer() {
        let rows = vec![
            row("int", 2.0, 8.0, [1.0; 3]),
            row("iso", 9.0, 9.0, [1.0; 3]),
        ];
        assert!(importance(&MappingTable { rows }, "os", &Thresholds::default()).is_empty());
    }
}
