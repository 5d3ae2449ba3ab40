//! The processes of a program: a process tree, as `/proc` has it at the moment.

use crate::proc::{ProcError, Stat, numbers_in, read_stat, unless_gone};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Processes by pid, each with its leader's line of `stat`.
pub(crate) type ProgramProcesses = BTreeMap<u32, Stat>;

/// Reads these processes, as far as they are there.
///
/// # Errors
/// If one of them cannot be read although it may be there.
pub(crate) fn read_processes(
    root: &Path,
    pids: impl IntoIterator<Item = u32>,
) -> Result<ProgramProcesses, ProcError> {
    let mut members = ProgramProcesses::new();
    for pid in pids {
        let stat = unless_gone(read_stat(root, pid, pid))?;
        members.extend(stat.map(|stat| (pid, stat)));
    }
    Ok(members)
}

/// Reads these processes and all below them, as far as the parents between still live.
///
/// # Errors
/// If one of these processes cannot be read, or others cannot for the moment: a part of the program
/// would be missing.
pub(crate) fn tree(root: &Path, pids: &BTreeSet<u32>) -> Result<ProgramProcesses, ProcError> {
    let mut all = ProgramProcesses::new();
    for pid in numbers_in(&root.join("proc"))? {
        match read_stat(root, pid, pid) {
            Ok(stat) => drop(all.insert(pid, stat)),
            Err(ProcError::Gone) => {}
            Err(error) if error.is_transient() || pids.contains(&pid) => return Err(error),
            // Processes of other users may be hidden.
            Err(_) => {}
        }
    }
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&pid, stat) in &all {
        children.entry(stat.parent_pid).or_default().push(pid);
    }
    let mut members = ProgramProcesses::new();
    let mut open: Vec<u32> = pids.iter().copied().collect();
    while let Some(pid) = open.pop() {
        if let Some(stat) = all.remove(&pid) {
            members.insert(pid, stat);
            open.extend(children.remove(&pid).into_iter().flatten());
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;

    #[test]
    fn a_tree_has_all_below_its_roots_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, parent) in [(10, 1), (11, 10), (12, 11), (20, 1), (21, 20)] {
            process(dir.path(), pid, parent, &[(pid, "x", 1)]);
        }
        let found = tree(dir.path(), &BTreeSet::from([10, 21, 99])).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [10, 11, 12, 21]);
    }

    #[test]
    fn process_that_cannot_be_read_is_not_left_out() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(10, "x", 1)]);
        // A folder in place of a file answers EISDIR to every user.
        std::fs::create_dir_all(dir.path().join("proc/11/task/11/stat")).unwrap();
        let whole = tree(dir.path(), &BTreeSet::from([10, 11]));
        assert!(matches!(whole, Err(ProcError::Io { .. })), "{whole:?}");
        assert!(read_processes(dir.path(), [10, 11]).is_err());
        let without = tree(dir.path(), &BTreeSet::from([10])).unwrap();
        assert_eq!(without.into_keys().collect::<Vec<_>>(), [10]);
    }
}
