//! The set of threads of the watched processes, kept up to date from records and scans.

use super::manage::{
    AnnouncedThread, CallerCredentials, FoundThread, PendingThreads, UnmanageableReason, look_up,
};
use crate::perf::record::{PerfRecord, TaskRecord};
use crate::proc::{ProcError, process_tree, read_stat, threads_of};
use crate::sampling::RecordBatch;
use consort_core::ThreadId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most threads that are looked up per round; the rest wait for the next.
const LOOK_UPS_PER_ROUND: usize = 1000;

/// Keeps the set of threads of some processes and their offspring.
///
/// Feed it every [`RecordBatch`] in order. A thread that ends before it could be
/// looked up is counted by [`ThreadTracker::short_lived_count`] and never listed. When
/// records were lost, the next round scans `/proc`.
#[derive(Debug)]
pub struct ThreadTracker {
    root: PathBuf,
    me: CallerCredentials,
    roots: BTreeSet<u32>,
    known: BTreeMap<u32, KnownThread>,
    pending: PendingThreads,
    short_lived: u64,
    scan_due: bool,
}

#[derive(Debug)]
struct KnownThread {
    id: ThreadId,
    name: Arc<str>,
    /// True once there was a record of the thread's beginning; a scan may be ahead of the records.
    recorded: bool,
}

impl ThreadTracker {
    /// Watches the processes `pids` and all that they start; the first round scans.
    ///
    /// # Errors
    /// When Consort's own credentials cannot be read below `root`.
    pub fn new(root: &Path, pids: &[u32]) -> Result<Self, ProcError> {
        Ok(Self {
            root: root.to_owned(),
            me: CallerCredentials::read(root)?,
            roots: pids.iter().copied().collect(),
            known: BTreeMap::new(),
            pending: PendingThreads::default(),
            short_lived: 0,
            scan_due: true,
        })
    }

    /// Watches this process and all that it starts as well; the next round scans.
    pub fn watch(&mut self, pid: u32) {
        self.roots.insert(pid);
        self.scan_due = true;
    }

