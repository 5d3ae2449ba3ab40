//! Every placement of as many threads as PUs, up to symmetry.

use consort_core::matching::{GroupRoom, MatchingError, visit_partitions};
use consort_sim::chip::Chip;
use std::collections::BTreeSet;

/// Symmetry of a machine's placements: the parts in which threads meet, and those that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlacementSymmetry {
    /// Threads meet on cores; all cores are alike.
    Core,
    /// Threads meet in LLC domains; all domains are alike, and so are their PUs.
    Llc,
    /// Threads meet everywhere; the first core is unlike the others.
    Large,
}

/// Thread of each PU, for every placement that differs from all others in more than the names of
/// like parts and of like threads. Threads of one name in `kinds` are alike; there are as many as
/// PUs.
///
/// # Errors
/// More than 16 threads.
pub(super) fn all(
    chip: &Chip,
    meeting: PlacementSymmetry,
    kinds: &[&str],
) -> Result<Vec<Vec<usize>>, MatchingError> {
    let groups = groups(chip, meeting);
    let mut seen = BTreeSet::new();
    let mut placements = Vec::new();
    let mut visit = |threads: &[Vec<usize>]| {
        if seen.insert(kind(threads, kinds, meeting)) {
            placements.push(seated(&groups, threads));
        }
    };
    if meeting == PlacementSymmetry::Large {
        (0..kinds.len()).for_each(|first| visit(&with_first(first, kinds.len())));
        return Ok(placements);
    }
    let shape = GroupRoom {
        cores: groups.len(),
        ways: groups.iter().map(Vec::len).max().unwrap_or(0),
        swaps: 0,
    };
    visit_partitions(kinds.len(), shape, visit)?;
    Ok(placements)
}

/// The PUs of each group of threads that meet.
fn groups(chip: &Chip, meeting: PlacementSymmetry) -> Vec<Vec<usize>> {
    let topology = chip.topology();
    let pus = |set: &mut dyn Iterator<Item = u32>| set.map(|pu| pu as usize).collect();
    match meeting {
        PlacementSymmetry::Llc => {
            let domains = topology.llcs().iter();
            domains
                .map(|d| pus(&mut d.pus.iter().map(|pu| pu.0)))
                .collect()
        }
        PlacementSymmetry::Core | PlacementSymmetry::Large => {
            let cores = topology.cores().iter();
            cores
                .map(|core| pus(&mut core.pus.iter().map(|pu| pu.0)))
                .collect()
        }
    }
}

/// Group of one thread on the first core, and of one on each other.
fn with_first(first: usize, threads: usize) -> Vec<Vec<usize>> {
    let others = (0..threads).filter(|&thread| thread != first);
    [first]
        .into_iter()
        .chain(others)
        .map(|thread| vec![thread])
        .collect()
}

/// Form of a placement in which like threads have one name, and like groups no order.
fn kind(threads: &[Vec<usize>], kinds: &[&str], meeting: PlacementSymmetry) -> Vec<Vec<String>> {
    let names = |group: &Vec<usize>| {
        let mut names: Vec<String> = group.iter().map(|&t| kinds[t].to_owned()).collect();
        names.sort_unstable();
        names
    };
    let mut groups: Vec<Vec<String>> = threads.iter().map(names).collect();
    let alike = usize::from(meeting == PlacementSymmetry::Large);
    groups[alike..].sort_unstable();
    groups
}

/// The thread of each PU.
fn seated(groups: &[Vec<usize>], threads: &[Vec<usize>]) -> Vec<usize> {
    let mut of_pu = vec![0; threads.iter().map(Vec::len).sum()];
    for (pus, members) in groups.iter().zip(threads) {
        for (&pu, &thread) in pus.iter().zip(members) {
            of_pu[pu] = thread;
        }
    }
    of_pu
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::chips::chip;

    fn check(machine: &str, meeting: PlacementSymmetry, kinds: &[&str], expect: usize) {
        let chip = chip(machine).unwrap();
        let placements = all(&chip, meeting, kinds).unwrap();
        assert_eq!(placements.len(), expect, "{machine}");
        for placement in placements {
            let mut threads = placement.clone();
            threads.sort_unstable();
            assert_eq!(threads, (0..chip.places().len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn placements_are_counted_up_to_symmetry() {
        let eight = ["a", "b", "c", "d", "e", "f", "g", "h"];
        check("bulldozer-6282se", PlacementSymmetry::Core, &eight, 105);
        check("core2-q9550", PlacementSymmetry::Llc, &eight[..4], 3);
        check("acmp-1+3", PlacementSymmetry::Large, &eight[..4], 4);
        // Four of each: pairs of like threads are 0, 2 or 4.
        let two = ["a", "a", "a", "a", "b", "b", "b", "b"];
        check("bulldozer-6282se", PlacementSymmetry::Core, &two, 3);
        check("acmp-1+3", PlacementSymmetry::Large, &two[2..6], 2);
    }

    #[test]
    fn the_first_core_of_an_asymmetric_chip_is_the_large_one() {
        use consort_experiment::watch::CoreKind;
        let chip = chip("acmp-1+3").unwrap();
        let kinds = [0, 1, 2, 3].map(|pu| CoreKind::from_pu(&chip, pu));
        assert_eq!(kinds[0], CoreKind::Large);
        assert!(kinds[1..].iter().all(|kind| *kind == CoreKind::Small));
    }
}
