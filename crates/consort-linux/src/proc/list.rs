//! Threads and child processes as `/proc` lists them.

use super::ProcError;
use super::stat::Stat;
use crate::read;
use consort_core::ThreadId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

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

/// Text of a status file. A thread's name cannot imitate a line: the kernel escapes newlines in
/// this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcStatus(String);

impl ProcStatus {
    pub(crate) fn read(path: &Path) -> Result<Self, ProcError> {
        let text = read::bytes(path).map_err(|e| ProcError::io(path, &e))?;
        Ok(Self(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Text after a field's name and colon, without surrounding blanks; `None` without such a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.trim())
    }

    /// Value of a field that holds nothing else.
    pub(crate) fn value<T: FromStr>(&self, name: &str) -> Option<T> {
        self.field(name)?.parse().ok()
    }
}

#[cfg(test)]
impl From<&str> for ProcStatus {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// The name of a process, as the kernel has it.
pub(crate) fn name_of(root: &Path, pid: u32) -> Result<String, ProcError> {
    let path = root.join("proc").join(pid.to_string()).join("comm");
    let name = read::bytes(&path).map_err(|error| ProcError::io(&path, &error))?;
    let name = String::from_utf8_lossy(&name);
    Ok(name.trim_end_matches('\n').to_owned())
}

/// The users that a thread acts for: real, effective, saved and that of files (`credentials(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadUsers([u32; 4]);

impl ThreadUsers {
    /// Users of the first thread of a process.
    pub(crate) fn from_process(root: &Path, pid: u32) -> Result<Self, ProcError> {
        let path = root.join("proc").join(pid.to_string()).join("status");
        Ok(Self::from_status(&ProcStatus::read(&path)?))
    }

    /// Users of a thread.
    pub(crate) fn from_thread(root: &Path, id: ThreadId) -> Result<Self, ProcError> {
        let status = ProcStatus::read(&thread_dir(root, id.pid, id.tid).join("status"))?;
        // Read after the users: they are those of this thread and of no later one.
        match read_stat(root, id.pid, id.tid)?.start_ticks == id.start_ticks {
            true => Ok(Self::from_status(&status)),
            false => Err(ProcError::Gone),
        }
    }

    #[cfg(test)]
    pub(crate) fn of_uids(uids: [u32; 4]) -> Self {
        Self(uids)
    }

    /// Users as a status says; that of no account (`u32::MAX`) in place of a missing one.
    fn from_status(status: &ProcStatus) -> Self {
        let text = status.field("Uid").unwrap_or_default();
        let mut uids = text.split_ascii_whitespace().map(|uid| uid.parse().ok());
        Self(std::array::from_fn(|_| {
            uids.next().flatten().unwrap_or(u32::MAX)
        }))
    }

    /// The real user, who started the thread.
    pub(crate) fn real_uid(self) -> u32 {
        self.0[0]
    }

    /// Returns a user other than this one that the thread acts for or can become, as one that
    /// executes a setuid file; `None` if the thread belongs to the user alone.
    pub(crate) fn other_than(self, uid: u32) -> Option<u32> {
        self.0.into_iter().find(|&of| of != uid)
    }
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

#[cfg(test)]
mod status_tests {
    use super::*;
    use crate::proc::process;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = ProcStatus::from("Name:\tx\nNStgid:\t1\nTgid:\t42\nGroups:\t\n");
        assert_eq!(status.value::<u32>("Tgid"), Some(42));
        assert_eq!(status.value::<u32>("Name"), None);
        assert_eq!(status.field("Groups"), Some(""));
        assert_eq!(status.field("Tg"), None);
    }

    #[test]
    fn a_process_that_is_not_there_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let status = ProcStatus::read(&dir.path().join("status"));
        assert_eq!(status, Err(ProcError::Gone));
    }

    #[test]
    fn this_process_has_a_name_and_an_owner() {
        let root = Path::new("/");
        let own = std::process::id();
        assert!(name_of(root, own).is_ok_and(|name| !name.is_empty()));
        let users = ThreadUsers::from_process(root, own).unwrap();
        assert_eq!(users.0[0], nix::unistd::getuid().as_raw());
        let none = ThreadUsers::from_process(root, u32::MAX);
        assert_eq!(none, Err(ProcError::Gone));
    }

    #[test]
    fn setuid_program_does_not_belong_to_its_user_alone() {
        let of = |uids: &str| {
            let status = format!("Uid:\t{uids}\nGid:\t7\t7\t7\t7\n");
            ThreadUsers::from_status(&ProcStatus::from(status.as_str()))
        };
        assert_eq!(of("7\t7\t7\t7").other_than(7), None);
        assert_eq!(of("7\t0\t0\t0").other_than(7), Some(0));
        // One that can become root again at any time.
        assert_eq!(of("7\t7\t0\t7").other_than(7), Some(0));
        assert_eq!(of("").other_than(7), Some(u32::MAX));
    }

    #[test]
    fn users_of_later_thread_are_not_returned() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(11, "x", 5)]);
        let id = |start_ticks| ThreadId {
            pid: 10,
            tid: 11,
            start_ticks,
        };
        let users = ThreadUsers::from_thread(dir.path(), id(5)).unwrap();
        assert_eq!(users.other_than(0), None);
        let later = ThreadUsers::from_thread(dir.path(), id(4));
        assert_eq!(later, Err(ProcError::Gone));
    }
}
