//! Restoration of threads, pass after pass, until nothing is left to change.
//!
//! A thread that is being created while its creator is put back may appear
//! only afterwards, with the creator's old mask. So a clean pass is followed
//! by further ones at growing distances, and any change starts these anew.

use super::affinity::{self, Mask};
use super::checked_write::{Outcome, write};
use super::family;
use super::host::{AllowedPus, Host};
use super::ledger::{Ledger, Seen};
use super::original::Original;
use super::report::RestoreReport;
use crate::cookies::{Kernel, RealKernel};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Number of clean passes before the work counts as done, with waits of 1, 2, 4, ... 128 ms.
const SETTLE_STEPS: u32 = 8;
/// Number of passes after which a fight with somebody else is given up.
const MAX_PASSES: u32 = 2_000;

/// Restores everything that a ledger knows; `ours` tells whether a mask can be Consort's doing.
pub(crate) fn restore(
    host: &Host,
    ledger: &Ledger,
    run: &str,
    ours: &dyn Fn(&Seen<'_>) -> bool,
) -> RestoreReport {
    let mut work = Restoration::new(host, ledger, run, ours);
    let thawed = work.thaw();
    let continued = work.continue_paused();
    let converged = work.passes();
    let gone = ledger.threads.keys().filter(|&&t| host.same(t).is_none());
    RestoreReport {
        restored: work.restored.len(),
        threads: work.restored.into_iter().collect(),
        gone: gone.count(),
        released: work.released.len(),
        continued,
        complete: converged
            && work.failed.is_empty()
            && work.frozen.is_empty()
            && work.stuck.is_empty(),
        failed: work.failed.into_iter().collect(),
        thawed,
        frozen: work.frozen,
        cleared: work.cleared.len(),
        stuck: work.stuck.into_iter().collect(),
    }
}

struct Restoration<'a> {
    host: &'a Host,
    ledger: &'a Ledger,
    run: &'a str,
    ours: &'a dyn Fn(&Seen<'_>) -> bool,
    /// Threads that were written, each with the mask that was read back then.
    done: BTreeMap<ThreadId, PuSet>,
    restored: BTreeSet<ThreadId>,
    released: BTreeSet<ThreadId>,
    failed: BTreeMap<ThreadId, Errno>,
    frozen: Vec<(PathBuf, String)>,
    /// Threads from which a cookie of Consort's was taken.
    cleared: BTreeSet<ThreadId>,
    /// Threads that still have such a cookie, each with the kernel's answer.
    stuck: BTreeMap<ThreadId, Errno>,
}

impl<'a> Restoration<'a> {
    fn new(
        host: &'a Host,
        ledger: &'a Ledger,
        run: &'a str,
        ours: &'a dyn Fn(&Seen<'_>) -> bool,
    ) -> Self {
        Self {
            host,
            ledger,
            run,
            ours,
            done: BTreeMap::new(),
            restored: BTreeSet::new(),
            released: BTreeSet::new(),
            failed: BTreeMap::new(),
            frozen: Vec::new(),
            cleared: BTreeSet::new(),
            stuck: BTreeMap::new(),
        }
    }

    /// Gives back every cgroup that was made for pausing; returns the number of those that were
    /// thawed.
    fn thaw(&mut self) -> usize {
        let mut thawed = 0;
        for cgroup in &self.ledger.freezers {
            match cgroup.give_back() {
                Ok(()) => thawed += 1,
                Err(error) => self.frozen.push((cgroup.dir(), error.to_string())),
            }
        }
        thawed
    }

    fn continue_paused(&self) -> usize {
        let paused = self.ledger.paused.iter();
        let there = paused.filter_map(|&(pid, start)| self.host.handle(pid, start));
        there
            .filter(|process| process.send(Signal::SIGCONT) == Ok(true))
            .count()
    }

    /// Makes passes until they find nothing to change; returns false if they never do.
    fn passes(&mut self) -> bool {
        let mut clean = 0;
        for _ in 0..MAX_PASSES {
            let (members, changed) = self.pass();
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
    fn pass(&mut self) -> (usize, usize) {
        let family = family::find(self.host, self.ledger, self.run);
        let mut allowed = AllowedPus::new(self.host);
        let mut changed = 0;
        for (&pid, &owner) in &family {
            for tid in self.host.tids(pid) {
                let Some(thread) = self.living(pid, tid) else {
                    continue;
                };
                changed += usize::from(self.take_cookie(thread));
                changed += usize::from(self.visit(thread, owner, &mut allowed));
            }
        }
        (family.len(), changed)
    }

    /// Takes a cookie of Consort's away from a thread, however it came to it; returns true if it
    /// had one.
    fn take_cookie(&mut self, thread: ThreadId) -> bool {
        if self.ledger.cookies.is_empty() || self.stuck.contains_key(&thread) {
            return false;
        }
        let cookie = RealKernel.cookie(thread.tid);
        if !cookie.is_ok_and(|cookie| self.ledger.cookies.contains(&cookie)) {
            return false;
        }
        match RealKernel.clear(thread.tid) {
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
    fn visit(&mut self, thread: ThreadId, owner: u32, allowed: &mut AllowedPus) -> bool {
        let ThreadId { pid, tid, .. } = thread;
        if self.ledger.left.contains(&thread) {
            self.released.insert(thread);
            return false;
        }
        let Some(program) = self.ledger.programs.get(&owner) else {
            return false;
        };
        let Ok(now) = affinity::get(tid) else {
            return false;
        };
        if self.failed.contains_key(&thread) || self.done.get(&thread) == Some(&now) {
            return false;
        }
        let journalled = self.ledger.threads.get(&thread);
        let original = journalled.unwrap_or(&program.original);
        let allowed = allowed.of(self.host, pid, tid);
        let back = original.target(&allowed) == now;
        let ours = (self.ours)(&Seen {
            root: program.root,
            pus: &now,
            allowed: &allowed,
            born: journalled.is_none().then_some(thread.start_ticks),
        });
        match (back, ours, journalled.is_some()) {
            // Written once even if it looks right: the kernel may remember a
            // narrower mask that the cpuset hides.
            (true, _, true) | (false, true, _) => self.put_back(thread, original, &now),
            (false, false, true) => {
                self.released.insert(thread);
                false
            }
            _ => false,
        }
    }

    fn living(&self, pid: u32, tid: u32) -> Option<ThreadId> {
        let stat = self.host.stat(pid, tid)?;
        stat.is_alive().then_some(ThreadId {
            pid,
            tid,
            start_ticks: stat.start_ticks,
        })
    }

    fn put_back(&mut self, thread: ThreadId, original: &Original, before: &PuSet) -> bool {
        let mut outcome = write(self.host, thread, &original.mask());
        if outcome == Outcome::Failed(Errno::EINVAL) {
            // The cpuset has nothing of the original mask: the kernel's own
            // answer to that is the whole cpuset.
            outcome = write(self.host, thread, &Mask::Open);
        }
        match outcome {
            Outcome::Done(now, _) => {
                let changed = now != *before;
                if changed {
                    self.restored.insert(thread);
                }
                self.done.insert(thread, now);
                changed
            }
            Outcome::Failed(errno) => {
                self.failed.insert(thread, errno);
                false
            }
            Outcome::Gone => false,
        }
    }
}
