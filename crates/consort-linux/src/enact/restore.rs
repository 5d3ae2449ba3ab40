//! Restoration of threads, pass after pass, until nothing is left to change.
//!
//! A thread that is being created while its creator is put back may appear only afterwards, with
//! the creator's old mask. So a clean pass is followed by further ones at growing distances, and
//! any change starts these anew. A creator that is preempted in `clone(2)` for longer is covered by
//! a late look, which the restorers of dead runs can afford.

use super::affinity::{self, Mask, OriginalMask};
use super::checked_write::{MaskWriteOutcome, write_mask};
use super::family;
use super::host::{AllowedPusCache, Host};
use super::journal_state::{JournalState, ObservedMask};
use crate::cookies::{CoreScheduling, HostCoreScheduling};
use crate::proc::{ProcError, Stat, continue_process};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Number of clean passes before the work counts as done, with waits of 1, 2, 4, ... 128 ms.
const SETTLE_STEPS: u32 = 8;
/// Time after which restorers of dead runs look once more.
const LATE_LOOK: Duration = Duration::from_secs(1);
/// Number of passes in which something could not be looked up, after which the rest is left to the
/// guardian or the next start, and the wait after each.
const MOST_SHORT: u32 = 100;
const SHORT_WAIT: Duration = Duration::from_millis(10);
/// Number of passes after which a fight with another program that writes masks is given up.
const MAX_PASSES: u32 = 2_000;

/// Outcome of a restoration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Number of threads that were put back.
    pub restored: usize,
    /// Those threads.
    pub threads: Vec<ThreadId>,
    /// Number of threads that had exited.
    pub gone: usize,
    /// Number of threads whose mask others had changed and that were left alone.
    pub released: usize,
    /// Number of stopped programs that were continued.
    pub continued: usize,
    /// Threads that could not be put back, and first threads of processes that could not be
    /// continued, each with the kernel's answer.
    pub failed: Vec<(ThreadId, Errno)>,
    /// Number of cgroups made for pausing that were thawed, emptied and removed.
    pub thawed: usize,
    /// Cgroups that could not be thawed or emptied, each with the reason.
    pub frozen: Vec<(PathBuf, String)>,
    /// Number of threads from which a core-scheduling cookie of Consort's was taken.
    pub cleared: usize,
    /// Threads that keep such a cookie, each with the kernel's answer.
    pub stuck: Vec<(ThreadId, Errno)>,
    /// True if every managed thread was seen with its original mask at the end, nothing is left
    /// paused, and no thread has a cookie of Consort's.
    pub complete: bool,
}

/// Restores everything that a ledger knows; `ours` returns true if Consort may have written a mask.
pub(crate) fn restore(
    host: &Host,
    ledger: &JournalState,
    run: &str,
    ours: &dyn Fn(&ObservedMask<'_>) -> bool,
) -> RestoreReport {
    let mut work = Restoration::new(host, ledger, run, ours);
    work.undo();
    work.report()
}

/// Restores from the ledgers of dead runs, each given with the run's id. If a run had written masks
/// and has living processes, looks again [`LATE_LOOK`] later for threads that have appeared since.
pub(crate) fn restore_dead_runs(host: &Host, runs: &[(&JournalState, &str)]) -> Vec<RestoreReport> {
    restore_twice(host, runs, || std::thread::sleep(LATE_LOOK))
}

fn restore_twice(
    host: &Host,
    runs: &[(&JournalState, &str)],
    wait: impl FnOnce(),
) -> Vec<RestoreReport> {
    let judges: Vec<_> = runs
        .iter()
        .map(|&(ledger, _)| move |seen: &ObservedMask<'_>| ledger.may_have_written(seen))
        .collect();
    let mut works: Vec<Restoration<'_>> = runs
        .iter()
        .zip(&judges)
        .map(|(&(ledger, run), ours)| Restoration::new(host, ledger, run, ours))
        .collect();
    works.iter_mut().for_each(Restoration::undo);
    if works.iter().any(Restoration::may_miss_threads) {
        wait();
        works.iter_mut().for_each(Restoration::check_late_threads);
    }
    works.into_iter().map(Restoration::report).collect()
}

struct Restoration<'a> {
    host: &'a Host,
    ledger: &'a JournalState,
    run: &'a str,
    ours: &'a dyn Fn(&ObservedMask<'_>) -> bool,
    /// Threads that were written, each with the mask that was read back then.
    done: BTreeMap<ThreadId, PuSet>,
    /// Threads that were met with their masks as they are to be. They are not looked at again later,
    /// because a mask that changes then is their own choice.
    settled: BTreeSet<ThreadId>,
    /// Threads that were met.
    met: BTreeSet<ThreadId>,
    /// True if the passes came to an end.
    converged: bool,
    /// True if the last pass met processes of the run.
    has_members: bool,
    thawed: usize,
    continued: usize,
    /// True if something could not be looked up in the last pass, as descriptors or memory are
    /// short.
    is_short: bool,
    restored: BTreeSet<ThreadId>,
    released: BTreeSet<ThreadId>,
    failed: BTreeMap<ThreadId, Errno>,
    /// First threads of processes that could not be continued.
    stopped: BTreeMap<ThreadId, Errno>,
    frozen: Vec<(PathBuf, String)>,
    /// Threads from which a cookie of Consort's was taken.
    cleared: BTreeSet<ThreadId>,
    /// Threads that still have such a cookie, each with the kernel's answer.
    stuck: BTreeMap<ThreadId, Errno>,
}

