//! The enactor: one run's managed threads, its journal and its guardian.

use super::affinity;
use super::affinity::{OriginalMask, effective_mask};
use super::guardian::{Guardian, GuardianError, GuardianHealth, GuardianSpec};
use super::host::{AllowedPuSet, AllowedPusCache, Host};
use super::journal::{Journal, JournalError};
use super::journal_state::{JournalState, ObservedMask};
use super::mask_history::WrittenMaskHistory;
use super::nudge::{CallerPlacement, StatFileCache};
use super::other_runs::HostSnapshot;
use super::record::{JournalRecord, ManagedProgram};
use super::recover::{AbandonedJournals, RecoverReport};
use super::restore::{RestoreReport, restore};
use super::runtime_dir::RuntimeDir;
use crate::proc::{ProcError, now_ticks};
use consort_core::{PuSet, ThreadId};
use nix::sys::signal::killpg;
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Size of a journal below which rewriting is not worth the effort, bytes.
const LEAST_REWRITE_BYTES: u64 = 1 << 17;

/// Settings that a run needs before it may touch a thread.
#[derive(Clone, Debug)]
pub struct EnactConfig {
    /// Words by which `/proc/self/exe` is made to call [`guardian_main`](super::guardian_main())
    /// with the words that follow them.
    pub guardian_args: Vec<OsString>,
    /// Folders for the journal, best first; usually [`runtime_dirs`](super::runtime_dirs).
    pub runtime_dirs: Vec<PathBuf>,
    /// True if nothing will be changed, so that a run needs no folder for its journal.
    pub changes_nothing: bool,
}

/// Reason for which no thread can be managed.
#[derive(Debug, Error)]
pub enum EnactError {
    /// There is no journal.
    #[error("no journal, so no thread may be restricted: {0}")]
    Journal(#[from] JournalError),
    /// There is no guardian.
    #[error("no guardian, so no thread may be restricted: {0}")]
    Guardian(#[from] GuardianError),
}

/// Standing of a thread with Consort; the module's table shows the transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// The thread was never taken in, or is gone.
    Unmanaged,
    /// The thread is managed, with its original mask.
    Free,
    /// The thread is managed, with a lasting mask that Consort wrote.
    Restricted,
    /// The thread is not managed, because its mask was set on purpose before Consort came.
    Foreign,
    /// The thread is not managed any more, because another program changed its mask. It is not restored
    /// either.
    Released,
}

/// Reason for which a thread is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnmanagedReason {
    Foreign,
    Released,
}

/// A managed thread.
#[derive(Clone, Debug)]
pub(crate) struct ManagedThread {
    pub original: OriginalMask,
    /// The lasting mask that Consort wrote; none when the thread is free.
    pub wanted: Option<PuSet>,
    /// The mask that was read back after the last write or look.
    pub seen: PuSet,
    /// CPUs that the cpuset allowed when it was last read, and its origin.
    pub allowed: AllowedPuSet,
    /// Bottom of the thread's stack, which changes when the thread becomes another program by exec.
    pub start_stack: u64,
    /// Time of the last look at its mask.
    pub looked: Instant,
}

impl ManagedThread {
    /// The mask that is read back after this lasting mask was written, or else the original one.
    pub(super) fn expected(&self, wanted: Option<&PuSet>) -> PuSet {
        let allowed = &self.allowed.pus;
        wanted.map_or_else(
            || self.original.effective_pus(allowed),
            |wanted| effective_mask(wanted, allowed),
        )
    }
}

/// Carries out plans on threads, and undoes them.
#[derive(Debug)]
pub struct Enactor {
    pub(crate) host: Host,
    pub(crate) ledger: JournalState,
    pub(crate) journal: Journal,
    pub(crate) threads: BTreeMap<ThreadId, ManagedThread>,
    pub(crate) left: BTreeMap<ThreadId, UnmanagedReason>,
    pub(crate) stat_files: StatFileCache,
    pub(super) caller: CallerPlacement,
    /// Times in which masks were in force: a thread that was started in one may have inherited that mask.
    pub(crate) mask_history: WrittenMaskHistory,
    /// By process, the last mask of Consort's on a thread that has gone and was not the leader: it
    /// may have become the leader by `exec`.
    pub(crate) last_pins: BTreeMap<u32, PuSet>,
    /// The last look at cpusets and other runs.
    pub(super) snapshot: Option<HostSnapshot>,
    guardian: Guardian,
    guardian_args: Vec<OsString>,
    /// Folders in which journals of other runs may be.
    pub(super) runtime_dirs: Vec<PathBuf>,
    own_mask: PuSet,
    rewrite_at_bytes: u64,
    /// True if threads are taken in although their cpuset is exclusive.
    takes_exclusive: bool,
    /// Least time between two looks at the mask of a thread that is where it is wanted.
    pub(super) looks_every: Duration,
    /// True if the guardian has restored and the caller was not informed yet.
    interrupted: bool,
}

