//! Comparison of measured sharing with what the kernel tells.

use super::groups::SharingLevel;
use super::infer::Inference;
use crate::pu_set::PuSet;
use crate::topology::Topology;

/// Contradictions of the measurements to a topology, one sentence per group; none where they agree
/// as far as they tell.
pub fn differences(inference: &Inference, told: &Topology) -> Vec<String> {
    let probed: PuSet = probed_pus(&inference.cores);
    let cores = told
        .cores()
        .iter()
        .map(|core| core.pus.iter().copied().collect());
    let l2s = told.l2s().iter().map(|domain| domain.pus.clone());
    let llcs = told.llcs().iter().map(|domain| domain.pus.clone());
    let kinds: [(&str, &SharingLevel, Vec<PuSet>); 3] = [
        ("a core", &inference.cores, cores.collect()),
        ("a level 2 cache", &inference.l2s, l2s.collect()),
        ("an LLC domain", &inference.llcs, llcs.collect()),
    ];
    let kinds = kinds.into_iter();
    kinds
        .flat_map(|(what, level, told)| kind_differences(what, level, &told, &probed))
        .collect()
}

fn probed_pus(level: &SharingLevel) -> PuSet {
    let groups = level.groups.iter();
    groups.fold(level.undecided.clone(), |all, group| all.union(&group.pus))
}

fn kind_differences(
    what: &str,
    level: &SharingLevel,
    told: &[PuSet],
    probed: &PuSet,
) -> Vec<String> {
    let told: Vec<PuSet> = told.iter().map(|pus| pus.intersection(probed)).collect();
    let contradicts = |pus: &&PuSet| {
        told.iter()
            .any(|t| !t.intersection(pus).is_empty() && t != *pus)
    };
    let groups = level.groups.iter().map(|group| &group.pus);
    let sentence = |pus: &PuSet| {
        let theirs = told.iter().filter(|t| !t.intersection(pus).is_empty());
        let theirs: Vec<String> = theirs.map(|t| format!("{{{t}}}")).collect();
        let ours = match pus.len() {
            1 => format!("PU {pus} shares {what} with no other"),
            _ => format!("PUs {pus} share {what}"),
        };
        format!("{ours}; the kernel tells {}", theirs.join(" "))
    };
    groups.filter(contradicts).map(sentence).collect()
}
