//! CPU time of programs, with that of threads and processes that came and went unseen.
//!
//! The kernel adds the time of a thread that ends to its process, and the time of a process that is
//! waited for to its parent (`utime` to `cstime` of `proc_pid_stat(5)`). So nothing is lost as long
//! as some process of the program is read after the end; events that count would cost each switch
//! and each clone.
//!
//! Pitfall: the last part of a process that its parent does not wait for, or whose parent is not
//! one of the program, is lost from its last reading on.

use crate::proc::{ProcError, RunState, Stat, now_ticks, read_process, tick_ns, unless_gone};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// CPU time of processes, and of all that they waited for.
#[derive(Debug)]
pub struct ProcessTimes {
    root: PathBuf,
    processes: BTreeMap<u32, ProcessCpuTime>,
    /// Time of processes that are gone, as far as no other process has it, ticks.
    gone: i64,
    /// Time of the last reading, ticks since boot.
    read_ticks: u64,
    /// True once a child of this process is gone, whose time is among that of our own children.
    waited: bool,
}

/// Times of a process that is there, ticks.
#[derive(Clone, Copy, Debug)]
struct ProcessCpuTime {
    start: u64,
    parent: u32,
    /// Time from which on it is counted, ticks since boot.
    since: u64,
    /// Times of the process and of its children before that.
    base: i64,
    own: i64,
    children: i64,
    /// The latter at the reading before.
    earlier: i64,
}

impl ProcessCpuTime {
    fn total_ticks(&self) -> i64 {
        self.own + self.children
    }
}