impl<'a> Restoration<'a> {
    fn new(
        host: &'a Host,
        ledger: &'a JournalState,
        run: &'a str,
        ours: &'a dyn Fn(&ObservedMask<'_>) -> bool,
    ) -> Self {
        Self {
            host,
            ledger,
            run,
            ours,
            done: BTreeMap::new(),
            settled: BTreeSet::new(),
            met: BTreeSet::new(),
            converged: false,
            has_members: false,
            thawed: 0,
            continued: 0,
            is_short: false,
            restored: BTreeSet::new(),
            released: BTreeSet::new(),
            failed: BTreeMap::new(),
            stopped: BTreeMap::new(),
            frozen: Vec::new(),
            cleared: BTreeSet::new(),
            stuck: BTreeMap::new(),
        }
    }

    /// Undoes everything that the ledger knows.
    fn undo(&mut self) {
        self.thawed = self.thaw();
        self.continued = self.continue_paused();
        self.converged = self.run_passes();
    }

    /// Returns true if a thread may yet appear with a mask that Consort wrote: one that was copied
    /// from its creator before that was put back.
    fn may_miss_threads(&self) -> bool {
        self.has_members && !self.ledger.masks.is_empty()
    }

    /// Puts back threads that have appeared since the passes.
    fn check_late_threads(&mut self) {
        if !self.may_miss_threads() {
            return;
        }
        // Only threads that appeared later: what changes on the others is their own choice by now.
        self.settled = std::mem::take(&mut self.met);
        let (_, changed) = self.run_pass();
        if changed > 0 || self.is_short {
            self.converged &= self.run_passes();
        }
    }

    fn report(self) -> RestoreReport {
        let threads = self.ledger.threads.keys();
        let gone = threads.filter(|&&t| self.host.is_gone(t)).count();
        RestoreReport {
            restored: self.restored.len(),
            threads: self.restored.into_iter().collect(),
            gone,
            released: self.released.len(),
            continued: self.continued,
            complete: self.converged
                && self.failed.is_empty()
                && self.stopped.is_empty()
                && self.frozen.is_empty()
                && self.stuck.is_empty(),
            failed: self.failed.into_iter().chain(self.stopped).collect(),
            thawed: self.thawed,
            frozen: self.frozen,
            cleared: self.cleared.len(),
            stuck: self.stuck.into_iter().collect(),
        }
    }

    /// Thaws and removes every cgroup that was made for pausing; returns the number of these.
    fn thaw(&mut self) -> usize {
        let mut thawed = 0;
        for cgroup in &self.ledger.freezers {
            match cgroup.thaw_and_remove() {
                Ok(()) => thawed += 1,
                Err(error) => self.frozen.push((cgroup.dir(), error.to_string())),
            }
        }
        thawed
    }

    /// Continues every process that was stopped; returns the number of these. One that cannot be
    /// continued counts as a failure, so that its journal stays for another attempt.
    fn continue_paused(&mut self) -> usize {
        let mut continued = 0;
        for &(pid, start_ticks) in &self.ledger.paused {
            match continue_process(self.host.root(), pid, start_ticks) {
                Ok(is_there) => continued += usize::from(is_there),
                Err(errno) => {
                    let thread = ThreadId {
                        pid,
                        tid: pid,
                        start_ticks,
                    };
                    self.stopped.insert(thread, errno);
                }
            }
        }
        continued
    }

    /// Makes passes until they find nothing to change; returns false if they never do.
    fn run_passes(&mut self) -> bool {
        let (mut clean, mut short) = (0, 0);
        for _ in 0..MAX_PASSES {
            let (members, changed) = self.run_pass();
            if self.is_short {
                short += 1;
                if short > MOST_SHORT {
                    return false;
                }
                clean = 0;
                std::thread::sleep(SHORT_WAIT);
                continue;
            }
            clean = if changed == 0 { clean + 1 } else { 0 };
            if members == 0 || clean > SETTLE_STEPS {
                return true;
            }
            if clean > 0 {
                std::thread::sleep(Duration::from_millis(1 << (clean - 1)));
            }
        }
        false
    }

    /// Goes over every thread of the family once; returns the number of its processes, and that of
    /// the masks and cookies that were changed.
    fn run_pass(&mut self) -> (usize, usize) {
        // Anew in each pass, because processes start others meanwhile.
        let family = family::find(self.host, self.ledger, self.run);
        self.is_short = family.is_err();
        let family = family.unwrap_or_default();
        let mut allowed = AllowedPusCache::new(self.host);
        let mut changed = 0;
        for (&pid, &owner) in &family {
            let tids = self.host.tids(pid);
            self.note_shortage(&tids);
            for tid in tids.unwrap_or_default() {
                let stat = self.host.stat(pid, tid);
                self.note_shortage(&stat);
                let Some(stat) = stat.ok().flatten().filter(Stat::is_alive) else {
                    continue;
                };
                let thread = ThreadId {
                    pid,
                    tid,
                    start_ticks: stat.start_ticks,
                };
                if self.settled.contains(&thread) {
                    continue;
                }
                self.met.insert(thread);
                changed += usize::from(self.clear_cookie(thread));
                changed += usize::from(self.restore_thread(thread, owner, &mut allowed));
            }
        }
        self.has_members = !family.is_empty();
        (family.len(), changed)
    }

    /// Takes a cookie of Consort's away from a thread, however it came to it; returns true if it
    /// had one.
    fn clear_cookie(&mut self, thread: ThreadId) -> bool {
        if self.ledger.cookies.is_empty() || self.stuck.contains_key(&thread) {
            return false;
        }
        let cookie = HostCoreScheduling.cookie(thread.tid);
        if !cookie.is_ok_and(|cookie| self.ledger.cookies.contains(&cookie)) {
            return false;
        }
        match HostCoreScheduling.clear(thread.tid) {
            Ok(()) => {
                self.cleared.insert(thread);
                true
            }
            Err(Errno::ESRCH) => false,
            Err(errno) => {
                self.stuck.insert(thread, errno);
                false
            }
        }
    }

    /// Puts one thread back if need be; returns true if its mask was changed.
    fn restore_thread(
        &mut self,
        thread: ThreadId,
        owner: u32,
        allowed: &mut AllowedPusCache,
    ) -> bool {
        let ThreadId { pid, tid, .. } = thread;
        if self.ledger.left.contains(&thread) {
            self.released.insert(thread);
            return false;
        }
        let Some(program) = self.ledger.programs.get(&owner) else {
            return false;
        };
        let now = match affinity::get(tid) {
            Ok(now) => now,
            Err(Errno::ESRCH) => return false,
            Err(_) => {
                self.is_short = true;
                return false;
            }
        };
        // Written before, and still as it was read back: nothing is left to do.
        if self.failed.contains_key(&thread) || self.done.get(&thread) == Some(&now) {
            return false;
        }
        let journalled = self.ledger.threads.get(&thread);
        let original = journalled.unwrap_or(&program.original);
        let allowed = allowed.read_pus(self.host, pid, tid);
        self.note_shortage(&allowed);
        let Ok(allowed) = allowed else {
            return false;
        };
        let back = original.effective_pus(&allowed) == now;
        let ours = (self.ours)(&ObservedMask {
            root: program.root,
            pus: &now,
            allowed: &allowed,
            born: journalled.is_none().then_some(thread.start_ticks),
        });
        match (back, ours, journalled.is_some()) {
            // Written once even if it looks right: the kernel may remember a
            // narrower mask that the cpuset hides.
            (true, _, true) | (false, true, _) => self.write_original(thread, original, &now),
            (false, false, true) => {
                self.released.insert(thread);
                false
            }
            _ => false,
        }
    }

    fn note_shortage<T>(&mut self, read: &Result<T, ProcError>) {
        let error = read.as_ref().err();
        self.is_short |= error.is_some_and(ProcError::is_transient);
    }

    fn write_original(
        &mut self,
        thread: ThreadId,
        original: &OriginalMask,
        before: &PuSet,
    ) -> bool {
        let mut outcome = write_mask(self.host, thread, &original.mask());
        if outcome == MaskWriteOutcome::Failed(Errno::EINVAL) {
            // The cpuset has nothing of the original mask: the kernel's own
            // answer to that is the whole cpuset.
            outcome = write_mask(self.host, thread, &Mask::Open);
        }
        match outcome {
            MaskWriteOutcome::Done(now, _) => {
                let changed = now != *before;
                if changed {
                    self.restored.insert(thread);
                }
                self.done.insert(thread, now);
                changed
            }
            MaskWriteOutcome::Failed(
                Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::EINTR,
            ) => {
                self.is_short = true;
                false
            }
            MaskWriteOutcome::Failed(errno) => {
                self.failed.insert(thread, errno);
                false
            }
            MaskWriteOutcome::Gone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{JournalRecord, ManagedProgram};
    use super::*;
    use crate::enact::checked_write::{MaskWriteOutcome, write_mask};
    use nix::sys::signal::Signal;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    /// A shell that starts `sleep` for each line that it reads, and prints its pid.
    fn shell() -> Child {
        let script = "while read line; do sleep 300 >&- & echo $!; done";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped());
        shell.stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn thread_that_appears_late_is_restored() {
        let host = Host::real();
        let mut shell = shell();
        let creator = host.identify(shell.id(), shell.id()).unwrap();
        let own = affinity::get(creator.tid).unwrap();
        let narrow = PuSet::from(own.first().unwrap());
        let allowed = AllowedPusCache::new(&host)
            .read_pus(&host, creator.pid, creator.tid)
            .unwrap();
        let original = OriginalMask::new(own.clone(), &allowed);
        let stat = host.stat(creator.pid, creator.tid).unwrap().unwrap();
        let ledger = JournalState::new([
            JournalRecord::Program(ManagedProgram {
                pid: creator.pid,
                start_ticks: creator.start_ticks,
                root: creator.pid,
                pgrp: stat.group,
                session: stat.session,
                original: original.clone(),
            }),
            JournalRecord::Thread(creator, original),
            JournalRecord::Mask {
                root: creator.pid,
                pus: narrow.clone(),
            },
        ]);
        let mask = Mask::Only(narrow.clone());
        let narrow_creator = || write_mask(&host, creator, &mask);
        assert!(matches!(narrow_creator(), MaskWriteOutcome::Done(..)));
        let mut late = 0;
        let reports = restore_twice(&host, &[(&ledger, "none")], || {
            assert_eq!(affinity::get(creator.tid), Ok(own.clone()));
            // It keeps this mask, as it set it after it was put back; what it starts inherits it.
            narrow_creator();
            shell.stdin.as_mut().unwrap().write_all(b"start\n").unwrap();
            let mut line = String::new();
            let mut lines = BufReader::new(shell.stdout.as_mut().unwrap());
            lines.read_line(&mut line).unwrap();
            late = line.trim().parse().unwrap();
            assert_eq!(affinity::get(late), Ok(narrow.clone()));
        });
        assert!(reports[0].complete);
        let masks = [affinity::get(creator.tid), affinity::get(late)];
        for pid in [late, shell.id()] {
            let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
            nix::sys::signal::kill(pid, Signal::SIGKILL).unwrap();
        }
        shell.wait().unwrap();
        assert_eq!(masks, [Ok(narrow), Ok(own)]);
    }
}
