//! The machine with fewer cores.

use super::part_error;
use crate::study::StudyError;
use consort_sim::chip::Chip;
use consort_sim::machine::{MachineSpec, Quantity, presets};
use std::sync::Arc;

/// The machine.
const MACHINE: &str = "power8";
/// PUs per core that are in use, as in the paper.
const SMT: u32 = 2;
/// Cores of each of its two nodes.
const CORES_PER_NODE: usize = 5;

/// Nodes with memory where it is near to the first half of the cores: those were faster for
/// memory-bound programs on the machine of the paper, which so suggests it.
pub(in crate::studies) const NEAR_FIRST_HALF: Option<&[u32]> = Some(&[0]);

/// The machine with so many of its cores in use, dealt to both nodes in turns; caches of the other
/// cores and all of the memory stay, as when threads are kept off cores.
pub(super) fn chip(cores: usize) -> Result<Arc<Chip>, StudyError> {
    chip_with_memory(cores, None)
}

/// The machine of [`chip`] with memory on some nodes alone.
pub(in crate::studies) fn chip_with_memory(
    cores: usize,
    nodes: Option<&[u32]>,
) -> Result<Arc<Chip>, StudyError> {
    let mut spec = presets::find(MACHINE).map_err(part_error(MACHINE))?;
    if let Some(numa) = &mut spec.numa {
        numa.memory_nodes = nodes.map(<[u32]>::to_vec);
    }
    with_cores(&spec, cores)
}

/// The machine with all cores, whose PMU reads completed groups and every cause of stalls that it
/// has an event for, all in one quantum: training runs can be repeated until every event was read.
pub(super) fn chip_with_causes() -> Result<Arc<Chip>, StudyError> {
    const TOGETHER: [Quantity; 3] = [
        Quantity::StackCompletion,
        Quantity::StackEmpty,
        Quantity::StackFinished,
    ];
    let mut spec = presets::find(MACHINE).map_err(part_error(MACHINE))?;
    let pmu = &mut spec.pmu;
    pmu.events.retain(|event| !TOGETHER.contains(&event.counts));
    pmu.programmable = pmu.events.len() as u32;
    with_cores(&spec, 2 * CORES_PER_NODE)
}

fn with_cores(spec: &MachineSpec, cores: usize) -> Result<Arc<Chip>, StudyError> {
    let part = format!("{MACHINE} with {cores} cores");
    let is_used = |core: usize| {
        let (node, within) = (core / CORES_PER_NODE, core % CORES_PER_NODE);
        2 * within + node < cores
    };
    let chip = Chip::with_cores(spec, Some(SMT), &is_used).map_err(part_error(&part))?;
    Ok(Arc::new(chip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_dealt_to_both_nodes_and_caches_stay() {
        for cores in 4..=10 {
            let chip = chip(cores).unwrap();
            let domains = chip.domains();
            assert_eq!((domains.cores, domains.llcs, domains.nodes), (cores, 10, 2));
            assert_eq!(chip.places().len(), 2 * cores);
            let first = chip.places().iter().filter(|place| place.node == 0);
            assert_eq!(first.count() / 2, cores.div_ceil(2));
        }
    }

    #[test]
    fn memory_is_on_the_nodes_that_are_asked_for() {
        let homes =
            |nodes| [0, 1].map(|node| chip_with_memory(4, nodes).unwrap().memory_node(node));
        assert_eq!(homes(None), [0, 1]);
        assert_eq!(homes(Some(&[1])), [1, 1]);
    }

    #[test]
    fn ten_cores_are_the_machine() {
        let spec = presets::find(MACHINE).unwrap();
        let whole = Chip::new(&spec, Some(SMT)).unwrap();
        assert_eq!(whole, *chip(2 * CORES_PER_NODE).unwrap());
    }
}
