//! A partition of the PUs, from the neighbours that each of them claims.
//!
//! Each PU names the PUs it shares something with. A PU belongs to the group of
//! the lowest PU it names; that is a partition whatever the claims are, and the
//! right one where the claims agree.

use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;

/// Each PU's group, and the PUs with a claim that does not hold.
pub(crate) struct Partition {
    /// Number of each PU's group, counted from 0 in the order of the groups' lowest PUs.
    pub(crate) group_of: BTreeMap<PuId, u32>,
    /// PUs whose claim differs from their group.
    pub(crate) torn: PuSet,
}

/// Partitions the PUs that make claims, each with the PUs that it names.
pub(crate) fn partition(claims: &BTreeMap<PuId, PuSet>) -> Partition {
    let online: PuSet = claims.keys().copied().collect();
    let lowest =
        |pu: PuId, claim: &PuSet| claim.intersection(&online).first().unwrap_or(pu).min(pu);
    let keys: BTreeMap<PuId, PuId> = claims.iter().map(|(&pu, c)| (pu, lowest(pu, c))).collect();
    let mut members: BTreeMap<PuId, PuSet> = BTreeMap::new();
    for (&pu, &key) in &keys {
        members.entry(key).or_default().insert(pu);
    }
    let number = |key: PuId| members.range(..key).count() as u32;
    let differs = |(&pu, claim): (&PuId, &PuSet)| {
        let claimed = claim.intersection(&online).union(&PuSet::from(pu));
        (claimed != members[&keys[&pu]]).then_some(pu)
    };
    Partition {
        group_of: keys.iter().map(|(&pu, &key)| (pu, number(key))).collect(),
        torn: claims.iter().filter_map(differs).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claims(lists: &[&str]) -> BTreeMap<PuId, PuSet> {
        let pus = (0..).map(PuId);
        pus.zip(lists.iter().map(|l| l.parse().unwrap())).collect()
    }

    fn groups(p: &Partition) -> Vec<u32> {
        p.group_of.values().copied().collect()
    }

    #[test]
    fn agreeing_claims_are_the_partition() {
        let p = partition(&claims(&["0,2", "1,3", "0,2", "1,3"]));
        assert_eq!(groups(&p), [0, 1, 0, 1]);
        assert!(p.torn.is_empty());
    }

    #[test]
    fn claims_about_offline_pus_do_not_count() {
        let p = partition(&claims(&["0,8", "1,9"]));
        assert_eq!(groups(&p), [0, 1]);
        assert!(p.torn.is_empty());
    }

    #[test]
    fn disagreement_is_told() {
        let p = partition(&claims(&["0-1", "1"]));
        assert_eq!(groups(&p), [0, 1]);
        assert_eq!(p.torn.to_string(), "0");
    }

    proptest! {
        #[test]
        fn the_pus_of_an_agreed_group_are_what_each_claims(
            lists in prop::collection::vec(prop::collection::btree_set(0u32..12, 0..6), 1..10),
        ) {
            let claims: BTreeMap<PuId, PuSet> = (0..).map(PuId)
                .zip(lists.into_iter().map(|l| l.into_iter().map(PuId).collect()))
                .collect();
            let p = partition(&claims);
            prop_assert!(p.group_of.keys().eq(claims.keys()));
            let groups: std::collections::BTreeSet<u32> = p.group_of.values().copied().collect();
            prop_assert!(groups.iter().copied().eq(0..groups.len() as u32));
            for (&pu, claim) in claims.iter().filter(|(pu, _)| !p.torn.contains(**pu)) {
                for other in claim.iter().filter(|o| claims.contains_key(o)) {
                    prop_assert_eq!(p.group_of[&pu], p.group_of[&other]);
                }
            }
        }
    }
}
