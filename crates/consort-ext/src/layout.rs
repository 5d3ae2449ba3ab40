//! The machine as the scheduler's tables number it.

use crate::error::ExtError;
use consort_core::topology::Topology;
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;

/// Most CPUs, as in `state.h`.
pub(crate) const MAX_PUS: usize = 1024;
/// Most SMT ways of a core.
pub(crate) const MAX_WAYS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanPlace {
    Anywhere,
    Pu(u32),
    Core(u32),
    Set(u32),
}

impl PlanPlace {
    /// Kind and number, as in `state.h`.
    pub(crate) fn code(self) -> (u32, u32) {
        match self {
            Self::Anywhere => (0, 0),
            Self::Pu(pu) => (1, pu),
            Self::Core(core) => (2, core),
            Self::Set(set) => (3, set),
        }
    }
}

/// CPUs and cores with the numbers that the scheduler uses for them.
#[derive(Clone, Debug)]
pub(crate) struct MachineLayout {
    /// All CPUs.
    pub(crate) pus: PuSet,
    /// The CPUs of each core.
    #[cfg_attr(
        not(any(feature = "bpf", test)),
        expect(dead_code, reason = "only the kernel's part asks for them")
    )]
    pub(crate) cores: Vec<PuSet>,
    by_pus: BTreeMap<PuSet, u32>,
}

impl MachineLayout {
    /// # Errors
    /// [`ExtError::TooLarge`] if the tables have no room for the machine.
    pub(crate) fn new(topology: &Topology) -> Result<Self, ExtError> {
        let pus_of = topology.cores().iter().map(|core| core.pus.iter().copied());
        let cores: Vec<PuSet> = pus_of.map(Iterator::collect).collect();
        let pus = topology.pus().clone();
        let ways = cores.iter().map(PuSet::len).max().unwrap_or(0);
        check_at_most("the highest CPU number plus one is", end(&pus), MAX_PUS)?;
        check_at_most("the SMT ways of a core are", ways, MAX_WAYS)?;
        let by_pus = cores.iter().cloned().zip(0..).collect();
        Ok(Self { pus, cores, by_pus })
    }

    /// One more than the highest CPU number.
    pub(crate) fn end(&self) -> usize {
        end(&self.pus)
    }

    /// The place of these CPUs, if it is one that every plan has: everything, a CPU or a core.
    pub(crate) fn fixed_place(&self, pus: &PuSet) -> Option<PlanPlace> {
        if pus.is_empty() || self.pus.is_subset(pus) {
            return Some(PlanPlace::Anywhere);
        }
        if let (1, Some(PuId(pu))) = (pus.len(), pus.first()) {
            return Some(PlanPlace::Pu(pu));
        }
        self.by_pus.get(pus).copied().map(PlanPlace::Core)
    }
}

fn end(pus: &PuSet) -> usize {
    pus.iter().last().map_or(0, |pu| pu.0 as usize + 1)
}

/// # Errors
/// [`ExtError::TooLarge`] if `found` is more than `most`.
pub(crate) fn check_at_most(what: &'static str, found: usize, most: usize) -> Result<(), ExtError> {
    if found <= most {
        return Ok(());
    }
    Err(ExtError::TooLarge {
        what,
        found: found as u64,
        most: most as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> MachineLayout {
        MachineLayout::new(&Topology::uniform(4, 2).unwrap()).unwrap()
    }

    fn place(pus: &str) -> Option<PlanPlace> {
        layout().fixed_place(&pus.parse().unwrap())
    }

    #[test]
    fn pus_cores_and_everything_are_fixed_places() {
        let core = layout().cores[2].to_string();
        assert_eq!(place("5"), Some(PlanPlace::Pu(5)));
        assert_eq!(place(&core), Some(PlanPlace::Core(2)));
        assert_eq!(place("0-7"), Some(PlanPlace::Anywhere));
        assert_eq!(place("0-2"), None);
    }

    #[test]
    fn core_of_one_way_is_its_pu() {
        let layout = MachineLayout::new(&Topology::uniform(4, 1).unwrap()).unwrap();
        let pu = "3".parse().unwrap();
        assert_eq!(layout.fixed_place(&pu), Some(PlanPlace::Pu(3)));
    }

    #[test]
    fn too_large_machine_is_refused() {
        let large = Topology::uniform(513, 2).unwrap();
        let error = MachineLayout::new(&large).unwrap_err().to_string();
        assert!(error.contains("1026") && error.contains("1024"), "{error}");
    }
}
