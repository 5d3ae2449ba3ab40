//! The set of threads of the watched processes, kept up to date from records and scans.

use super::events::ThreadEvent;
use super::manage::{CallerCredentials, UnmanageableReason};
use super::pending::{AnnouncedThread, FoundThread, PendingThreads, look_up};
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
    /// True once a record has told of the thread's beginning; a scan may be ahead of the records.
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

    /// Takes one round of records in and tells what has changed.
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

    /// Compares with `/proc` and tells what has changed; the fallback where
    /// there are no records.
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
            PerfRecord::Exit(task) => self.note_exit(*task, events),
            PerfRecord::Comm {
                pid,
                tid,
                exec,
                name,
                ..
            } => {
                if *exec {
                    self.note_exec(*pid, events);
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

    fn note_exit(&mut self, task: TaskRecord, events: &mut Vec<ThreadEvent>) {
        if self.pending.remove_ended(task.tid) {
            self.short_lived += 1;
        } else {
            self.drop_known(task.tid, events);
        }
        self.pending.remember_end(task.tid, task.time_ns);
    }

    /// An `exec` ends all threads of the process but the one that becomes its leader.
    fn note_exec(&mut self, pid: u32, events: &mut Vec<ThreadEvent>) {
        self.short_lived += self.pending.drop_other_threads(pid);
        let others = self.known.values().map(|known| known.id);
        let others = others.filter(|id| id.pid == pid && id.tid != pid);
        for id in others.collect::<Vec<_>>() {
            self.drop_known(id.tid, events);
        }
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

#[cfg(test)]
mod tests;
