//! The processes that belong to managed programs, even when parents are dead.
//!
//! A process belongs to a managed program when it is one; when its parent belongs to one; when its
//! session was founded by a managed program; when its process group was founded by a managed
//! program that is not itself the root of a tree (a root may share its group with strangers: the
//! other commands of a shell pipeline); or when it carries the run's marker in its environment.

use super::host::{Host, ProcessEntry};
use super::journal_state::JournalState;
use super::launch::RUN_MARKER;
use super::record::ManagedProgram;
use crate::proc::ProcError;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// For each process of the family, the managed program that it is treated as a part of.
pub(crate) type Family = BTreeMap<u32, u32>;

/// Finds the family of a run.
///
/// # Errors
/// If a process cannot be read for the moment.
pub(crate) fn find(host: &Host, ledger: &JournalState, run: &str) -> Result<Family, ProcError> {
    let processes = host.processes()?;
    let mut family = find_recorded_programs(ledger, &processes);
    let marked = |process: &ProcessEntry| host.has_variable(process.pid, RUN_MARKER, run);
    add_strays(ledger, &processes, &mut family, marked)?;
    add_descendants(&processes, &mut family);
    Ok(family)
}

fn find_recorded_programs(ledger: &JournalState, processes: &[ProcessEntry]) -> Family {
    let managed = |p: &&ProcessEntry| {
        let program = ledger.programs.get(&p.pid);
        program.is_some_and(|program| program.start_ticks == p.stat.start_ticks)
    };
    let managed = processes.iter().filter(managed);
    managed.map(|p| (p.pid, p.pid)).collect()
}

/// Adds processes whose parents may be dead, by session, group and marker.
fn add_strays(
    ledger: &JournalState,
    processes: &[ProcessEntry],
    family: &mut Family,
    marked: impl Fn(&ProcessEntry) -> Result<bool, ProcError>,
) -> Result<(), ProcError> {
    let Some(first_root) = ledger.programs.values().find(|p| p.root == p.pid) else {
        return Ok(());
    };
    let starts: BTreeMap<u32, u64> = processes
        .iter()
        .map(|p| (p.pid, p.stat.start_ticks))
        .collect();
    let programs = ledger.programs.values();
    let earliest = programs.map(|p| p.start_ticks).min().unwrap_or(0);
    for process in processes {
        // A process that is older than the first program cannot descend from one. This spares
        // reading its environment.
        if family.contains_key(&process.pid) || process.stat.start_ticks < earliest {
            continue;
        }
        if let Some(owner) = founder(ledger, process, &starts) {
            family.insert(process.pid, owner);
        } else if marked(process)? {
            family.insert(process.pid, first_root.pid);
        }
    }
    Ok(())
}

/// The managed program that founded a process's session or group. The number of a dead founder is
/// not given away while its session or group lasts.
fn founder(
    ledger: &JournalState,
    process: &ProcessEntry,
    starts: &BTreeMap<u32, u64>,
) -> Option<u32> {
    let founded = |id: u32, led: fn(&ManagedProgram) -> bool| {
        let program = ledger.programs.get(&id).filter(|program| led(program))?;
        let start = starts.get(&id).unwrap_or(&program.start_ticks);
        (*start == program.start_ticks).then_some(id)
    };
    founded(process.stat.session, |p| p.session == p.pid)
        .or_else(|| founded(process.stat.group, |p| p.pgrp == p.pid && p.root != p.pid))
}

fn add_descendants(processes: &[ProcessEntry], family: &mut Family) {
    let mut grown = true;
    while grown {
        grown = false;
        for process in processes {
            let Some(&owner) = family.get(&process.stat.parent_pid) else {
                continue;
            };
            if let Entry::Vacant(place) = family.entry(process.pid) {
                place.insert(owner);
                grown = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::affinity::OriginalMask;
    use super::super::record::JournalRecord;
    use super::*;
    use crate::proc::{Stat, line_of};

    fn process(pid: u32, parent: u32, group: u32, session: u32) -> ProcessEntry {
        let line = line_of(pid, "x", parent, u64::from(pid), 0, 0);
        let stat = Stat {
            group,
            session,
            ..Stat::parse(&line).unwrap()
        };
        ProcessEntry { pid, stat }
    }

    fn program(pid: u32, root: u32, pgrp: u32, session: u32) -> JournalRecord {
        let pus = "0".parse().unwrap();
        JournalRecord::Program(ManagedProgram {
            pid,
            start_ticks: u64::from(pid),
            root,
            pgrp,
            session,
            original: OriginalMask { pus, open: true },
        })
    }

    fn check(
        programs: Vec<JournalRecord>,
        processes: &[ProcessEntry],
        marked: u32,
        expect: &[(u32, u32)],
    ) {
        let ledger = JournalState::new(programs);
        let mut family = find_recorded_programs(&ledger, processes);
        add_strays(&ledger, processes, &mut family, |p| Ok(p.pid == marked)).unwrap();
        add_descendants(processes, &mut family);
        assert_eq!(family, expect.iter().copied().collect());
    }

    #[test]
    fn descendants_go_by_their_nearest_managed_ancestor() {
        let processes = [
            process(13, 12, 1, 1),
            process(12, 11, 1, 1),
            process(11, 10, 1, 1),
            process(10, 1, 1, 1),
            process(20, 1, 1, 1),
        ];
        let programs = vec![program(10, 10, 1, 1), program(12, 10, 1, 1)];
        check(
            programs,
            &processes,
            0,
            &[(10, 10), (11, 10), (12, 12), (13, 12)],
        );
    }

    #[test]
    fn orphans_are_found_by_session_group_and_marker() {
        let processes = [
            process(15, 1, 15, 10),
            process(16, 1, 12, 2),
            process(17, 1, 17, 17),
            process(18, 17, 18, 18),
        ];
        let programs = vec![program(10, 10, 10, 10), program(12, 10, 12, 2)];
        check(
            programs,
            &processes,
            17,
            &[(15, 10), (16, 12), (17, 10), (18, 10)],
        );
    }

    #[test]
    fn rest_of_a_pipeline_is_not_family() {
        let processes = [process(10, 1, 10, 2), process(11, 1, 10, 2)];
        check(vec![program(10, 10, 10, 2)], &processes, 0, &[(10, 10)]);
    }

    #[test]
    fn a_reused_pid_is_not_family() {
        let mut reused = process(10, 1, 10, 10);
        reused.stat.start_ticks = 99;
        check(vec![program(10, 10, 10, 10)], &[reused], 0, &[]);
    }
}
