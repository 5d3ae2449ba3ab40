//! Threads and child processes as `/proc` lists them.

use super::ProcError;
use super::stat::Stat;
use crate::read;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The directory of one thread.
pub(crate) fn thread_dir(root: &Path, pid: u32, tid: u32) -> PathBuf {
    root.join(format!("proc/{pid}/task/{tid}"))
}

/// Reads a thread's stat file.
pub(crate) fn read_stat(root: &Path, pid: u32, tid: u32) -> Result<Stat, ProcError> {
    let path = thread_dir(root, pid, tid).join("stat");
    parse_stat(&path)
}

/// Reads a process's stat file: its times are those of all its threads, ended ones too.
pub(crate) fn read_process(root: &Path, pid: u32) -> Result<Stat, ProcError> {
    parse_stat(&root.join(format!("proc/{pid}/stat")))
}

fn parse_stat(path: &Path) -> Result<Stat, ProcError> {
    let text = read::bytes(path).map_err(|e| ProcError::io(path, &e))?;
    Stat::parse(&text).map_err(|e| ProcError::malformed(path, e))
}

/// The tids of a process, in order.
///
/// # Errors
/// When the process is gone or its directory cannot be read.
pub fn threads_of(root: &Path, pid: u32) -> Result<Vec<u32>, ProcError> {
    numbers_in(&root.join(format!("proc/{pid}/task")))
}

/// Process id of the parent of a process; `None` if the process is gone.
pub(crate) fn parent_of(root: &Path, pid: u32) -> Option<u32> {
    Some(read_process(root, pid).ok()?.parent_pid)
}

/// `pids` and all processes below them in the tree of parents, as far as the
/// parents still live: a process whose parent has exited belongs to another.
///
/// # Errors
/// When the list of processes cannot be read.
pub fn process_tree(root: &Path, pids: &BTreeSet<u32>) -> Result<BTreeSet<u32>, ProcError> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in numbers_in(&root.join("proc"))? {
        match read_process(root, pid) {
            Ok(stat) => children.entry(stat.parent_pid).or_default().push(pid),
            Err(error) if error.is_transient() => return Err(error),
            // A process that ends meanwhile is no child any more.
            Err(_) => {}
        }
    }
    Ok(closure(pids, &children))
}

fn closure(pids: &BTreeSet<u32>, children: &BTreeMap<u32, Vec<u32>>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut open: Vec<u32> = pids.iter().copied().collect();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

/// Returns the number of the newest thread or process of any user (`proc_loadavg(5)`); `None` if
/// the host does not show it.
pub(crate) fn latest_number(root: &Path) -> Option<u32> {
    let text = read::text(&root.join("proc/loadavg"))?;
    text.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// Returns `None` for what is gone.
pub(crate) fn unless_gone<T>(read: Result<T, ProcError>) -> Result<Option<T>, ProcError> {
    match read {
        Err(ProcError::Gone) => Ok(None),
        read => read.map(Some),
    }
}

/// The numbers among the names in a directory, in order.
pub(crate) fn numbers_in(dir: &Path) -> Result<Vec<u32>, ProcError> {
    let failed = |error: std::io::Error| ProcError::io(dir, &error);
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        // A list that breaks off would make the rest look as if it had ended.
        let name = entry.map_err(failed)?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Processes by pid, each with its leader's line of `stat`.
pub(crate) type ProgramProcesses = BTreeMap<u32, Stat>;

/// Reads these processes; the ones that are gone are left out.
///
/// # Errors
/// If a process cannot be read although it may be there.
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
/// If one of these processes cannot be read, or others cannot at the moment: a part of the program
/// would be missing.
pub(crate) fn read_process_tree(
    root: &Path,
    pids: &BTreeSet<u32>,
) -> Result<ProgramProcesses, ProcError> {
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
pub(crate) mod tests {
    use super::super::stat::tests::line;
    use super::*;
    use std::fs;

    /// Puts a process with these threads into a made-up `/proc`.
    pub(crate) fn process(root: &Path, pid: u32, parent: u32, threads: &[(u32, &str, u64)]) {
        for &(tid, comm, start) in threads {
            let dir = thread_dir(root, pid, tid);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("stat"), line(tid, comm, parent, start)).unwrap();
            fs::write(dir.join("status"), "Uid:\t0\t0\t0\t0\n").unwrap();
            fs::write(dir.join("schedstat"), "1000 200 3\n").unwrap();
        }
        let leader = line(pid, "leader", parent, 1);
        fs::write(root.join(format!("proc/{pid}/stat")), leader).unwrap();
    }

    #[test]
    fn descendants_are_found_and_strangers_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, parent) in [(10, 1), (11, 10), (12, 11), (20, 1), (21, 20)] {
            process(dir.path(), pid, parent, &[(pid, "x", 1)]);
        }
        let found = process_tree(dir.path(), &BTreeSet::from([10])).unwrap();
        assert_eq!(found, BTreeSet::from([10, 11, 12]));
    }

    #[test]
    fn the_latest_number_changes_with_every_thread() {
        let Some(before) = latest_number(Path::new("/")) else {
            return;
        };
        let thread = std::thread::spawn(|| latest_number(Path::new("/")));
        assert_ne!(thread.join().unwrap(), Some(before));
    }

    #[test]
    fn threads_are_listed_in_order() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(12, "b", 1), (10, "a", 1)]);
        assert_eq!(threads_of(dir.path(), 10).unwrap(), [10, 12]);
        assert_eq!(threads_of(dir.path(), 99), Err(ProcError::Gone));
    }

    #[test]
    fn tree_has_exactly_roots_and_descendants() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, parent) in [(10, 1), (11, 10), (12, 11), (20, 1), (21, 20)] {
            process(dir.path(), pid, parent, &[(pid, "x", 1)]);
        }
        let found = read_process_tree(dir.path(), &BTreeSet::from([10, 21, 99])).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [10, 11, 12, 21]);
    }

    #[test]
    fn unreadable_process_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(10, "x", 1)]);
        // A folder in place of a file answers EISDIR to every user.
        fs::create_dir_all(dir.path().join("proc/11/task/11/stat")).unwrap();
        let whole = read_process_tree(dir.path(), &BTreeSet::from([10, 11]));
        assert!(matches!(whole, Err(ProcError::Io { .. })), "{whole:?}");
        assert!(read_processes(dir.path(), [10, 11]).is_err());
        let without = read_process_tree(dir.path(), &BTreeSet::from([10])).unwrap();
        assert_eq!(without.into_keys().collect::<Vec<_>>(), [10]);
    }
}
