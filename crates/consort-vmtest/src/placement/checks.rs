//! Checks of a placement, by masks alone.
//!
//! Source of both rules: the second step of WorkOver (Peternier et al., "Improving Execution Unit
//! Occupancy on SMT-based Processors through Hardware-aware Thread Scheduling"): as many
//! floating-point threads as there are cores each get a core of their own, and the threads beside
//! them use little floating point.
//!
//! Pitfall: a mask says where a thread may run, not where it does. A light thread that is left
//! unrestricted counts as able to run beside any other.

use crate::placement::ThreadMask;
use consort_core::PuSet;
use consort_core::topology::Topology;
use std::collections::BTreeMap;

/// Checks that every fp thread is confined to one core, and no core has more of them than an even
/// spread over all cores needs.
///
/// # Errors
/// What is wrong with the first offender, or that there is no fp thread at all.
pub fn check_fp_spread(masks: &[ThreadMask], topology: &Topology) -> Result<(), String> {
    let by_core = fp_by_core(masks, topology)?;
    let threads: usize = by_core.values().map(Vec::len).sum();
    let even = threads.div_ceil(topology.cores().len());
    for (core, threads) in by_core {
        if threads.len() > even {
            let names: Vec<String> = threads.into_iter().map(describe).collect();
            return Err(format!(
                "core {core} has {}, more than {even}",
                names.join(" and ")
            ));
        }
    }
    Ok(())
}

/// Checks that every core with fp threads can be given a light thread of its own that may run on a
/// PU of that core which no fp thread occupies.
///
/// # Errors
/// The first core that has to do without one, or an fp thread that is not confined to a core.
pub fn check_fp_paired_with_light(masks: &[ThreadMask], topology: &Topology) -> Result<(), String> {
    let light: Vec<&ThreadMask> = masks.iter().filter(|m| !m.is_fp()).collect();
    let seats: Vec<(usize, PuSet)> = fp_by_core(masks, topology)?
        .into_iter()
        .map(|(core, threads)| (core, free_pus(core, &threads, topology)))
        .collect();
    let mut seated_at = vec![None; light.len()];
    for (seat, (core, free)) in seats.iter().enumerate() {
        let mut tried = vec![false; light.len()];
        if !seat_light_thread(seat, &seats, &light, &mut seated_at, &mut tried) {
            return Err(format!(
                "no light thread is left that may run beside fp on PUs {free} of core {core}"
            ));
        }
    }
    Ok(())
}

/// Checks that two sightings show the same threads with the same masks.
///
/// # Errors
/// The first thread that differs.
pub fn check_same_masks(before: &[ThreadMask], after: &[ThreadMask]) -> Result<(), String> {
    let key = |m: &ThreadMask| (m.program, m.tid);
    let before: BTreeMap<_, _> = before.iter().map(|m| (key(m), m)).collect();
    let after: BTreeMap<_, _> = after.iter().map(|m| (key(m), m)).collect();
    for (id, old) in &before {
        match after.get(id) {
            None => return Err(format!("{} is gone", describe(old))),
            Some(new) if new.mask != old.mask => {
                return Err(format!("{} had PUs {}", describe(new), old.mask));
            }
            Some(_) => {}
        }
    }
    after
        .iter()
        .find(|(id, _)| !before.contains_key(id))
        .map_or(Ok(()), |(_, new)| Err(format!("{} is new", describe(new))))
}

fn fp_by_core<'a>(
    masks: &'a [ThreadMask],
    topology: &Topology,
) -> Result<BTreeMap<usize, Vec<&'a ThreadMask>>, String> {
    let mut by_core: BTreeMap<usize, Vec<&ThreadMask>> = BTreeMap::new();
    for thread in masks.iter().filter(|m| m.is_fp()) {
        by_core
            .entry(only_core(thread, topology)?)
            .or_default()
            .push(thread);
    }
    if by_core.is_empty() {
        return Err("there is no fp thread".into());
    }
    Ok(by_core)
}

fn only_core(thread: &ThreadMask, topology: &Topology) -> Result<usize, String> {
    let mut cores: Vec<usize> = thread
        .mask
        .iter()
        .filter_map(|pu| topology.core_of(pu))
        .collect();
    cores.dedup();
    match cores[..] {
        [core] => Ok(core),
        _ => Err(format!("{} is not confined to one core", describe(thread))),
    }
}

/// The PUs of a core that are left when each fp thread occupies one of those that it may use.
fn free_pus(core: usize, threads: &[&ThreadMask], topology: &Topology) -> PuSet {
    let mut free: PuSet = topology.cores()[core].pus.iter().copied().collect();
    let mut threads = threads.to_vec();
    // Those with the least choice first, so that they do not find their only PU taken.
    threads.sort_by_key(|thread| thread.mask.len());
    for thread in threads {
        if let Some(pu) = free.intersection(&thread.mask).iter().last() {
            free.remove(pu);
        }
    }
    free
}

/// Bipartite matching by augmenting paths: seats a light thread, moving others where needed.
fn seat_light_thread(
    seat: usize,
    seats: &[(usize, PuSet)],
    light: &[&ThreadMask],
    seated_at: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for index in 0..light.len() {
        if tried[index] || seats[seat].1.intersection(&light[index].mask).is_empty() {
            continue;
        }
        tried[index] = true;
        let free = match seated_at[index] {
            None => true,
            Some(other) => seat_light_thread(other, seats, light, seated_at, tried),
        };
        if free {
            seated_at[index] = Some(seat);
            return true;
        }
    }
    false
}

fn describe(thread: &ThreadMask) -> String {
    format!("{} ({}) on PUs {}", thread.comm, thread.tid, thread.mask)
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