impl ProcessTimes {
    /// An account without processes, for those below `root`.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            processes: BTreeMap::new(),
            gone: 0,
            read_ticks: now_ticks(),
            waited: false,
        }
    }

    /// Reads the processes of the program, which are these now, and notes which have ended since.
    pub fn read(&mut self, pids: &BTreeSet<u32>) {
        let begun = now_ticks();
        let mut are_all_known = true;
        for &pid in pids {
            are_all_known &= self.try_enter(pid).is_ok();
        }
        let mut left: BTreeMap<u32, ProcessCpuTime> = BTreeMap::new();
        let known: Vec<u32> = self.processes.keys().copied().collect();
        for pid in known {
            let stat = self.stat(pid);
            let Some(process) = self.processes.get_mut(&pid) else {
                continue;
            };
            match stat {
                // It keeps what it had.
                Err(_) => process.earlier = process.children,
                Ok(Some(stat)) => {
                    process.own = ticks(stat.cpu_ticks);
                    process.earlier = process.children;
                    process.children = ticks(stat.waited_ticks);
                    if !pids.contains(&pid) && stat.state != RunState::Dead {
                        // It was let go of.
                        self.gone += process.total_ticks() - process.base;
                        self.processes.remove(&pid);
                    }
                }
                Ok(None) => {
                    left.insert(pid, *process);
                    self.processes.remove(&pid);
                }
            }
        }
        self.account_exits(&left);
        // One that was not read began after the reading before, and still counts from its start.
        if are_all_known {
            self.read_ticks = begun;
        }
    }

    /// Time since the processes were found, of all that is gone too, ns. `children_ns` is the time
    /// of our own children that were waited for.
    pub fn total_ns(&self, children_ns: u64) -> u64 {
        let there: i64 = self
            .processes
            .values()
            .map(|p| p.total_ticks() - p.base)
            .sum();
        let total = u64::try_from(there + self.gone).unwrap_or(0) * tick_ns();
        total + if self.waited { children_ns } else { 0 }
    }

    /// Takes a process in: from its start if it started after the last reading, or is a child of one
    /// that is known or of ours, else from now on.
    pub fn enter(&mut self, pid: u32) {
        // One that cannot be read for the moment is taken in by the next reading.
        let _ = self.try_enter(pid);
    }

    fn try_enter(&mut self, pid: u32) -> Result<(), ProcError> {
        let Some(stat) = self.stat_of_any(pid)? else {
            return Ok(());
        };
        let known = self.processes.get(&pid);
        if known.is_some_and(|process| process.start == stat.start_ticks) {
            return Ok(());
        }
        let parent = self.processes.get(&stat.parent_pid);
        let is_child = parent.is_some_and(|parent| parent.since <= stat.start_ticks);
        let is_whole = stat.start_ticks >= self.read_ticks
            || is_child
            || stat.parent_pid == std::process::id();
        let (own, children) = (ticks(stat.cpu_ticks), ticks(stat.waited_ticks));
        let process = ProcessCpuTime {
            start: stat.start_ticks,
            parent: stat.parent_pid,
            since: if is_whole {
                stat.start_ticks
            } else {
                now_ticks()
            },
            base: if is_whole { 0 } else { own + children },
            own,
            children,
            earlier: children,
        };
        if let Some(old) = self.processes.insert(pid, process) {
            // Its end went unseen, and so did what became of its time.
            self.gone += old.total_ticks() - old.base;
        }
        Ok(())
    }

    /// Books what processes that are gone leave: parents that waited for them have their time.
    fn account_exits(&mut self, left: &BTreeMap<u32, ProcessCpuTime>) {
        let mut of_parents: BTreeMap<u32, Vec<(u32, ProcessCpuTime)>> = BTreeMap::new();
        for (&pid, process) in left {
            let children = of_parents.entry(process.parent).or_default();
            children.push((pid, *process));
        }
        for (pid, children) in of_parents {
            // Read again: it may have waited for them since it was read.
            let stat = self.stat(pid);
            let parent = self.processes.get_mut(&pid);
            if let (Err(_), Some(process)) = (&stat, parent) {
                // What it has of them shows at the next reading, as if they had ended after this one.
                process.children = process.earlier;
                self.processes.extend(children);
                continue;
            }
            let children: Vec<ProcessCpuTime> =
                children.into_iter().map(|(_, child)| child).collect();
            let parent = self.processes.get_mut(&pid);
            let (Ok(Some(stat)), Some(process)) = (stat, parent) else {
                match pid == std::process::id() {
                    true => self.waited = true,
                    false => {
                        self.gone += children
                            .iter()
                            .map(|c| c.total_ticks() - c.base)
                            .sum::<i64>();
                    }
                }
                continue;
            };
            process.children = ticks(stat.waited_ticks);
            let added = process.children - process.earlier;
            let base: i64 = children.iter().map(|child| child.base).sum();
            let last: i64 = children.iter().map(ProcessCpuTime::total_ticks).sum();
            // Children of a parent that ignores SIGCHLD are not added to its times. Each of their
            // times is rounded down to a tick.
            let rounding = ticks(2 * children.len() as u64);
            let missing = last - added;
            self.gone += if missing > rounding { missing } else { 0 } - base;
        }
    }

    /// Stat of a process that is still the one that is known; `None` if that is gone.
    fn stat(&self, pid: u32) -> Result<Option<Stat>, ProcError> {
        let Some(start) = self.processes.get(&pid).map(|process| process.start) else {
            return Ok(None);
        };
        let stat = self.stat_of_any(pid)?;
        Ok(stat.filter(|stat| stat.start_ticks == start))
    }

    fn stat_of_any(&self, pid: u32) -> Result<Option<Stat>, ProcError> {
        unless_gone(read_process(&self.root, pid))
    }
}

