//! Key resources: their use varies across mappings, and the variation changes performance.

use super::{CoRunnerPair, MappingRow, MappingTable, SharedResource, Usage, relative_range};
use serde::Serialize;
use std::collections::BTreeMap;

/// Least differences that count. The source gives no numbers; both are Consort's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Thresholds {
    /// Relative change of the use of a resource, largest over smallest less 1.
    pub varies: f64,
    /// Relative change of a program's time, or of its cycles by one cause.
    pub moves: f64,
}

impl Default for Thresholds {
    /// 5 percent each, more than runs of one mapping differ.
    fn default() -> Self {
        Self {
            varies: 0.05,
            moves: 0.05,
        }
    }
}

/// Finding about a resource, with the program and co-runner for which it shows most.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "approach")]
pub enum ResourceFinding {
    /// Finding by stall cycles, or, for the cores, by the utilisation, on which time depends
    /// directly.
    Direct {
        /// Relative range of its use across mappings.
        varies: f64,
        /// Range of its stall cycles, relative to the fewest cycles under any mapping; for the
        /// cores the relative range of their utilisation.
        moves: f64,
        /// Program and co-runner of that range.
        pair: CoRunnerPair,
    },
    /// Finding by pairs of mappings in which the program takes fewer cycles under one, the use of
    /// this resource improved and that of no other. Resources whose use became worse count in
    /// favour of this one. L2, prefetchers and memory path are one resource to memory: they do not
    /// exclude each other, and their stall cycles together must have fallen.
    Indirect {
        /// Largest relative range of its use across mappings.
        varies: f64,
        /// Pairs of mappings in which its use improved under the faster one.
        improved: usize,
        /// Number of these pairs in which the use of no other resource improved.
        alone: usize,
    },
    /// Its use was not counted.
    NotCounted,
}

/// One resource.
#[doc(alias = "key hardware resources")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyResource {
    /// The resource.
    pub resource: SharedResource,
    /// True if the resource matters; `None` if unknown.
    pub key: Option<bool>,
    /// Grounds.
    #[serde(flatten)]
    pub finding: ResourceFinding,
}

/// Judges every resource: directly if its stall cycles are counted, else indirectly. A resource
/// that does not matter by the direct approach may improve in a pair of the indirect one. A
/// resource has improved only if its stall cycles, if they are counted, have fallen as well.
///
/// Source: Wang et al., ISPASS 2012, section III.
pub fn key_resources(table: &MappingTable, thresholds: &Thresholds) -> Vec<KeyResource> {
    let pairs = table.pairs();
    let direct: BTreeMap<SharedResource, KeyResource> = SharedResource::ALL
        .into_iter()
        .filter_map(|r| Some((r, judge_directly(&pairs, r, thresholds)?)))
        .collect();
    let harmless = |r: SharedResource| direct.get(&r).is_some_and(|found| found.key == Some(false));
    let judged = |r: SharedResource| match direct.get(&r) {
        Some(found) => found.clone(),
        None => judge_indirectly(&pairs, r, thresholds, harmless),
    };
    SharedResource::ALL.into_iter().map(judged).collect()
}

type RowsByPair<'a> = BTreeMap<CoRunnerPair, Vec<&'a MappingRow>>;

fn judge_directly(
    pairs: &RowsByPair<'_>,
    resource: SharedResource,
    thresholds: &Thresholds,
) -> Option<KeyResource> {
    let seen = pairs.iter().filter_map(|(pair, rows)| {
        let (varies, moves) = ranges(rows, resource)?;
        Some((varies, moves, pair))
    });
    let seen: Vec<(f64, f64, &CoRunnerPair)> = seen.collect();
    let counts =
        |s: &&(f64, f64, &CoRunnerPair)| s.0 >= thresholds.varies && s.1 >= thresholds.moves;
    let key = seen.iter().any(|s| counts(&s));
    let most = |a: &&(f64, f64, &CoRunnerPair), b: &&(f64, f64, &CoRunnerPair)| {
        counts(a).cmp(&counts(b)).then(a.1.total_cmp(&b.1))
    };
    let (varies, moves, pair) = seen.iter().max_by(most)?;
    Some(KeyResource {
        resource,
        key: Some(key),
        finding: ResourceFinding::Direct {
            varies: *varies,
            moves: *moves,
            pair: (*pair).clone(),
        },
    })
}

/// Relative range of the use of a resource, and range of its stall cycles relative to all cycles.
fn ranges(rows: &[&MappingRow], resource: SharedResource) -> Option<(f64, f64)> {
    let used: Option<Vec<f64>> = rows
        .iter()
        .map(|row| used_amount(&row.usage, resource))
        .collect();
    let varies = relative_range(used?.into_iter());
    if resource == SharedResource::Cores {
        return Some((varies, varies));
    }
    let stall = |row: &&MappingRow| row.usage.amounts.get(&resource)?.stall_cycles;
    let stalls: Vec<f64> = rows.iter().map(stall).collect::<Option<_>>()?;
    let cycles: Vec<f64> = rows
        .iter()
        .map(|row| row.usage.cycles)
        .collect::<Option<_>>()?;
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let range = stalls.iter().copied().fold(0.0, f64::max) - least(&stalls);
    Some((varies, range / least(&cycles)))
}

