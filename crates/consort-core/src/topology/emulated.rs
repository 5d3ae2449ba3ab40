//! Emulated core types: chosen CPUs count as large on a machine whose cores may all be alike.
//!
//! [`Topology::with_large_cores`] returns the machine with two core types and otherwise the same
//! places, so that policies for asymmetric chips can be tried anywhere. The capacities are made up:
//! they show only which type is the larger.

use super::{CoreType, PuFacts, Topology, TopologyError};
use crate::pu_set::PuSet;

/// Capacity of the small type. The large type has 1024 by definition; half of it only means "less".
const SMALL_CAPACITY: u32 = 512;

impl Topology {
    /// Returns the machine with two core types: cores of the CPUs in `large` are large, all others
    /// small.
    ///
    /// # Errors
    /// [`TopologyError::NotThere`], [`TopologyError::OneKind`] and [`TopologyError::Divided`].
    pub fn with_large_cores(&self, large: &PuSet) -> Result<Self, TopologyError> {
        self.check_large(large)?;
        let kind = |facts: PuFacts| PuFacts {
            core_type: usize::from(!large.contains(facts.pu)),
            ..facts
        };
        let facts = self.facts().into_iter().map(kind).collect();
        self.rebuild(
            facts,
            vec![core_type("large", 1024), core_type("small", SMALL_CAPACITY)],
        )
    }

    fn check_large(&self, large: &PuSet) -> Result<(), TopologyError> {
        let pus = self.pus();
        let unknown = large.difference(pus);
        if !unknown.is_empty() {
            return Err(TopologyError::NotThere {
                pus: unknown,
                usable: pus.clone(),
            });
        }
        if large.is_empty() || large == pus {
            return Err(TopologyError::OneKind {
                which: if large.is_empty() {
                    "no CPU"
                } else {
                    "all CPUs"
                },
                usable: pus.clone(),
            });
        }
        let halved = |core: &&super::Core| {
            let inside = core.pus.iter().filter(|&&pu| large.contains(pu)).count();
            inside > 0 && inside < core.pus.len()
        };
        match self.cores().iter().find(halved) {
            Some(core) => Err(TopologyError::Divided {
                core: core.pus.iter().copied().collect(),
            }),
            None => Ok(()),
        }
    }
}

fn core_type(name: &str, capacity: u32) -> CoreType {
    CoreType {
        name: name.to_owned(),
        capacity,
        pipeline: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    fn error(topology: &Topology, large: &PuSet) -> String {
        topology.with_large_cores(large).unwrap_err().to_string()
    }

    #[test]
    fn named_pus_are_large_and_all_others_small() {
        let topology = Topology::uniform(4, 2).unwrap();
        let emulated = topology.with_large_cores(&set("1,5")).unwrap();
        let kinds: Vec<usize> = emulated.facts().iter().map(|f| f.core_type).collect();
        assert_eq!(kinds, [1, 0, 1, 1, 1, 0, 1, 1]);
        let capacities: Vec<u32> = emulated.core_types().iter().map(|t| t.capacity).collect();
        assert_eq!(capacities, [1024, 512]);
    }

    #[test]
    fn unusable_pus_are_named() {
        let topology = Topology::uniform(2, 1).unwrap();
        assert_eq!(
            error(&topology, &set("0,7-8")),
            "CPUs 7-8 cannot be used here; large can be some of 0-1"
        );
    }

    #[test]
    fn both_core_types_are_needed() {
        let topology = Topology::uniform(2, 1).unwrap();
        assert_eq!(
            error(&topology, &set("0-1")),
            "all CPUs would be large, so that there is nothing to exchange; name some of 0-1, not all"
        );
        assert_eq!(
            error(&topology, &PuSet::new()),
            "no CPU would be large, so that there is nothing to exchange; name some of 0-1, not all"
        );
    }

    #[test]
    fn divided_core_is_refused() {
        let topology = Topology::uniform(2, 2).unwrap();
        assert_eq!(
            error(&topology, &set("0")),
            "CPUs 0,2 are one core, which is large or small as a whole; name all of them or none"
        );
    }

    proptest! {
        #[test]
        fn only_core_types_change(cores in 2u32..9, ways in 1u32..4, of in 1u32..8) {
            let topology = Topology::uniform(cores, ways).unwrap();
            let large: PuSet = topology.cores()[..of.min(cores - 1) as usize]
                .iter().flat_map(|c| c.pus.clone()).collect();
            let emulated = topology.with_large_cores(&large).unwrap();
            let alike = |f: PuFacts| PuFacts { core_type: 0, ..f };
            let places = |t: &Topology| t.facts().into_iter().map(alike).collect::<Vec<_>>();
            prop_assert_eq!(places(&emulated), places(&topology));
            // Applying it again changes nothing.
            prop_assert_eq!(emulated.with_large_cores(&large).unwrap(), emulated);
        }
    }
}