fn ticks(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Writes a process with these times, in ticks.
    fn process(root: &Path, pid: u32, parent: u32, start: u64, own: u64, children: u64) {
        let folder = root.join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let mut fields = vec!["0".to_owned(); 50];
        fields[0] = "S".to_owned();
        for (field, value) in [
            (4, u64::from(parent)),
            (14, own),
            (16, children),
            (22, start),
        ] {
            fields[field - 3] = value.to_string();
        }
        fs::write(
            folder.join("stat"),
            format!("{pid} (x) {}\n", fields.join(" ")),
        )
        .unwrap();
    }

    fn reap(root: &Path, pid: u32) {
        fs::remove_dir_all(root.join(format!("proc/{pid}"))).unwrap();
    }

    /// Makes the times of a process unreadable, for every user, without ending it.
    fn hide(root: &Path, pid: u32) {
        let file = root.join(format!("proc/{pid}/stat"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(file).unwrap();
    }

    fn show(root: &Path, pid: u32) {
        fs::remove_dir(root.join(format!("proc/{pid}/stat"))).unwrap();
    }

    fn ticks_of(times: &mut ProcessTimes, pids: &[u32]) -> u64 {
        times.read(&pids.iter().copied().collect());
        times.total_ns(0) / tick_ns()
    }

    #[test]
    fn time_before_the_attachment_is_not_counted() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        process(root, 10, 1, 5, 700, 50);
        assert_eq!(ticks_of(&mut times, &[10]), 0);
        process(root, 10, 1, 5, 730, 60);
        assert_eq!(ticks_of(&mut times, &[10]), 40);
    }

    #[test]
    fn time_of_waited_child_is_counted_once() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        process(root, 10, 1, 5, 700, 0);
        process(root, 11, 10, 6, 20, 0);
        assert_eq!(ticks_of(&mut times, &[10, 11]), 0);
        process(root, 11, 10, 6, 50, 0);
        assert_eq!(ticks_of(&mut times, &[10, 11]), 30);
        reap(root, 11);
        // 20 of its 60 ticks, and those of one that nobody has seen.
        process(root, 10, 1, 5, 705, 60 + 9);
        assert_eq!(ticks_of(&mut times, &[10]), 5 + 40 + 9);
    }

    #[test]
    fn time_of_unwaited_child_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        let late = now_ticks() + 1_000;
        process(root, 10, 1, late, 10, 0);
        process(root, 11, 10, late, 40, 0);
        process(root, 12, 1, late, 7, 0);
        assert_eq!(ticks_of(&mut times, &[10, 11, 12]), 57);
        reap(root, 11);
        reap(root, 12);
        assert_eq!(ticks_of(&mut times, &[10]), 57);
    }

    #[test]
    fn process_that_cannot_be_read_keeps_its_time() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        process(root, 10, 1, 5, 700, 0);
        assert_eq!(ticks_of(&mut times, &[10]), 0);
        process(root, 10, 1, 5, 730, 0);
        assert_eq!(ticks_of(&mut times, &[10]), 30);
        hide(root, 10);
        assert_eq!(ticks_of(&mut times, &[10]), 30);
        show(root, 10);
        process(root, 10, 1, 5, 740, 0);
        assert_eq!(ticks_of(&mut times, &[10]), 40);
    }

    #[test]
    fn unreadable_parent_counts_child_time_once() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        let late = now_ticks() + 1_000;
        process(root, 10, 1, late, 10, 5);
        process(root, 11, 10, late, 40, 0);
        assert_eq!(ticks_of(&mut times, &[10, 11]), 55);
        hide(root, 10);
        reap(root, 11);
        assert_eq!(ticks_of(&mut times, &[10]), 55);
        show(root, 10);
        process(root, 10, 1, late, 10, 5 + 42);
        assert_eq!(ticks_of(&mut times, &[10]), 57);
    }

    #[test]
    fn process_that_is_read_late_counts_from_its_start() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        // So that it starts after the reading before, whatever the clock shows.
        times.read_ticks = 0;
        process(root, 10, 1, 1, 7, 0);
        hide(root, 10);
        assert_eq!(ticks_of(&mut times, &[10]), 0);
        show(root, 10);
        process(root, 10, 1, 1, 9, 0);
        assert_eq!(ticks_of(&mut times, &[10]), 9);
    }

    #[test]
    fn released_process_keeps_its_time() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut times = ProcessTimes::new(root);
        let late = now_ticks() + 1_000;
        process(root, 10, 1, late, 10, 0);
        assert_eq!(ticks_of(&mut times, &[10]), 10);
        process(root, 10, 1, late, 12, 0);
        assert_eq!(ticks_of(&mut times, &[]), 12);
        process(root, 10, 1, late, 99, 0);
        assert_eq!(ticks_of(&mut times, &[]), 12);
    }
}
