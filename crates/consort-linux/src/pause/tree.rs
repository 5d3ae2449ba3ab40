//! The processes of a program: a process tree, as `/proc` has it at the moment.

use crate::proc::{Stat, numbers_in, read_stat};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Processes by pid, each with its leader's line of `stat`.
pub(crate) type Members = BTreeMap<u32, Stat>;

/// Reads these processes, as far as they are there.
pub(crate) fn those(root: &Path, pids: impl IntoIterator<Item = u32>) -> Members {
    let read = |pid| Some((pid, read_stat(root, pid, pid).ok()?));
    pids.into_iter().filter_map(read).collect()
}

/// Reads these processes and all below them, as far as the parents between still live.
pub(crate) fn tree(root: &Path, pids: &BTreeSet<u32>) -> Members {
    let mut all = those(root, numbers_in(&root.join("proc")).unwrap_or_default());
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&pid, stat) in &all {
        children.entry(stat.parent_pid).or_default().push(pid);
    }
    let mut members = Members::new();
    let mut open: Vec<u32> = pids.iter().copied().collect();
    while let Some(pid) = open.pop() {
        if let Some(stat) = all.remove(&pid) {
            members.insert(pid, stat);
            open.extend(children.remove(&pid).into_iter().flatten());
        }
    }
    members
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
        let found = tree(dir.path(), &BTreeSet::from([10, 21, 99]));
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [10, 11, 12, 21]);
    }
}