    /// Processes with threads that are known.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.known.values().map(|known| known.id.pid).collect()
    }

    /// Returns true if threads of this process are known.
    pub fn knows(&self, pid: u32) -> bool {
        self.known.values().any(|known| known.id.pid == pid)
    }

    /// Reason for which this process must be left alone, if it must.
    ///
    /// # Errors
    /// When it is gone, or cannot be read.
    pub fn unmanageable_reason(&self, pid: u32) -> Result<Option<UnmanageableReason>, ProcError> {
        Ok(look_up(&self.root, self.me, pid, pid)?.unmanageable)
    }

    /// Forgets the threads of these processes, so that the next round finds and announces them
    /// again.
    pub fn forget_processes(&mut self, is_its: impl Fn(u32) -> bool) {
        self.known.retain(|_, known| !is_its(known.id.pid));
        self.scan_due = true;
    }

    /// Stops looking for this process in `/proc`. Its known threads, and their children, stay
    /// known.
    pub fn unwatch(&mut self, pid: u32) {
        self.roots.remove(&pid);
    }

    /// Applies one round of records; returns the changes.
    pub fn apply(&mut self, batch: &RecordBatch) -> Vec<ThreadEvent> {
        let mut events = Vec::new();
        for record in &batch.records {
            self.apply_record(record, &mut events);
        }
        if batch.lost > 0 || std::mem::take(&mut self.scan_due) {
            self.scan_into(&mut events);
        }
        self.look_up_pending(&mut events);
        self.pending.next_round();
        events
    }

    /// Compares with `/proc` and returns the changes; the fallback if there are no records.
    pub fn scan(&mut self) -> Vec<ThreadEvent> {
        self.scan_due = false;
        let mut events = Vec::new();
        self.scan_into(&mut events);
        self.look_up_pending(&mut events);
        events
    }

    /// The thread that has this tid now.
    pub fn id_of(&self, tid: u32) -> Option<ThreadId> {
        Some(self.known.get(&tid)?.id)
    }

    /// Number of threads that ended before they could be looked up.
    pub fn short_lived_count(&self) -> u64 {
        self.short_lived
    }

    fn apply_record(&mut self, record: &PerfRecord, events: &mut Vec<ThreadEvent>) {
        match record {
            PerfRecord::Fork(task) => self.note_fork(*task, events),
            PerfRecord::Exit(task) => {
                if self.pending.remove_ended(task.tid) {
                    self.short_lived += 1;
                } else {
                    self.drop_known(task.tid, events);
                }
                // Records of several rings may come in another order: a start may follow its end.
                self.pending.remember_end(task.tid, task.time_ns);
            }
            PerfRecord::Comm {
                pid,
                tid,
                exec,
                name,
                ..
            } => {
                if *exec {
                    // An exec ends all threads of the process but the one that becomes its leader.
                    self.short_lived += self.pending.drop_other_threads(*pid);
                    let others = self.known.values().map(|known| known.id);
                    let others = others.filter(|id| id.pid == *pid && id.tid != *pid);
                    for id in others.collect::<Vec<_>>() {
                        self.drop_known(id.tid, events);
                    }
                }
                self.rename(*pid, *tid, name, events);
            }
            // A sample of a thread that was never announced: its record was lost.
            PerfRecord::Sample { stamp, .. } => self.announce_unknown(stamp.pid, stamp.tid),
            _ => {}
        }
    }

    fn note_fork(&mut self, task: TaskRecord, events: &mut Vec<ThreadEvent>) {
        if self.mark_recorded(task.tid) {
            return;
        }
        self.drop_known(task.tid, events);
        let thread = AnnouncedThread {
            pid: task.pid,
            parent: Some(task.parent_tid),
        };
        if !self.pending.announce(task.tid, thread, task.time_ns) {
            self.short_lived += 1;
        }
    }

    /// Returns true if a scan found the thread before the record of its beginning came.
    fn mark_recorded(&mut self, tid: u32) -> bool {
        let Some(known) = self.known.get_mut(&tid) else {
            return false;
        };
        let now = read_stat(&self.root, known.id.pid, tid);
        let is_another = now.is_ok_and(|stat| stat.start_ticks != known.id.start_ticks);
        !std::mem::replace(&mut known.recorded, true) && !is_another
    }

    fn rename(&mut self, pid: u32, tid: u32, name: &str, events: &mut Vec<ThreadEvent>) {
        let Some(known) = self.known.get_mut(&tid) else {
            return self.announce_unknown(pid, tid);
        };
        if &*known.name != name {
            known.name = name.into();
            let (id, name) = (known.id, known.name.clone());
            events.push(ThreadEvent::Renamed { id, name });
        }
    }

    fn announce_unknown(&mut self, pid: u32, tid: u32) {
        if !self.known.contains_key(&tid) && !self.pending.contains(tid) {
            let parent = None;
            self.pending
                .announce(tid, AnnouncedThread { pid, parent }, u64::MAX);
        }
    }

    fn drop_known(&mut self, tid: u32, events: &mut Vec<ThreadEvent>) -> bool {
        let known = self.known.remove(&tid);
        let known = known.map(|known| events.push(ThreadEvent::Exited { id: known.id }));
        known.is_some()
    }

    fn look_up_pending(&mut self, events: &mut Vec<ThreadEvent>) {
        for (tid, thread) in self.pending.take_lowest(LOOK_UPS_PER_ROUND) {
            match look_up(&self.root, self.me, thread.pid, tid) {
                Ok(found) => events.push(self.add(found, thread.parent)),
                Err(error) if error.is_transient() => {
                    self.pending.announce(tid, thread, u64::MAX);
                }
                // One without a parent may have been looked up in vain before.
                Err(_) => self.short_lived += u64::from(thread.parent.is_some()),
            }
        }
    }

    fn add(&mut self, found: FoundThread, parent: Option<u32>) -> ThreadEvent {
        let name: Arc<str> = found.name.into();
        let known = KnownThread {
            id: found.id,
            name: name.clone(),
            recorded: parent.is_some(),
        };
        self.known.insert(found.id.tid, known);
        ThreadEvent::Appeared {
            id: found.id,
            name,
            parent,
            unmanageable: found.unmanageable,
        }
    }

    fn scan_into(&mut self, events: &mut Vec<ThreadEvent>) {
        let mut pids = self.roots.clone();
        pids.extend(self.known.values().map(|known| known.id.pid));
        // Without a list of processes the known ones must do.
        let below = process_tree(&self.root, &pids);
        self.scan_due |= below.is_err();
        let pids = below.unwrap_or(pids);
        let mut seen = BTreeSet::new();
        for pid in pids {
            match threads_of(&self.root, pid) {
                Ok(tids) => {
                    for tid in tids {
                        seen.insert(tid);
                        self.announce_unknown(pid, tid);
                    }
                }
                Err(ProcError::Gone) => {}
                // Its threads are not gone because they cannot be listed.
                Err(error) => {
                    self.scan_due |= error.is_transient();
                    let known = self.known.iter().filter(|(_, known)| known.id.pid == pid);
                    seen.extend(known.map(|(tid, _)| *tid));
                }
            }
        }
        let gone = self.known.keys().filter(|tid| !seen.contains(tid));
        for tid in gone.copied().collect::<Vec<_>>() {
            self.drop_known(tid, events);
        }
    }
}