impl Enactor {
    /// Makes the journal and starts the guardian.
    ///
    /// # Errors
    /// When there is no folder or no space for the journal, or no guardian: then nothing may be
    /// restricted.
    pub fn start(config: &EnactConfig) -> Result<Self, EnactError> {
        let host = Host::real();
        let dir = RuntimeDir::open_first_usable(&config.runtime_dirs).map_err(JournalError::from);
        let journal = match dir.and_then(|dir| Journal::create(&host, dir)) {
            Err(_) if config.changes_nothing => Journal::create_in_memory(&host)?,
            made => made?,
        };
        let own_mask = affinity::get(std::process::id()).unwrap_or_default();
        let guardian = spawn_guardian(&journal, &journal.path(), &config.guardian_args, &own_mask)
            .inspect_err(|_| journal.unlink())?;
        Ok(Self {
            host,
            ledger: JournalState::default(),
            journal,
            threads: BTreeMap::new(),
            left: BTreeMap::new(),
            stat_files: StatFileCache::default(),
            caller: CallerPlacement::default(),
            mask_history: WrittenMaskHistory::default(),
            last_pins: BTreeMap::new(),
            snapshot: None,
            guardian,
            guardian_args: config.guardian_args.clone(),
            runtime_dirs: config.runtime_dirs.clone(),
            own_mask,
            rewrite_at_bytes: LEAST_REWRITE_BYTES,
            takes_exclusive: false,
            looks_every: Duration::ZERO,
            interrupted: false,
        })
    }

    /// Shows the guardian that this run makes turns. From the first call on, call it at least once a
    /// second: otherwise the guardian puts masks back and lets paused programs continue.
    pub fn send_heartbeat(&mut self) {
        self.guardian.send_heartbeat();
    }

    /// Returns true if the guardian has restored since the last call, as there were no beats.
    /// Threads are managed as before then, with their original masks, and paused programs have
    /// continued.
    pub fn take_interruption(&mut self) -> bool {
        self.notice_restoration();
        std::mem::take(&mut self.interrupted)
    }

    /// Learns whether the guardian has restored meanwhile; returns true if so.
    pub(super) fn notice_restoration(&mut self) -> bool {
        if !self.guardian.has_restored() {
            return false;
        }
        self.interrupted = true;
        // This process may have been stopped between its last look and a write, which then came after
        // the guardian's restoration.
        self.restore_masks();
        true
    }