fn used_amount(usage: &Usage, resource: SharedResource) -> Option<f64> {
    match resource {
        SharedResource::Cores => usage.utilisation,
        _ => Some(usage.amounts.get(&resource)?.used),
    }
}

fn judge_indirectly(
    pairs: &RowsByPair<'_>,
    resource: SharedResource,
    thresholds: &Thresholds,
    harmless: impl Fn(SharedResource) -> bool,
) -> KeyResource {
    let counted = |row: &&MappingRow| used_amount(&row.usage, resource).is_some();
    let (mut varies, mut twos) = (0.0_f64, Vec::new());
    for rows in pairs.values() {
        let rows: Vec<&MappingRow> = rows.iter().copied().filter(counted).collect();
        let used = rows
            .iter()
            .filter_map(|row| used_amount(&row.usage, resource));
        varies = varies.max(relative_range(used));
        for (i, &a) in rows.iter().enumerate() {
            twos.extend(rows[i + 1..].iter().map(|&b| MappingPair::new(a, b)));
        }
    }
    if twos.is_empty() {
        return KeyResource {
            resource,
            key: None,
            finding: ResourceFinding::NotCounted,
        };
    }
    // A resource that does not matter by its stall cycles may improve without being the reason, and
    // use of the cores changes time, not cycles.
    let others: Vec<SharedResource> = { SharedResource::ALL.into_iter() }
        .filter(|&other| other != SharedResource::Cores && !harmless(other))
        .filter(|other| other.table_name() != resource.table_name())
        .collect();
    let (mut improved, mut alone) = (0, 0);
    for two in &twos {
        if two.slow.costs_more_than(two.fast, thresholds.moves)
            && two.improves(resource, thresholds)
        {
            improved += 1;
            alone += usize::from(!others.iter().any(|&other| two.improves(other, thresholds)));
        }
    }
    KeyResource {
        resource,
        key: Some(alone > 0),
        finding: ResourceFinding::Indirect {
            varies,
            improved,
            alone,
        },
    }
}

#[derive(Clone, Copy)]
struct MappingPair<'a> {
    slow: &'a Usage,
    fast: &'a Usage,
}

impl<'a> MappingPair<'a> {
    fn new(a: &'a MappingRow, b: &'a MappingRow) -> Self {
        let (a, b) = (&a.usage, &b.usage);
        let (slow, fast) = if b.costs_more_than(a, 0.0) {
            (b, a)
        } else {
            (a, b)
        };
        Self { slow, fast }
    }

    /// Returns true if the faster mapping makes better use of a resource.
    fn improves(&self, resource: SharedResource, thresholds: &Thresholds) -> bool {
        let used = |usage| used_amount(usage, resource);
        let Some((before, after)) = used(self.slow).zip(used(self.fast)) else {
            return false;
        };
        let (more, less) = match resource.more_is_better() {
            true => (after, before),
            false => (before, after),
        };
        more > less && more >= less * (1.0 + thresholds.varies) && !self.stalls_more(resource)
    }

    /// Returns true if stall cycles of a resource, or of what is one with it, are counted and have
    /// not fallen.
    fn stalls_more(&self, resource: SharedResource) -> bool {
        let stalls = |usage: &Usage| {
            let amounts = usage.amounts.iter();
            let same = amounts.filter(|(r, _)| r.table_name() == resource.table_name());
            let stalls = same.filter_map(|(_, amount)| amount.stall_cycles);
            stalls.reduce(|sum, one| sum + one)
        };
        let both = stalls(self.slow).zip(stalls(self.fast));
        both.is_some_and(|(before, after)| after >= before)
    }
}

