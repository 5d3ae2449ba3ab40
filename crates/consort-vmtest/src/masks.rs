//! Masks of threads, as a guest shows them, and checks of a placement by masks alone.
//!
//! Source of both rules: the second step of WorkOver (Peternier et al., "Improving Execution Unit
//! Occupancy on SMT-based Processors through Hardware-aware Thread Scheduling"): as many
//! floating-point threads as there are cores each get a core of their own, and the threads that
//! share these cores use little floating point.
//!
//! Pitfall: a mask shows where a thread may run, not where it does. A light thread that is left
//! unrestricted counts as able to run next to any other.

use crate::error::VmError;
use consort_core::PuSet;
use consort_core::topology::Topology;
use std::collections::BTreeMap;

/// One thread of the workload and its affinity mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMask {
    /// Process id.
    pub program: u32,
    /// Thread id.
    pub tid: u32,
    /// The thread's name; `fp-0` is thread 0 of the `fp` kernel.
    pub comm: String,
    /// CPUs that it may run on (`Cpus_allowed_list`).
    pub mask: PuSet,
}

impl ThreadMask {
    /// Returns true if the thread runs the floating-point kernel.
    #[must_use]
    pub fn is_fp(&self) -> bool {
        self.comm.starts_with("fp-")
    }
}

/// Reads the lines `thread PID TID MASK COMM` of a section and skips all others.
///
/// # Errors
/// [`VmError::ThreadLine`] for a line that begins with `thread` and then goes wrong.
pub fn thread_masks(section: &str) -> Result<Vec<ThreadMask>, VmError> {
    let lines = section.lines().filter(|line| line.starts_with("thread "));
    lines
        .map(|line| parse(line).ok_or_else(|| VmError::ThreadLine(line.to_owned())))
        .collect()
}

/// Reads one line; the name comes last because it may hold spaces.
fn parse(line: &str) -> Option<ThreadMask> {
    let mut fields = line.splitn(5, ' ').skip(1);
    Some(ThreadMask {
        program: fields.next()?.parse().ok()?,
        tid: fields.next()?.parse().ok()?,
        mask: fields.next()?.parse().ok()?,
        comm: fields.next()?.to_owned(),
    })
}

/// Checks that every fp thread is confined to one core, and no core has more of them than an even
/// spread over all cores needs.
///
/// # Errors
/// The first thread or core that breaks the rule, or the absence of fp threads.
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
/// CPU of that core which no fp thread occupies.
///
/// # Errors
/// The first core without one, or an fp thread that is not confined to a core.
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
                "no light thread is left that may run beside fp on CPUs {free} of core {core}"
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
                return Err(format!("{} had CPUs {}", describe(new), old.mask));
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

/// The CPUs of a core that are left when each fp thread occupies one that it may use.
fn free_pus(core: usize, threads: &[&ThreadMask], topology: &Topology) -> PuSet {
    let mut free: PuSet = topology.cores()[core].pus.iter().copied().collect();
    let mut threads = threads.to_vec();
    // Threads with the least choice first, so that they do not find their only CPU taken.
    threads.sort_by_key(|thread| thread.mask.len());
    for thread in threads {
        if let Some(pu) = free.intersection(&thread.mask).iter().last() {
            free.remove(pu);
        }
    }
    free
}

