//! Places in a part of the machine, and dealing them out.

use crate::ids::PuId;
use crate::topology::Topology;
use std::collections::BTreeSet;

/// Scale of loads by size as whole numbers, by which parts of unlike size compare.
const SCALE: usize = 1 << 20;

/// Fullness of a part of the machine: its load by its size, in parts of [`SCALE`].
pub(super) fn fullness(load: usize, size: usize) -> usize {
    load * SCALE / size.max(1)
}

/// The PU of each of `threads` threads in a part of the machine given core by core: neighbours
/// stay together and no PU has two more than another. Fewer threads than PUs have a core each
/// before any core has two.
pub(super) fn deal_evenly(topology: &Topology, pus: &[PuId], threads: usize) -> Vec<PuId> {
    let used = if threads < pus.len() {
        pick_by_way(topology, pus, threads)
    } else {
        pus.to_vec()
    };
    let pu = |thread: usize| used[thread * used.len() / threads];
    (0..threads).map(pu).collect()
}

/// Returns so many of the PUs, first those that are the first of their core, then the second; core
/// by core.
fn pick_by_way(topology: &Topology, pus: &[PuId], count: usize) -> Vec<PuId> {
    let mut by_way: Vec<PuId> = pus.to_vec();
    by_way.sort_by_key(|&pu| way_in_core(topology, pu));
    let chosen: BTreeSet<PuId> = by_way.into_iter().take(count).collect();
    pus.iter()
        .copied()
        .filter(|pu| chosen.contains(pu))
        .collect()
}

fn way_in_core(topology: &Topology, pu: PuId) -> Option<usize> {
    let core = &topology.cores()[topology.core_of(pu)?];
    core.pus.iter().position(|&other| other == pu)
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;

    #[test]
    fn few_threads_have_a_core_each_and_many_are_even() {
        let topology = chip(1, 2, 2);
        let pus: Vec<PuId> = topology.pus().iter().collect();
        let of = |threads| -> Vec<u32> {
            let given = deal_evenly(&topology, &pus, threads);
            given.into_iter().map(|pu| pu.0).collect()
        };
        assert_eq!(of(2), [0, 2]);
        assert_eq!(of(3), [0, 1, 2]);
        assert_eq!(of(6), [0, 0, 1, 2, 2, 3]);
        assert_eq!(of(0), [0; 0]);
    }
}
