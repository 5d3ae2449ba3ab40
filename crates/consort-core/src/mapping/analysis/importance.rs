//! The most important resource of each program beside each co-runner: the source's Table V.

use super::{Pair, Resource, Row, Table, Thresholds, Usage, attribute};
use serde::Serialize;
use std::collections::BTreeMap;

/// What decides between the best and the worst mapping of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Importance {
    /// The mapping under which the program is fastest.
    pub best: String,
    /// The one under which it is slowest.
    pub worst: String,
    /// Time under the worst by time under the best.
    pub slower: f64,
    /// The resource with the largest part of that; none where mappings hardly differ, or where no
    /// resource makes it slower.
    pub resource: Option<Resource>,
    /// The logarithms of the resources' parts, those of the cores included.
    pub parts: BTreeMap<Resource, f64>,
}

impl Importance {
    /// The logarithm of what no resource explains.
    pub fn other(&self) -> f64 {
        libm::log(self.slower) - self.parts.values().sum::<f64>()
    }
}

/// For each program and co-runner, what the attribution of the change from its best to its worst
/// mapping gives most to; pairs without cycles or utilisation, or with one mapping, are left out.
pub fn importance(table: &Table, thresholds: &Thresholds) -> BTreeMap<Pair, Importance> {
    let pairs = table.pairs().into_iter();
    pairs
        .filter_map(|(pair, rows)| Some((pair, of_pair(&rows, thresholds)?)))
        .collect()
}

fn of_pair(rows: &[&Row], thresholds: &Thresholds) -> Option<Importance> {
    let time = |row: &&&Row| row.usage.time_s;
    let best = rows.iter().min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let worst = rows.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
    if rows.len() < 2 {
        return None;
    }
    let parts = parts(&best.usage, &worst.usage)?;
    let slower = worst.usage.time_s / best.usage.time_s;
    let largest = parts.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let largest = largest.filter(|(_, part)| **part > 0.0);
    let differs = slower - 1.0 >= thresholds.moves;
    Some(Importance {
        best: best.mapping.clone(),
        worst: worst.mapping.clone(),
        slower,
        resource: largest.filter(|_| differs).map(|(resource, _)| *resource),
        parts,
    })
}

fn parts(best: &Usage, worst: &Usage) -> Option<BTreeMap<Resource, f64>> {
    let attribution = attribute(best, worst)?;
    let mut parts = attribution.resources;
    parts.insert(Resource::Cores, attribution.utilisation);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::Amount;
    use super::*;

    fn row(mapping: &str, time_s: f64, cycles: f64, l2: f64, branch: f64) -> Row {
        let amount = |stall| Amount {
            used: 1.0,
            stall_cycles: Some(stall),
        };
        let amounts = [
            (Resource::L2, amount(l2)),
            (Resource::BranchPredictor, amount(branch)),
        ];
        Row {
            mapping: mapping.to_owned(),
            program: "a".to_owned(),
            co_runner: "b".to_owned(),
            usage: Usage {
                time_s,
                cycles: Some(cycles),
                utilisation: Some(cycles / (4.0 * time_s)),
                amounts: BTreeMap::from(amounts),
                memory: None,
            },
        }
    }

    fn only(rows: Vec<Row>) -> Importance {
        let all = importance(&Table { rows }, &Thresholds::default());
        all.into_values().next().unwrap()
    }

    #[test]
    fn the_resource_whose_stalls_grow_most_is_the_most_important() {
        let found = only(vec![
            row("iso", 2.0, 8.0, 1.0, 1.0),
            row("int", 3.0, 12.0, 4.0, 2.0),
        ]);
        assert_eq!((found.best.as_str(), found.worst.as_str()), ("iso", "int"));
        assert_eq!((found.slower, found.resource), (1.5, Some(Resource::L2)));
    }

    #[test]
    fn the_same_cycles_over_a_longer_time_are_for_want_of_cores() {
        let found = only(vec![
            row("iso", 2.0, 8.0, 1.0, 1.0),
            row("int", 4.0, 8.0, 1.0, 1.0),
        ]);
        assert_eq!(found.resource, Some(Resource::Cores));
        assert!((found.parts[&Resource::Cores] - libm::log(2.0)).abs() < 1e-12);
    }

    #[test]
    fn mappings_that_hardly_differ_have_no_important_resource() {
        let found = only(vec![
            row("iso", 2.0, 8.0, 1.0, 1.0),
            row("int", 2.02, 8.08, 1.1, 1.0),
        ]);
        assert_eq!(found.resource, None);
    }
}
