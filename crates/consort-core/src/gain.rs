//! Gain to be expected from placing threads on a machine.

use crate::topology::Topology;
use std::collections::BTreeSet;

/// Gain to be expected from placing threads, judged by the topology alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gain {
    /// Every place is as good as any other, so that placement would only keep threads from the
    /// kernel's balancing. Holds the reason.
    Absent(&'static str),
    /// Places differ in what they share or in speed, or the kernel does not balance.
    Possible,
}

impl Gain {
    /// Judges a machine.
    pub fn from_topology(topology: &Topology) -> Self {
        if topology.pus().len() < 2 {
            return Self::Absent("there is only one CPU");
        }
        let types: BTreeSet<usize> = topology.cores().iter().map(|c| c.core_type).collect();
        let differ = topology.smt() > 1 || types.len() > 1 || has_several_places(topology);
        if differ || topology.unbalanced_pus().len() > 1 {
            return Self::Possible;
        }
        Self::Absent("every CPU is a core of its own, all are alike, and all share one cache")
    }
}

/// Returns true if the choice of a core for a thread matters for caches or memory: there are
/// several LLC domains, nodes or packages, or an L2 cache that some but not all cores share.
pub(crate) fn has_several_places(topology: &Topology) -> bool {
    let part = 2..topology.cores().len();
    topology.llcs().len() > 1
        || topology.nodes().len() > 1
        || topology.packages().len() > 1
        || topology
            .l2s()
            .iter()
            .any(|l2| part.contains(&l2.cores.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PuId;
    use crate::topology::{CoreType, PuFacts};

    fn is_possible(topology: &Topology) -> bool {
        Gain::from_topology(topology) == Gain::Possible
    }

    /// Four CPUs, each a core of its own, whose facts `change` may alter.
    fn four(change: impl Fn(&mut PuFacts)) -> Topology {
        let mut facts = Topology::uniform(4, 1).unwrap().facts();
        facts.iter_mut().for_each(change);
        Topology::new(facts, vec![CoreType::uniform(); 2]).unwrap()
    }

    #[test]
    fn equal_cores_with_one_cache_gain_nothing() {
        let unchanged = four(|_| {});
        let reason = "every CPU is a core of its own, all are alike, and all share one cache";
        assert_eq!(Gain::from_topology(&unchanged), Gain::Absent(reason));
        let one = Gain::from_topology(&Topology::uniform(1, 1).unwrap());
        assert_eq!(one, Gain::Absent("there is only one CPU"));
    }

    #[test]
    fn parts_shared_by_some_cpus_are_a_gain() {
        assert!(is_possible(&Topology::uniform(2, 2).unwrap()), "cores");
        let second_half = |f: &PuFacts| u32::from(f.pu >= PuId(2));
        assert!(is_possible(&four(|f| f.llc = second_half(f))), "LLC");
        assert!(is_possible(&four(|f| f.node = second_half(f))), "node");
        assert!(
            is_possible(&four(|f| f.package = second_half(f))),
            "package"
        );
        assert!(is_possible(&four(|f| f.l2 = Some(second_half(f)))), "L2");
        assert!(!is_possible(&four(|f| f.l2 = Some(0))), "one L2 for all");
    }

    #[test]
    fn unbalanced_cpus_are_a_gain() {
        let isolated = |pus: &str| four(|_| {}).with_unbalanced(&pus.parse().unwrap());
        assert!(is_possible(&isolated("2-3")));
        assert!(!is_possible(&isolated("3")), "one CPU leaves no choice");
    }

    #[test]
    fn unusable_core_types_do_not_count() {
        let hybrid = four(|f| f.core_type = usize::from(f.pu >= PuId(2)));
        assert!(is_possible(&hybrid));
        let large_only = hybrid.restrict_to(&"0-1".parse().unwrap()).unwrap();
        assert!(!is_possible(&large_only));
    }
}