/// A change in the set of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    /// A thread was found.
    Appeared {
        /// The thread.
        id: ThreadId,
        /// Name of the thread.
        name: Arc<str>,
        /// Kernel thread id of the thread that started it; `None` if there was no record of its start.
        parent: Option<u32>,
        /// Reason for which the thread must be left alone, if it must.
        unmanageable: Option<UnmanageableReason>,
    },
    /// A thread has another name.
    Renamed {
        /// The thread.
        id: ThreadId,
        /// New name of the thread.
        name: Arc<str>,
    },
    /// A thread has ended.
    Exited {
        /// The thread.
        id: ThreadId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;
    use std::fs;
    use tempfile::TempDir;

    fn tree() -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let status = "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000800000\n";
        fs::write(dir.path().join("proc/self/status"), status).unwrap();
        process(dir.path(), 10, 1, &[(10, "main", 1)]);
        dir
    }

    fn task(tid: u32, time_ns: u64) -> TaskRecord {
        TaskRecord {
            pid: 10,
            tid,
            parent_pid: 10,
            parent_tid: 10,
            time_ns,
        }
    }

    fn batch(records: Vec<PerfRecord>) -> RecordBatch {
        RecordBatch {
            records,
            ..RecordBatch::default()
        }
    }

    fn appeared(events: &[ThreadEvent]) -> Vec<(u32, &str)> {
        let pick = |event: &ThreadEvent| match event {
            ThreadEvent::Appeared { id, .. } => Some(id.tid),
            _ => None,
        };
        let name = |event: &ThreadEvent| match event {
            ThreadEvent::Appeared { name, .. } => {
                Some(Box::leak(name.to_string().into_boxed_str()))
            }
            _ => None,
        };
        let pair = |e| Some((pick(e)?, &*name(e)?));
        events.iter().filter_map(pair).collect()
    }

    fn exited(events: &[ThreadEvent]) -> Vec<u32> {
        let pick = |event: &ThreadEvent| match event {
            ThreadEvent::Exited { id } => Some(id.tid),
            _ => None,
        };
        events.iter().filter_map(pick).collect()
    }

    #[test]
    fn a_started_thread_appears_and_exits() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        assert_eq!(
            appeared(&discovery.apply(&RecordBatch::default())),
            [(10, "main")]
        );
        process(dir.path(), 10, 1, &[(11, "odd) name", 4)]);
        let events = discovery.apply(&batch(vec![PerfRecord::Fork(task(11, 5))]));
        assert_eq!(appeared(&events), [(11, "odd) name")]);
        assert_eq!(discovery.id_of(11).unwrap().start_ticks, 4);
        let events = discovery.apply(&batch(vec![PerfRecord::Exit(task(11, 6))]));
        assert_eq!(exited(&events), [11]);
        assert_eq!(discovery.short_lived_count(), 0);
    }

    #[test]
    fn short_lives_are_counted_and_not_listed() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        discovery.apply(&RecordBatch::default());
        let both = vec![PerfRecord::Fork(task(11, 5)), PerfRecord::Exit(task(11, 6))];
        let end_first = vec![PerfRecord::Exit(task(12, 9))];
        let then_begin = vec![PerfRecord::Fork(task(12, 8))];
        let vanished = vec![PerfRecord::Fork(task(13, 10))];
        for records in [both, end_first, then_begin, vanished] {
            assert_eq!(discovery.apply(&batch(records)), []);
        }
        assert_eq!(discovery.short_lived_count(), 3);
    }

    #[test]
    fn lost_records_are_made_good_by_a_scan() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        discovery.apply(&RecordBatch::default());
        process(dir.path(), 10, 1, &[(11, "a", 4)]);
        process(dir.path(), 20, 10, &[(20, "child", 7)]);
        let lossy = RecordBatch {
            lost: 1,
            ..RecordBatch::default()
        };
        assert_eq!(
            appeared(&discovery.apply(&lossy)),
            [(11, "a"), (20, "child")]
        );
        fs::remove_dir_all(dir.path().join("proc/10/task/11")).unwrap();
        assert_eq!(exited(&discovery.apply(&lossy)), [11]);
    }

    #[test]
    fn scan_ahead_of_records_counts_threads_once() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        process(dir.path(), 10, 1, &[(11, "a", 4)]);
        discovery.apply(&RecordBatch::default());
        let late = vec![PerfRecord::Fork(task(11, 5)), PerfRecord::Exit(task(11, 6))];
        let events = discovery.apply(&batch(late));
        assert_eq!((exited(&events), appeared(&events)), (vec![11], vec![]));
        assert_eq!(discovery.short_lived_count(), 0);
    }

    #[test]
    fn a_reused_tid_is_another_thread() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        process(dir.path(), 10, 1, &[(11, "a", 4)]);
        discovery.apply(&RecordBatch::default());
        process(dir.path(), 10, 1, &[(11, "b", 9)]);
        let events = discovery.apply(&batch(vec![PerfRecord::Fork(task(11, 5))]));
        assert_eq!(
            (exited(&events), appeared(&events)),
            (vec![11], vec![(11, "b")])
        );
        assert_eq!(discovery.id_of(11).unwrap().start_ticks, 9);
    }

    #[test]
    fn exec_renames_the_leader_and_ends_the_others() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        process(dir.path(), 10, 1, &[(11, "a", 4)]);
        discovery.apply(&RecordBatch::default());
        let exec = PerfRecord::Comm {
            pid: 10,
            tid: 10,
            exec: true,
            name: "new".into(),
            time_ns: 5,
        };
        let id = discovery.id_of(10).unwrap();
        let renamed = ThreadEvent::Renamed {
            id,
            name: "new".into(),
        };
        let events = discovery.apply(&batch(vec![exec]));
        assert_eq!(exited(&events), [11]);
        assert!(events.contains(&renamed));
    }

    #[test]
    fn a_fork_bomb_is_looked_up_in_portions() {
        let dir = tree();
        let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
        discovery.apply(&RecordBatch::default());
        let names: Vec<u32> = (100..100 + LOOK_UPS_PER_ROUND as u32 + 5).collect();
        for &tid in &names {
            process(dir.path(), 10, 1, &[(tid, "x", 1)]);
        }
        let forks = names
            .iter()
            .map(|&tid| PerfRecord::Fork(task(tid, 1)))
            .collect();
        assert_eq!(discovery.apply(&batch(forks)).len(), LOOK_UPS_PER_ROUND);
        assert_eq!(discovery.apply(&RecordBatch::default()).len(), 5);
    }
}