    /// Puts every managed thread back to its original mask; what is paused stays so.
    fn restore_masks(&mut self) {
        let ours = |mask: &ObservedMask<'_>| {
            let tick = mask.born.unwrap_or_else(now_ticks);
            (self.mask_history).covers(mask.root, mask.pus, mask.allowed, tick)
        };
        let masks = JournalState {
            paused: BTreeSet::new(),
            ..self.ledger.without_cgroups_and_cookies()
        };
        restore(&self.host, &masks, &self.journal.header().run, &ours);
        self.forget_gone();
        let now = Instant::now();
        for managed in self.threads.values_mut() {
            // Not the mask that the thread has: if that is another one, a stranger has changed it
            // meanwhile, which the next look has to find.
            managed.seen = managed.original.effective_pus(&managed.allowed.pus);
            managed.looked = now.checked_sub(self.looks_every).unwrap_or(now);
        }
    }

    /// Restores from journals in these folders that killed runs have left, although this run manages
    /// threads already. A mask of such a run may have been taken for an original one.
    pub fn recover_from(&mut self, dirs: &[PathBuf]) -> RecoverReport {
        let abandoned = AbandonedJournals::find(dirs);
        if abandoned.is_empty() {
            return abandoned.recover();
        }
        // In the reverse order of the writes: masks of this run were written over theirs.
        self.restore_masks();
        let report = abandoned.recover();
        let put_back = report.restored.iter().flat_map(|(_, r)| &r.threads);
        let put_back: Vec<ThreadId> = put_back.copied().collect();
        for thread in put_back {
            if let Err(error) = self.relearn_original(thread) {
                tracing::warn!(%thread, %error, "an original mask cannot be journalled");
            }
        }
        report
    }

    /// Takes the mask that a thread has now for its original one, if the thread is managed.
    fn relearn_original(&mut self, thread: ThreadId) -> Result<(), JournalError> {
        let Ok(now) = affinity::get(thread.tid) else {
            return Ok(());
        };
        let Some(managed) = self.threads.get_mut(&thread) else {
            return Ok(());
        };
        // The killed run had narrowed the thread when this run took it in.
        let original = OriginalMask::new(now.clone(), &managed.allowed.pus);
        managed.original = original.clone();
        managed.seen = now;
        let mut records = Vec::new();
        if self.ledger.threads.contains_key(&thread) {
            records.push(JournalRecord::Thread(thread, original.clone()));
        }
        let program = self.ledger.programs.get(&thread.pid);
        if let Some(program) = program.filter(|_| thread.tid == thread.pid) {
            records.push(JournalRecord::Program(ManagedProgram {
                original,
                ..program.clone()
            }));
        }
        self.record(&records)
    }

    /// Looks at the mask of a thread that is where it is wanted only this often from now on, instead of
    /// with every plan. A thread that is to be written is always looked at before.
    pub fn set_mask_check_interval(&mut self, time: Duration) {
        self.looks_every = time;
    }

    /// Keeps a descriptor open for each of up to so many threads that are nudged, which makes
    /// nudges cheaper; none is kept before this is called.
    pub fn keep_stat_files_open(&mut self, threads: usize) {
        self.stat_files.set_capacity(threads);
    }

    /// Takes threads in from now on although their cpuset is exclusive, which is refused otherwise.
    pub fn allow_exclusive_cpusets(&mut self) {
        self.takes_exclusive = true;
    }

    /// Id of the run: the value of [`RUN_MARKER`](super::RUN_MARKER) in the environment of programs
    /// that this run starts.
    pub fn run_id(&self) -> &str {
        &self.journal.header().run
    }

    /// Folders in which journals of other runs may be.
    pub(crate) fn runtime_dirs(&self) -> &[PathBuf] {
        &self.runtime_dirs
    }

    /// Path of the journal; a file name alone for one in memory.
    pub fn journal_path(&self) -> PathBuf {
        self.journal.path()
    }

    /// Process id of the guardian.
    pub fn guardian_pid(&self) -> u32 {
        self.guardian.pid()
    }

    /// Standing of a thread with Consort.
    pub fn state(&self, thread: ThreadId) -> ThreadState {
        match (self.threads.get(&thread), self.left.get(&thread)) {
            (Some(managed), _) if managed.wanted.is_some() => ThreadState::Restricted,
            (Some(_), _) => ThreadState::Free,
            (None, Some(UnmanagedReason::Foreign)) => ThreadState::Foreign,
            (None, Some(UnmanagedReason::Released)) => ThreadState::Released,
            (None, None) => ThreadState::Unmanaged,
        }
    }

    /// Returns true if a process is known as one of a managed program.
    pub(crate) fn has_program(&self, pid: u32) -> bool {
        self.ledger.programs.contains_key(&pid)
    }

    /// Managed threads, including threads whose exit was not noticed yet.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.threads.keys().copied()
    }

    /// Returns true if a thread still runs under its number; `None` if that is not known now.
    pub(crate) fn is_same(&self, thread: ThreadId) -> Option<bool> {
        let same = self.host.stat_if_same(thread).ok()?;
        Some(same.is_some())
    }

    /// The CPUs that a managed thread could run on before Consort; none for others.
    pub fn original(&self, thread: ThreadId) -> Option<PuSet> {
        Some(self.threads.get(&thread)?.original.pus.clone())
    }

    /// The cgroup whose exclusive cpuset forbids to take a thread in: no other cgroup may use its
    /// CPUs, Consort does not run in it, and the user does not override it.
    ///
    /// # Errors
    /// If the cpuset of Consort itself cannot be read for the moment.
    pub(super) fn forbidding_cgroup(
        &self,
        allowed: &AllowedPuSet,
    ) -> Result<Option<PathBuf>, ProcError> {
        let by = allowed.by.as_ref().filter(|_| allowed.exclusive);
        let Some(by) = by.filter(|_| !self.takes_exclusive) else {
            return Ok(None);
        };
        let own = std::process::id();
        let of_own = AllowedPusCache::new(&self.host).read(&self.host, own, own)?;
        Ok((of_own.by.as_ref() != Some(by)).then(|| by.clone()))
    }

    /// Reads the cpusets of these threads again. Returns, for each managed one, the CPUs that it
    /// could run on now without Consort. A mask that a change has touched is left to the next plan.
    pub fn reread_cpusets(&mut self, threads: &[ThreadId]) -> Vec<(ThreadId, PuSet)> {
        let mut cpusets = AllowedPusCache::new(&self.host);
        let mut allowed = Vec::with_capacity(threads.len());
        for &thread in threads {
            let Some(managed) = self.threads.get_mut(&thread) else {
                continue;
            };
            // One that cannot be read for the moment is read the next time.
            let Ok(reported) = cpusets.read(&self.host, thread.pid, thread.tid) else {
                continue;
            };
            allowed.push((thread, managed.original.effective_pus(&reported.pus)));
            let is_new = reported != managed.allowed;
            // If the kernel has changed the mask already, the old cpuset stays, so that the next look
            // can attribute the change to the kernel.
            if is_new && affinity::get(thread.tid).is_ok_and(|now| now == managed.seen) {
                managed.allowed = reported;
            }
        }
        allowed
    }

    /// Forgets a thread that is known to have exited.
    pub fn forget(&mut self, thread: ThreadId) {
        // A thread that calls exec seems to have exited, and its leader has its mask then.
        if let Some(mask) = self.end_pin(thread) {
            self.note_exec(thread, &mask);
        }
        if thread.tid == thread.pid {
            self.last_pins.remove(&thread.pid);
        }
        self.threads.remove(&thread);
        self.left.remove(&thread);
        self.stat_files.forget(thread);
    }

    /// Stops managing a thread that has its original mask. Nothing is restored for it from now on,
    /// unless it is adopted again.
    pub fn stop_managing(&mut self, thread: ThreadId) {
        self.forget(thread);
        self.left.insert(thread, UnmanagedReason::Foreign);
        if let Err(error) = self.record(&[JournalRecord::Leave(thread)]) {
            tracing::warn!(%thread, %error, "a thread that was left alone may yet be restored");
        }
    }

    /// Notes that a thread's lasting mask is no longer in force; returns that mask, if it had one.
    pub(super) fn end_pin(&mut self, thread: ThreadId) -> Option<PuSet> {
        let root = self.root_of(thread);
        let mask = self.threads.get_mut(&thread)?.wanted.take()?;
        self.mask_history.remove_holder(root, &mask, now_ticks());
        Some(mask)
    }

    /// Notes the mask of a thread that is gone, in case it has become the leader.
    pub(super) fn note_exec(&mut self, thread: ThreadId, mask: &PuSet) {
        if thread.tid != thread.pid {
            self.last_pins.insert(thread.pid, mask.clone());
        }
    }

    /// Replaces the guardian if it has died.
    pub fn ensure_guardian(&mut self) -> GuardianHealth {
        if self.guardian.is_alive() {
            return GuardianHealth::Alive;
        }
        let path = self.journal.path();
        match spawn_guardian(&self.journal, &path, &self.guardian_args, &self.own_mask) {
            Ok(guardian) => {
                self.guardian = guardian;
                GuardianHealth::Replaced
            }
            Err(error) => GuardianHealth::Missing(error),
        }
    }

    /// Journals that a program is about to be stopped by SIGSTOP, so that it is
    /// continued whatever happens. Call it before stopping.
    ///
    /// # Errors
    /// When the journal cannot be written: do not stop the program.
    pub fn note_paused(&mut self, pid: u32, start_ticks: u64) -> Result<(), JournalError> {
        self.record(&[JournalRecord::Paused { pid, start_ticks }])
    }

    /// Journals that a program was continued. Call it after continuing.
    ///
    /// # Errors
    /// When the journal cannot be written: at the end the program gets one SIGCONT too many.
    pub fn note_resumed(&mut self, pid: u32, start_ticks: u64) -> Result<(), JournalError> {
        self.record(&[JournalRecord::Resumed { pid, start_ticks }])
    }

    /// Puts every managed thread, and every thread that inherited a written mask, back to its
    /// original mask, and checks that it has it. Threads stay managed.
    pub fn restore_all(&mut self) -> RestoreReport {
        let ours = |mask: &ObservedMask<'_>| {
            let tick = mask.born.unwrap_or_else(now_ticks);
            (self.mask_history).covers(mask.root, mask.pus, mask.allowed, tick)
        };
        let report = restore(&self.host, &self.ledger, &self.journal.header().run, &ours);
        self.forget_gone();
        for (thread, managed) in &mut self.threads {
            if let Ok(now) = affinity::get(thread.tid) {
                managed.seen = now;
            }
        }
        let paused = self.ledger.paused.iter();
        let is_stopped = |pid| {
            report
                .failed
                .iter()
                .any(|(id, _)| (id.pid, id.tid) == (pid, pid))
        };
        let paused = paused.filter(|&&(pid, _)| !is_stopped(pid));
        let resumed = paused.map(|&(pid, start_ticks)| JournalRecord::Resumed { pid, start_ticks });
        let freezers = self.ledger.freezers.iter();
        let thawed = freezers.filter(|c| !report.frozen.iter().any(|(dir, _)| *dir == c.dir()));
        let thawed = thawed.cloned().map(JournalRecord::FreezerGone);
        // Recorded, so that the guardian does not continue or thaw them once more.
        let undone: Vec<JournalRecord> = resumed.chain(thawed).collect();
        if let Err(error) = self.record(&undone) {
            tracing::warn!(%error, "continued programs may be continued once more");
        }
        report
    }

    /// Drops threads that have exited, and the pins of all others, which have been undone.
    fn forget_gone(&mut self) {
        // The pins end for all, because a restoration has put the threads back.
        for thread in self.threads.keys().copied().collect::<Vec<_>>() {
            self.end_pin(thread);
            if self.host.is_gone(thread) {
                self.forget(thread);
            }
        }
    }

    /// Restores everything and ends the run. If that is incomplete, the
    /// guardian tries once more and the journal stays for the next start.
    pub fn close(mut self) -> RestoreReport {
        let report = self.restore_all();
        if report.complete {
            self.journal.unlink();
            if let Err(error) = self.guardian.finish() {
                tracing::warn!(%error, "the guardian does not take its leave");
            }
        }
        report
    }

    /// Journals records, then enters them in the ledger.
    pub(crate) fn record(&mut self, records: &[JournalRecord]) -> Result<(), JournalError> {
        // The journal first: an action is allowed only once its record is whole.
        self.journal.append(records)?;
        records
            .iter()
            .cloned()
            .for_each(|r| self.ledger.add_record(r));
        Ok(())
    }

    /// Rewrites a journal that has grown, without threads and programs that are gone, and hands it
    /// to a new guardian before the old one is let go.
    pub(crate) fn rewrite_if_grown(&mut self) {
        if self.journal.len_bytes() < self.rewrite_at_bytes {
            return;
        }
        let host = &self.host;
        self.ledger
            .retain(|thread| !host.is_gone(thread), |p| is_needed(host, p));
        let masks = &self.ledger.masks;
        self.mask_history.retain(|root| masks.contains_key(&root));
        if let Err(error) = self.rewrite() {
            tracing::warn!(%error, "the journal cannot be rewritten and keeps growing");
        }
        self.rewrite_at_bytes = LEAST_REWRITE_BYTES.max(2 * self.journal.len_bytes());
    }

    fn rewrite(&mut self) -> Result<(), EnactError> {
        // At each moment a guardian holds a journal with everything: the new one starts before the
        // new journal takes the name, and the old one ends last.
        let mut journal = self.journal.create_replacement(&self.ledger.records())?;
        let path = self.journal.path();
        let guardian = spawn_guardian(&journal, &path, &self.guardian_args, &self.own_mask)
            .inspect_err(|_| journal.unlink())?;
        if let Err(error) = journal.publish() {
            journal.unlink();
            // Both guardians have the same to restore. The old one stays responsible.
            guardian.finish().map_err(GuardianError::NotReady)?;
            return Err(error.into());
        }
        self.journal = journal;
        let old = std::mem::replace(&mut self.guardian, guardian);
        old.finish().map_err(GuardianError::NotReady)?;
        Ok(())
    }
}

fn spawn_guardian(
    journal: &Journal,
    path: &Path,
    args: &[OsString],
    own_mask: &PuSet,
) -> Result<Guardian, GuardianError> {
    Guardian::spawn(&GuardianSpec {
        args,
        journal: journal.file(),
        path,
        own_mask: own_mask.to_string(),
    })
}

/// Returns true if a program lives, or founded a group or session that may still live.
fn is_needed(host: &Host, program: &ManagedProgram) -> bool {
    let group = i32::try_from(program.pgrp).map(Pid::from_raw);
    let founded_group = program.pgrp == program.pid
        && group.is_ok_and(|group| killpg(group, None) != Err(nix::errno::Errno::ESRCH));
    host.process(program.pid, program.start_ticks) != Ok(None)
        || program.session == program.pid
        || founded_group
}
