//! Groups of CPUs from verdicts on pairs.

use super::evidence::{PairVerdict, SharingAnswer, SharingVerdict};
use crate::ids::PuId;
use crate::pu_set::PuSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// CPUs that share a part, or one CPU that shares it with no other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingGroup {
    /// Its CPUs.
    pub pus: PuSet,
    /// Least confidence of the verdicts behind it; `None` for the only CPU of a machine.
    pub confidence: Option<f64>,
}

/// Groups of one kind, and the CPUs without a decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingLevel {
    /// Decided groups, by their lowest CPU.
    pub groups: Vec<SharingGroup>,
    /// CPUs in no decided group.
    pub undecided: PuSet,
}

/// Summary of the verdicts on the pairs within a group, or between two.
#[derive(Clone, Copy, Debug, Default)]
struct VerdictSummary {
    /// Least confidence of "shared" verdicts.
    shared: Option<f64>,
    /// Greatest confidence of "apart" verdicts.
    apart: Option<f64>,
}

/// Groups the CPUs by one kind of verdict.
///
/// Sharing is transitive: if a shares with b and b with c, a shares with c. A group is decided if
/// no verdict inside says apart, and for every other group with which it was compared one does. A
/// single CPU must also have been compared with all groups.
pub(super) fn level(
    pus: &PuSet,
    pairs: &[PairVerdict],
    verdict: impl Fn(&PairVerdict) -> &SharingVerdict,
) -> SharingLevel {
    let group_of = join(pus, pairs, &verdict);
    let summaries = summaries(&group_of, pairs, &verdict);
    let mut members: BTreeMap<PuId, PuSet> = BTreeMap::new();
    for (&pu, &first) in &group_of {
        members.entry(first).or_default().insert(pu);
    }
    let all = members.len();
    let mut groups = Vec::new();
    let mut undecided = PuSet::new();
    for (first, pus) in members {
        let confidence = confidence(first, &pus, all, &summaries);
        match confidence {
            Some(confidence) => groups.push(SharingGroup { pus, confidence }),
            None => undecided = undecided.union(&pus),
        }
    }
    SharingLevel { groups, undecided }
}

/// The lowest CPU of each CPU's group.
fn join(
    pus: &PuSet,
    pairs: &[PairVerdict],
    verdict: &impl Fn(&PairVerdict) -> &SharingVerdict,
) -> BTreeMap<PuId, PuId> {
    let mut first_of: BTreeMap<PuId, PuId> = pus.iter().map(|pu| (pu, pu)).collect();
    let shared = |pair: &&PairVerdict| verdict(pair).sharing == SharingAnswer::Shared;
    for pair in pairs.iter().filter(shared) {
        let (a, b) = (first_of[&pair.a], first_of[&pair.b]);
        let (low, high) = (a.min(b), a.max(b));
        let members = first_of.values_mut().filter(|first| **first == high);
        members.for_each(|first| *first = low);
    }
    first_of
}

/// The verdicts by pairs of groups, each group by its lowest CPU.
fn summaries(
    group_of: &BTreeMap<PuId, PuId>,
    pairs: &[PairVerdict],
    verdict: &impl Fn(&PairVerdict) -> &SharingVerdict,
) -> BTreeMap<(PuId, PuId), VerdictSummary> {
    let mut summaries: BTreeMap<(PuId, PuId), VerdictSummary> = BTreeMap::new();
    for pair in pairs {
        let (a, b) = (group_of[&pair.a], group_of[&pair.b]);
        let summary = summaries.entry((a.min(b), a.max(b))).or_default();
        let SharingVerdict {
            sharing,
            confidence,
            ..
        } = verdict(pair);
        let confidence = confidence.unwrap_or(0.0);
        match sharing {
            SharingAnswer::Shared => {
                summary.shared = Some(summary.shared.map_or(confidence, |c| c.min(confidence)));
            }
            SharingAnswer::Apart => {
                summary.apart = Some(summary.apart.map_or(confidence, |c| c.max(confidence)));
            }
            SharingAnswer::Unclear => {}
        }
    }
    summaries
}

/// Least confidence behind a group; `None` if the group is undecided.
fn confidence(
    first: PuId,
    pus: &PuSet,
    groups: usize,
    summaries: &BTreeMap<(PuId, PuId), VerdictSummary>,
) -> Option<Option<f64>> {
    let mut least: Option<f64> = None;
    let mut others = 0;
    for (&(a, b), summary) in summaries {
        let said = match (a == first, b == first) {
            (true, true) if summary.apart.is_some() => return None,
            (true, true) => summary.shared?,
            (false, false) => continue,
            _ => {
                others += 1;
                summary.apart?
            }
        };
        least = Some(least.map_or(said, |least| least.min(said)));
    }
    (pus.len() > 1 || others + 1 == groups).then_some(least)
}