/// Bipartite matching by augmenting paths: seats a light thread and moves others if needed.
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
    format!("{} ({}) on CPUs {}", thread.comm, thread.tid, thread.mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GuestTopology;
    use consort_core::PuId;
    use proptest::prelude::*;

    #[test]
    fn other_lines_are_skipped() {
        let masks =
            thread_masks("polls 3\nthread 12 13 0-1,4 fp-0\nthread 20 20 7 my name\n").unwrap();
        assert_eq!(masks.len(), 2);
        assert_eq!((masks[0].program, masks[0].tid), (12, 13));
        assert_eq!(masks[0].mask.to_string(), "0-1,4");
        assert!(masks[0].is_fp());
        assert_eq!(masks[1].comm, "my name");
        assert!(!masks[1].is_fp());
    }

    #[test]
    fn broken_line_is_quoted() {
        let error = thread_masks("thread 12 x 0-1 fp-0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "'thread 12 x 0-1 fp-0' is not 'thread PID TID MASK COMM'"
        );
        assert!(thread_masks("thread 1 1 3-1 fp-0").is_err());
        assert!(thread_masks("thread 1 1 3").is_err());
    }

    proptest! {
        #[test]
        fn written_line_is_read(program: u32, tid: u32, comm in "[a-z0-9 -]{1,15}", pus in prop::collection::btree_set(0u32..300, 1..20)) {
            let mask: PuSet = pus.into_iter().map(PuId).collect();
            let line = format!("thread {program} {tid} {mask} {comm}");
            prop_assert_eq!(thread_masks(&line).unwrap(), vec![ThreadMask { program, tid, comm, mask }]);
        }
    }

    fn four_by_two() -> Topology {
        GuestTopology::smt(4, 2).topology().unwrap()
    }

    /// Threads from `(comm, mask)`, numbered from 1.
    fn masks(threads: &[(&str, &str)]) -> Vec<ThreadMask> {
        let lines: Vec<String> = threads
            .iter()
            .zip(1..)
            .map(|((comm, mask), tid)| format!("thread {tid} {tid} {mask} {comm}"))
            .collect();
        thread_masks(&lines.join("\n")).unwrap()
    }

    fn spread(threads: &[(&str, &str)]) -> Result<(), String> {
        check_fp_spread(&masks(threads), &four_by_two())
    }

    fn paired(threads: &[(&str, &str)]) -> Result<(), String> {
        check_fp_paired_with_light(&masks(threads), &four_by_two())
    }

    #[test]
    fn a_core_each_is_a_spread() {
        assert_eq!(
            spread(&[("fp-0", "0"), ("fp-0", "2-3"), ("fp-0", "5")]),
            Ok(())
        );
    }

    #[test]
    fn two_on_one_core_are_named() {
        let error = spread(&[("fp-0", "0"), ("fp-0", "1"), ("int-0", "0-7")]).unwrap_err();
        assert_eq!(
            error,
            "core 0 has fp-0 (1) on CPUs 0 and fp-0 (2) on CPUs 1, more than 1"
        );
    }

    #[test]
    fn free_threads_and_no_threads_are_no_spread() {
        assert!(
            spread(&[("fp-0", "0-7")])
                .unwrap_err()
                .contains("not confined")
        );
        assert!(
            spread(&[("fp-0", "9")])
                .unwrap_err()
                .contains("not confined")
        );
        assert!(
            spread(&[("int-0", "0")])
                .unwrap_err()
                .contains("no fp thread")
        );
    }

    #[test]
    fn more_fp_threads_than_cores_share_evenly() {
        let mut threads = vec![
            ("fp-0", "0"),
            ("fp-0", "2"),
            ("fp-0", "4"),
            ("fp-0", "6"),
            ("fp-0", "7"),
        ];
        assert_eq!(spread(&threads), Ok(()));
        threads.push(("fp-0", "6-7"));
        assert!(spread(&threads).is_err());
    }

    #[test]
    fn pairs_need_a_light_thread_each() {
        assert_eq!(
            paired(&[("fp-0", "0"), ("fp-0", "2"), ("int-0", "1"), ("int-0", "3")]),
            Ok(())
        );
        assert_eq!(paired(&[("fp-0", "0-1"), ("int-0", "0-7")]), Ok(()));
        let error = paired(&[("fp-0", "0"), ("fp-0", "2"), ("int-0", "1"), ("int-0", "1")]);
        assert_eq!(
            error.unwrap_err(),
            "no light thread is left that may run beside fp on CPUs 3 of core 1"
        );
    }

    #[test]
    fn a_core_full_of_fp_has_no_pair() {
        assert!(paired(&[("fp-0", "0"), ("fp-0", "0-1"), ("int-0", "0-7")]).is_err());
    }

    #[test]
    fn light_threads_are_moved_up_where_that_helps() {
        assert_eq!(
            paired(&[
                ("fp-0", "0"),
                ("fp-0", "2"),
                ("int-0", "1,3"),
                ("int-0", "1")
            ]),
            Ok(())
        );
    }

    #[test]
    fn sightings_are_compared_thread_by_thread() {
        let old = masks(&[("fp-0", "0-7"), ("int-0", "0-7")]);
        assert_eq!(check_same_masks(&old, &old), Ok(()));
        let moved = masks(&[("fp-0", "0-7"), ("int-0", "3")]);
        assert_eq!(
            check_same_masks(&old, &moved).unwrap_err(),
            "int-0 (2) on CPUs 3 had CPUs 0-7"
        );
        assert!(
            check_same_masks(&old, &old[..1])
                .unwrap_err()
                .ends_with("is gone")
        );
        assert!(
            check_same_masks(&old[..1], &old)
                .unwrap_err()
                .ends_with("is new")
        );
    }

    proptest! {
        /// One fp thread on any way of each of some cores passes; moving one next to another fails.
        #[test]
        fn spreads_pass_until_two_meet(cores in 2u32..9, ways in 2u32..9, way: prop::sample::Index, used in 2usize..9) {
            let topology = GuestTopology::smt(cores, ways).topology().unwrap();
            let way = way.index(ways as usize);
            let used = used.min(cores as usize);
            let on = |core: usize, way: usize| topology.cores()[core].pus[way].to_string();
            let mut pus: Vec<String> = (0..used).map(|core| on(core, way)).collect();
            let check = |pus: &[String]| {
                let threads: Vec<(&str, &str)> = pus.iter().map(|pu| ("fp-0", pu.as_str())).collect();
                check_fp_spread(&masks(&threads), &topology)
            };
            prop_assert_eq!(check(&pus), Ok(()));
            pus[1] = on(0, (way + 1) % ways as usize);
            prop_assert!(check(&pus).is_err());
        }
    }
}