impl Usage {
    /// Returns true if it takes more cycles than another by a share, or more time if cycles are not
    /// counted.
    fn costs_more_than(&self, other: &Self, share: f64) -> bool {
        let times = (self.time_s, other.time_s);
        let (own, less) = self.cycles.zip(other.cycles).unwrap_or(times);
        own > less && own >= less * (1.0 + share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Amount;
    use super::*;

    /// A program with L2 misses that stall it, and prefetched lines whose stalls are not counted.
    fn row(mapping: &str, time_s: f64, l2: (f64, f64), lines: f64) -> MappingRow {
        let amount = |used, stall_cycles| Amount { used, stall_cycles };
        let amounts = [
            (SharedResource::L2, amount(l2.0, Some(l2.1))),
            (SharedResource::Prefetcher, amount(lines, None)),
        ];
        MappingRow {
            mapping: mapping.to_owned(),
            program: "a".to_owned(),
            co_runner: "b".to_owned(),
            usage: Usage {
                time_s,
                cycles: Some(100.0 * time_s),
                utilisation: Some(0.5),
                amounts: BTreeMap::from(amounts),
                memory: None,
            },
        }
    }

    fn found(rows: Vec<MappingRow>, resource: SharedResource) -> KeyResource {
        let all = key_resources(&MappingTable { rows }, &Thresholds::default());
        all.into_iter().find(|k| k.resource == resource).unwrap()
    }

    /// By hand: misses from 10 to 15 are half more; stalls from 20 to 50 are 30 of 100 cycles.
    #[test]
    fn varying_weighty_stalls_make_a_key_resource() {
        let rows = vec![
            row("iso", 1.0, (10.0, 20.0), 5.0),
            row("int", 1.3, (15.0, 50.0), 5.0),
        ];
        let l2 = found(rows, SharedResource::L2);
        let ResourceFinding::Direct { varies, moves, .. } = l2.finding else {
            panic!("stall cycles are counted");
        };
        assert_eq!(l2.key, Some(true));
        assert!((varies - 0.5).abs() < 1e-12 && (moves - 0.3).abs() < 1e-12);
    }

    #[test]
    fn varying_use_without_weight_is_not_key() {
        let rows = vec![
            row("iso", 1.0, (10.0, 1.0), 5.0),
            row("int", 1.0, (20.0, 2.0), 5.0),
        ];
        assert_eq!(found(rows, SharedResource::L2).key, Some(false));
    }

    /// Finding about prefetchers: true if they are key, the pairs in which they improved, and the
    /// pairs in which they alone did.
    fn prefetchers(rows: Vec<MappingRow>) -> (bool, usize, usize) {
        let found = found(rows, SharedResource::Prefetcher);
        let ResourceFinding::Indirect {
            improved, alone, ..
        } = found.finding
        else {
            panic!("no stall cycles are counted");
        };
        (found.key.unwrap(), improved, alone)
    }

    /// By hand: int takes 100 cycles for 130, with five lines for nine. L2 misses fell as well, but
    /// L2 and prefetchers are one resource, whose stalls fell from 50 to 20 cycles.
    #[test]
    fn prefetchers_are_one_with_l2() {
        let rows = vec![
            row("iso", 1.3, (15.0, 50.0), 9.0),
            row("int", 1.0, (10.0, 20.0), 5.0),
        ];
        assert_eq!(prefetchers(rows), (true, 1, 1));
    }

    /// By hand: five lines for nine, but stalls for memory grew from 20 to 50 cycles, so that memory
    /// is not why int takes fewer cycles.
    #[test]
    fn memory_stalls_must_have_fallen() {
        let rows = vec![
            row("iso", 1.3, (10.0, 20.0), 9.0),
            row("int", 1.0, (10.0, 50.0), 5.0),
        ];
        assert_eq!(prefetchers(rows), (false, 0, 0));
    }

    /// By hand: the mapping with fewer cycles brings nine lines where the other brings five.
    #[test]
    fn worse_use_does_not_explain_fewer_cycles() {
        let rows = vec![
            row("iso", 1.3, (15.0, 50.0), 5.0),
            row("int", 1.0, (10.0, 20.0), 9.0),
        ];
        assert_eq!(prefetchers(rows), (false, 0, 0));
    }

    /// By hand: int is faster by 30 percent because it uses the cores more, in as many cycles.
    #[test]
    fn less_time_in_as_many_cycles_is_no_ground() {
        let mut rows = vec![
            row("iso", 1.3, (15.0, 50.0), 9.0),
            row("int", 1.0, (10.0, 20.0), 5.0),
        ];
        rows.iter_mut()
            .for_each(|row| row.usage.cycles = Some(100.0));
        assert_eq!(prefetchers(rows), (false, 0, 0));
    }

    /// Mispredictions fell from twenty to ten as well: no reason if their stalls are too few for one.
    #[test]
    fn resource_that_improves_next_to_another_is_not_key() {
        let with_branches = |stalls: [Option<f64>; 2]| {
            let mut rows = vec![
                row("iso", 1.3, (15.0, 50.0), 9.0),
                row("int", 1.0, (10.0, 20.0), 5.0),
            ];
            for ((row, used), stall_cycles) in rows.iter_mut().zip([20.0, 10.0]).zip(stalls) {
                let amounts = &mut row.usage.amounts;
                let amount = Amount { used, stall_cycles };
                amounts.insert(SharedResource::BranchPredictor, amount);
            }
            prefetchers(rows)
        };
        assert_eq!(with_branches([None; 2]), (false, 1, 0));
        assert_eq!(with_branches([Some(2.0), Some(1.0)]), (true, 1, 1));
    }

    #[test]
    fn uncounted_resource_is_not_judged() {
        let rows = vec![
            row("iso", 1.0, (10.0, 1.0), 5.0),
            row("int", 1.3, (20.0, 2.0), 9.0),
        ];
        let branch = found(rows, SharedResource::BranchPredictor);
        assert_eq!(
            (branch.key, branch.finding),
            (None, ResourceFinding::NotCounted)
        );
    }
}
