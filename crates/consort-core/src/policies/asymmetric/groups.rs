//! Groups of large and small cores that exchange threads only among themselves.

use crate::ids::PuId;
use crate::policy::PolicyError;
use crate::topology::Topology;

/// CPUs of the large and the small cores of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policies) struct GroupPus {
    pub(super) large: Vec<PuId>,
    pub(super) small: Vec<PuId>,
}

impl GroupPus {
    pub(super) fn iter(&self) -> impl Iterator<Item = PuId> + '_ {
        self.large.iter().chain(&self.small).copied()
    }

    fn has_both_kinds(&self) -> bool {
        !self.large.is_empty() && !self.small.is_empty()
    }
}

/// The groups of a machine; none if all cores are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policies) struct ExchangeGroups(Vec<GroupPus>);

impl ExchangeGroups {
    /// Divides a machine into groups. Large cores are those with the highest capacity. If every LLC
    /// domain has both kinds, groups do not span domains, so that exchanges stay within one cache
    /// (Markovic, KUTHS for many cores). Within a domain, each CPU of a large core gets an equal
    /// share of the small CPUs. If there are more large than small CPUs, each small one gets its
    /// share of the large ones.
    pub(in crate::policies) fn from_topology(topology: &Topology) -> Self {
        let llcs = topology.llcs().iter();
        let mut regions: Vec<GroupPus> = llcs
            .map(|llc| collect_region(topology, |pu| llc.pus.contains(pu)))
            .collect();
        if !regions.iter().all(GroupPus::has_both_kinds) {
            regions = vec![collect_region(topology, |_| true)];
        }
        regions.retain(GroupPus::has_both_kinds);
        Self(regions.iter().flat_map(divide_region).collect())
    }

    /// The groups, for a policy that is useless without them.
    ///
    /// # Errors
    /// [`PolicyError::Unfit`] on a symmetric machine.
    pub(super) fn require(topology: &Topology, policy: &'static str) -> Result<Self, PolicyError> {
        let groups = Self::from_topology(topology);
        if !groups.0.is_empty() {
            return Ok(groups);
        }
        Err(PolicyError::Unfit {
            policy,
            why: format!(
                "exchanges threads between large and small cores, and all {} cores are alike here; \
                 use 'spread', or name large ones by --emulate-asymmetry",
                topology.cores().len()
            ),
        })
    }

    pub(in crate::policies) fn iter(&self) -> impl Iterator<Item = &GroupPus> {
        self.0.iter()
    }
}

/// The CPUs of a region, by kind, in ascending order.
fn collect_region(topology: &Topology, inside: impl Fn(PuId) -> bool) -> GroupPus {
    let types = topology.core_types();
    let capacity = |core_type: usize| types.get(core_type).map_or(0, |t| t.capacity);
    let cores = topology.cores().iter();
    // The highest capacity of the whole machine, so that a region without large cores has only
    // small ones.
    let most = cores.map(|c| capacity(c.core_type)).max().unwrap_or(0);
    let mut found = GroupPus::default();
    for core in topology.cores() {
        let pus = core.pus.iter().copied().filter(|&pu| inside(pu));
        if capacity(core.core_type) == most {
            found.large.extend(pus);
        } else {
            found.small.extend(pus);
        }
    }
    found.large.sort_unstable();
    found.small.sort_unstable();
    found
}

/// Divides a region into as many groups as it has CPUs of the rarer kind.
fn divide_region(region: &GroupPus) -> Vec<GroupPus> {
    let n = region.large.len().min(region.small.len());
    let share = |pus: &[PuId], i: usize| pus[i * pus.len() / n..(i + 1) * pus.len() / n].to_vec();
    (0..n)
        .map(|i| GroupPus {
            large: share(&region.large, i),
            small: share(&region.small, i),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use proptest::prelude::*;

    fn pus(of: &GroupPus) -> (Vec<u32>, Vec<u32>) {
        let numbers = |pus: &[PuId]| pus.iter().map(|pu| pu.0).collect();
        (numbers(&of.large), numbers(&of.small))
    }

    #[test]
    fn each_large_core_has_own_small_cores() {
        let groups = ExchangeGroups::from_topology(&chip(2, 6, 1));
        let sets: Vec<_> = groups.iter().map(pus).collect();
        assert_eq!(sets, [(vec![0], vec![2, 3, 4]), (vec![1], vec![5, 6, 7])]);
    }

    #[test]
    fn groups_stay_within_private_regions() {
        let groups = ExchangeGroups::from_topology(&chip(2, 6, 2));
        let sets: Vec<_> = groups.iter().map(pus).collect();
        assert_eq!(sets, [(vec![0], vec![1, 2, 3]), (vec![4], vec![5, 6, 7])]);
    }

    #[test]
    fn a_symmetric_machine_is_refused() {
        let error = ExchangeGroups::require(&Topology::uniform(4, 1).unwrap(), "hrrs").unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("policy hrrs exchanges threads"), "{text}");
        assert!(text.contains("all 4 cores are alike"), "{text}");
    }

    proptest! {
        #[test]
        fn every_pu_is_in_one_mixed_group(
            large in 1u32..6, small in 1u32..9,
        ) {
            let groups = ExchangeGroups::from_topology(&chip(large, small, 1));
            let mut all: Vec<PuId> = groups.iter().flat_map(|g| g.large.iter().chain(&g.small)).copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..large + small).map(PuId).collect::<Vec<_>>());
            prop_assert!(groups.iter().all(|g| !g.large.is_empty() && !g.small.is_empty()));
        }
    }
}
