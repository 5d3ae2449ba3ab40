//! Carrying out of plans: minimal writes, each journalled before it happens.

use super::adopt::MaskCheck;
use super::affinity;
use super::checked_write::{MaskWriteOutcome, write_mask};
use super::enactor::{Enactor, ManagedThread, UnmanagedReason};
use super::guardian::GuardianHealth;
use super::nudge::{LiveThreadStat, Nudge, NudgeOutcome};
use super::record::JournalRecord;
use crate::proc::{ProcError, now_ticks};
use consort_core::{PuId, PuSet, ThreadId};
use nix::errno::Errno;
use nix::sched::sched_getcpu;
use std::time::{Duration, Instant};

/// Attempts to be on the CPU of a thread, with time for a nudge, before it is nudged all the same.
const TRIES: usize = 3;

/// The wish of a plan for one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadWish {
    /// The original mask.
    Unrestricted,
    /// A lasting mask of these CPUs, as far as the original mask and the cpuset have them.
    Only(PuSet),
    /// A move to these CPUs now, with the original mask: the thread goes there if it can run, and
    /// is not kept there.
    Nudge(PuSet),
}

/// Reason for which a thread did not get the wanted mask. It keeps, or goes back to, a mask within
/// its original one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The thread is not managed: never adopted, foreign, or let go.
    NotManaged,
    /// No wanted CPU lies within the original mask and the cpuset; the thread
    /// was left unrestricted.
    NoPuLeft,
    /// The journal could not be written, so the thread must not be restricted; the text has the
    /// reason.
    NotJournalled(String),
    /// There is no guardian and none can be started.
    NoGuardian,
    /// The thread cannot be looked up for the moment; it stays managed, as it is.
    Unseen(ProcError),
    /// The kernel refused; `EPERM` when the thread belongs to another user.
    Kernel(Errno),
}

/// Outcome of [`apply`](super::Enactor::apply).
#[derive(Debug, Default)]
pub struct ApplyReport {
    /// Threads whose mask was written, with the mask that they have now.
    pub written: Vec<(ThreadId, PuSet)>,
    /// Threads that were nudged; they are among the written ones, with their original masks.
    pub nudged: Vec<ThreadId>,
    /// For each of these, the time for which its mask was narrow, at most.
    pub windows: Vec<(ThreadId, Duration)>,
    /// Number of threads that had the wanted mask already.
    pub unchanged: usize,
    /// Number of threads that have exited and were forgotten.
    pub gone: usize,
    /// Threads that were let go because another program had changed their mask, with the mask found.
    pub released: Vec<(ThreadId, PuSet)>,
    /// Threads whose cpuset or online CPUs changed; their mask was asserted again.
    pub shifted: Vec<ThreadId>,
    /// Threads that did not get the wanted mask, with the reason.
    pub refused: Vec<(ThreadId, Refusal)>,
    /// State of the guardian.
    pub guardian: GuardianHealth,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotManaged => f.write_str("it is not managed"),
            Self::NoPuLeft => f.write_str("none of the CPUs is within its mask and the cpuset"),
            Self::NotJournalled(why) => write!(f, "its mask could not be journalled: {why}"),
            Self::NoGuardian => f.write_str("there is no guardian to put it back"),
            Self::Unseen(error) => write!(f, "it cannot be looked up: {error}"),
            Self::Kernel(errno) => write!(f, "the kernel refused: {errno}"),
        }
    }
}

/// The part of a wish that the original mask and the cpuset leave possible.
#[derive(Debug, PartialEq, Eq)]
enum MaskGoal {
    /// The original mask, for good.
    Free,
    /// The original mask, once the thread is on these CPUs.
    Nudge(PuSet),
    /// A lasting mask.
    Pin(PuSet),
    NoPuLeft,
}

impl Enactor {
    /// Gives each thread the CPUs wanted for it, as far as its original mask and its cpuset have
    /// them. Only changes are written. Threads that another program has moved are let go, and
    /// threads that have exited are forgotten.
    pub fn apply(&mut self, plan: &[(ThreadId, ThreadWish)]) -> ApplyReport {
        // Before any look at a mask: a mask that the guardian has restored was not changed by a stranger.
        self.notice_restoration();
        let mut report = ApplyReport {
            guardian: self.ensure_guardian(),
            ..ApplyReport::default()
        };
        let now = Instant::now();
        let mut nudges = Vec::new();
        for (thread, wanted) in plan {
            self.apply_wish(*thread, wanted, now, (&mut report, &mut nudges));
        }
        self.nudge_threads(nudges, &mut report);
        self.rewrite_if_grown();
        report
    }

    fn apply_wish(
        &mut self,
        thread: ThreadId,
        wanted: &ThreadWish,
        now: Instant,
        (report, nudges): (&mut ApplyReport, &mut Vec<(ThreadId, PuSet)>),
    ) {
        let Some(managed) = self.threads.get(&thread) else {
            report.refused.push((thread, Refusal::NotManaged));
            return;
        };
        // A look is a system call for each thread, so a thread that was looked at lately and is
        // where it is wanted is skipped.
        let is_recent = now.saturating_duration_since(managed.looked) < self.looks_every;
        if is_recent && is_met(managed, &goal(managed, wanted)) {
            report.unchanged += 1;
            return;
        }
        let look = self.check_mask(thread, managed);
        if let Some(managed) = self.threads.get_mut(&thread) {
            managed.looked = now;
        }
        match look {
            MaskCheck::Gone => self.count_gone(thread, report),
            MaskCheck::Unseen(error) => report.refused.push((thread, Refusal::Unseen(error))),
            // The guardian announces a restoration before its first write, so a restoration is known by
            // now.
            MaskCheck::Changed(_) if self.notice_restoration() => report.unchanged += 1,
            MaskCheck::Changed(now) => {
                self.release_thread(thread);
                report.released.push((thread, now));
            }
            MaskCheck::Shifted { now, allowed } => {
                if let Some(managed) = self.threads.get_mut(&thread) {
                    managed.seen = now;
                    managed.allowed = allowed;
                }
                report.shifted.push(thread);
                self.pursue_goal(thread, wanted, true, (report, nudges));
            }
            MaskCheck::Steady => self.pursue_goal(thread, wanted, false, (report, nudges)),
        }
    }

    /// The root of the tree of programs that a thread belongs to.
    pub(super) fn root_of(&self, thread: ThreadId) -> u32 {
        let program = self.ledger.programs.get(&thread.pid);
        program.map_or(thread.pid, |program| program.root)
    }

    fn pursue_goal(
        &mut self,
        id: ThreadId,
        wanted: &ThreadWish,
        force: bool,
        (report, nudges): (&mut ApplyReport, &mut Vec<(ThreadId, PuSet)>),
    ) {
        let Some(managed) = self.threads.get(&id) else {
            return;
        };
        match goal(managed, wanted) {
            // By force after a shift: the kernel has changed the mask, although it was met before.
            met if is_met(managed, &met) && !force => report.unchanged += 1,
            MaskGoal::Free => self.unrestrict_thread(id, report),
            MaskGoal::Nudge(pus) => match self.journal_before_write(id, &pus, &report.guardian) {
                Ok(()) => nudges.push((id, pus)),
                Err(refusal) => report.refused.push((id, refusal)),
            },
            MaskGoal::Pin(pus) => self.pin(id, pus, report),
            MaskGoal::NoPuLeft => {
                report.refused.push((id, Refusal::NoPuLeft));
                if managed.wanted.is_some() {
                    self.unrestrict_thread(id, report);
                }
            }
        }
    }

    fn pin(&mut self, thread: ThreadId, pus: PuSet, report: &mut ApplyReport) {
        if let Err(refusal) = self.journal_before_write(thread, &pus, &report.guardian) {
            report.refused.push((thread, refusal));
            return;
        }
        let root = self.root_of(thread);
        // In force from before the write, because the thread may start others at any moment after
        // it.
        self.mask_history.add_holder(root, &pus, now_ticks());
        let mask = affinity::Mask::Only(pus.clone());
        let outcome = write_mask(&self.host, thread, &mask);
        if !matches!(outcome, MaskWriteOutcome::Done(..)) {
            self.mask_history.remove_holder(root, &pus, now_ticks());
        }
        match outcome {
            // The cpuset has shrunk since it was looked at.
            MaskWriteOutcome::Failed(Errno::EINVAL) => {
                report.refused.push((thread, Refusal::NoPuLeft));
                self.unrestrict_thread(thread, report);
            }
            outcome => self.record_write_outcome(thread, Some(pus), outcome, report),
        }
    }

    /// Nudges threads that the journal has, CPU by CPU, so that Consort's own thread moves seldom.
    /// It begins with the CPU that it is on.
    fn nudge_threads(&mut self, nudges: Vec<(ThreadId, PuSet)>, report: &mut ApplyReport) {
        let own = sched_getcpu().ok().and_then(|pu| u32::try_from(pu).ok());
        let mut located = Vec::with_capacity(nudges.len());
        for (thread, pus) in nudges {
            match self.stat_files.read_thread(&self.host, thread) {
                Ok(Some(there)) => located.push((own != Some(there.pu.0), there.pu, thread, pus)),
                Ok(None) => self.count_nudged_away(thread, &pus, report),
                Err(error) => report.refused.push((thread, Refusal::Unseen(error))),
            }
        }
        located.sort_unstable_by_key(|(elsewhere, pu, thread, _)| (*elsewhere, *pu, *thread));
        for (_, pu, thread, pus) in located {
            self.nudge(thread, pu, pus, report);
        }
        self.caller.restore_own_mask();
    }

    fn nudge(&mut self, thread: ThreadId, pu: PuId, pus: PuSet, report: &mut ApplyReport) {
        let Some(managed) = self.threads.get(&thread) else {
            return;
        };
        let (seen, original) = (managed.seen.clone(), managed.original.mask());
        let root = self.root_of(thread);
        self.mask_history.add_holder(root, &pus, now_ticks());
        let nudge = Nudge::new(thread, pus, seen, &original);
        let (host, stat_files) = (&self.host, &mut self.stat_files);
        let (mut at, mut there) = (pu, Ok(None));
        for _ in 0..TRIES {
            self.caller.move_to_pu(host, at);
            there = stat_files.read_thread(host, thread);
            match there {
                // It may have gone elsewhere while Consort came, or Consort took long.
                Ok(Some(now)) if now.pu != at || !self.caller.has_fresh_slice() => at = now.pu,
                _ => break,
            }
        }
        let nudged = match there {
            Ok(Some(before)) => {
                nudge.move_thread(host, before, || stat_files.read_thread(host, thread))
            }
            Ok(None) => NudgeOutcome::Gone,
            // A failed reading does not mean that the thread is gone.
            Err(error) => NudgeOutcome::Refused(error.errno()),
        };
        // A stuck mask stays in force.
        if !matches!(nudged, NudgeOutcome::Stuck(_)) {
            self.mask_history
                .remove_holder(root, &nudge.pus, now_ticks());
        }
        self.record_nudge_outcome(thread, &nudge.pus, nudged, report);
    }

    fn record_nudge_outcome(
        &mut self,
        thread: ThreadId,
        pus: &PuSet,
        nudged: NudgeOutcome,
        report: &mut ApplyReport,
    ) {
        match nudged {
            NudgeOutcome::Done { now, there, narrow } => {
                report.nudged.push(thread);
                report.windows.push((thread, narrow));
                self.note_written(thread, None, (now, there), report);
            }
            // The next look finds the reason.
            NudgeOutcome::Overtaken => report.unchanged += 1,
            NudgeOutcome::Gone => self.count_nudged_away(thread, pus, report),
            NudgeOutcome::Changed(_) if self.notice_restoration() => report.unchanged += 1,
            NudgeOutcome::Changed(now) => {
                self.release_thread(thread);
                report.released.push((thread, now));
            }
            NudgeOutcome::Refused(errno) => report.refused.push((thread, Refusal::Kernel(errno))),
            NudgeOutcome::Stuck(errno) => {
                // From now on the narrow mask counts as a pin, so that it is restored like one.
                self.end_pin(thread);
                if let Some(managed) = self.threads.get_mut(&thread) {
                    managed.wanted = Some(pus.clone());
                    managed.seen = affinity::get(thread.tid).unwrap_or_default();
                }
                report.refused.push((thread, Refusal::Kernel(errno)));
            }
        }
    }

    fn unrestrict_thread(&mut self, thread: ThreadId, report: &mut ApplyReport) {
        let Some(managed) = self.threads.get(&thread) else {
            return;
        };
        let mut outcome = write_mask(&self.host, thread, &managed.original.mask());
        // The cpuset has no CPU of the original mask. The kernel itself would give the whole cpuset
        // then.
        if outcome == MaskWriteOutcome::Failed(Errno::EINVAL) {
            outcome = write_mask(&self.host, thread, &affinity::Mask::Open);
        }
        self.record_write_outcome(thread, None, outcome, report);
    }

    /// Makes sure that guardian and journal can undo a write that is to follow.
    fn journal_before_write(
        &mut self,
        thread: ThreadId,
        pus: &PuSet,
        guardian: &GuardianHealth,
    ) -> Result<(), Refusal> {
        if matches!(guardian, GuardianHealth::Missing(_)) {
            return Err(Refusal::NoGuardian);
        }
        let root = self.root_of(thread);
        let mut records = Vec::new();
        if let Some(managed) = self.threads.get(&thread)
            && !self.ledger.threads.contains_key(&thread)
        {
            records.push(JournalRecord::Thread(thread, managed.original.clone()));
        }
        // Once for each mask and tree, so that the journal does not grow with every nudge.
        if !self.ledger.has_mask_record(root, pus) {
            let pus = pus.clone();
            records.push(JournalRecord::Mask { root, pus });
        }
        if records.is_empty() {
            return Ok(());
        }
        let written = self.record(&records);
        written.map_err(|error| Refusal::NotJournalled(error.to_string()))
    }

    fn record_write_outcome(
        &mut self,
        thread: ThreadId,
        wanted: Option<PuSet>,
        outcome: MaskWriteOutcome,
        report: &mut ApplyReport,
    ) {
        match outcome {
            MaskWriteOutcome::Gone => self.count_gone(thread, report),
            MaskWriteOutcome::Failed(errno) => {
                report.refused.push((thread, Refusal::Kernel(errno)));
            }
            MaskWriteOutcome::Done(now, stat) => {
                self.note_written(
                    thread,
                    wanted,
                    (now, LiveThreadStat::from_stat(&stat)),
                    report,
                );
            }
        }
    }

    fn note_written(
        &mut self,
        thread: ThreadId,
        wanted: Option<PuSet>,
        (now, there): (PuSet, LiveThreadStat),
        report: &mut ApplyReport,
    ) {
        if let Some(managed) = self.threads.get_mut(&thread) {
            // The mask read back may be one that the thread has set a moment after the write: the
            // next look has to find that, so the one written counts as seen.
            let expected = managed.expected(wanted.as_ref());
            let as_expected = managed.seen == managed.expected(managed.wanted.as_ref());
            managed.seen = if as_expected { expected } else { now.clone() };
            managed.start_stack = there.start_stack;
        }
        self.end_pin(thread);
        if let Some(managed) = self.threads.get_mut(&thread) {
            managed.wanted = wanted;
        }
        report.written.push((thread, now));
    }

    fn count_gone(&mut self, thread: ThreadId, report: &mut ApplyReport) {
        self.forget(thread);
        report.gone += 1;
    }

    /// Counts a thread that is gone, or has become its process's leader by `exec` with this mask.
    fn count_nudged_away(&mut self, thread: ThreadId, pus: &PuSet, report: &mut ApplyReport) {
        self.note_exec(thread, pus);
        self.count_gone(thread, report);
    }

    fn release_thread(&mut self, thread: ThreadId) {
        self.forget(thread);
        // Journalled, so that the guardian leaves the mask alone as well.
        self.left.insert(thread, UnmanagedReason::Released);
        if let Err(error) = self.record(&[JournalRecord::Leave(thread)]) {
            tracing::warn!(%thread, %error, "a thread that was released may yet be restored");
        }
    }
}

fn goal(managed: &ManagedThread, wanted: &ThreadWish) -> MaskGoal {
    let (pus, goal): (_, fn(PuSet) -> MaskGoal) = match wanted {
        ThreadWish::Unrestricted => return MaskGoal::Free,
        ThreadWish::Nudge(pus) => (pus, MaskGoal::Nudge),
        ThreadWish::Only(pus) => (pus, MaskGoal::Pin),
    };
    let within = managed.original.clip_pus(pus);
    let allowed = &managed.allowed.pus;
    if within.intersection(allowed).is_empty() {
        MaskGoal::NoPuLeft
    } else if managed.original.effective_pus(allowed).is_subset(&within) {
        MaskGoal::Free
    } else {
        goal(within)
    }
}

/// Returns true if a thread has the mask already that it is to have.
fn is_met(managed: &ManagedThread, goal: &MaskGoal) -> bool {
    match goal {
        MaskGoal::Free => managed.wanted.is_none(),
        MaskGoal::Pin(pus) => managed.wanted.as_ref() == Some(pus),
        MaskGoal::Nudge(_) | MaskGoal::NoPuLeft => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::affinity::OriginalMask;
    use super::super::host::AllowedPuSet;
    use super::*;
    use proptest::prelude::*;

    pub(in super::super) fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    pub(in super::super) fn managed(
        original: &str,
        allowed: &str,
        wanted: Option<&str>,
    ) -> ManagedThread {
        let allowed = set(allowed);
        let original = OriginalMask::new(set(original), &allowed);
        ManagedThread {
            seen: original.effective_pus(&allowed),
            original,
            wanted: wanted.map(set),
            allowed: AllowedPuSet {
                pus: allowed,
                ..AllowedPuSet::default()
            },
            start_stack: 0,
            looked: Instant::now(),
        }
    }

    fn check_goal(original: &str, allowed: &str, wanted: &str, expect: &MaskGoal) {
        let thread = managed(original, allowed, None);
        assert_eq!(goal(&thread, &ThreadWish::Only(set(wanted))), *expect);
    }

    #[test]
    fn a_goal_lies_within_original_and_cpuset() {
        check_goal("0-3", "0-3", "2", &MaskGoal::Pin(set("2")));
        check_goal("0-1", "0-3", "1-2", &MaskGoal::Pin(set("1")));
        check_goal("0-1", "0-3", "2-3", &MaskGoal::NoPuLeft);
        check_goal("0-3", "0-3", "0-7", &MaskGoal::Free);
        check_goal("0-1", "0-3", "0-1", &MaskGoal::Free);
        check_goal("0-3", "0-3", "", &MaskGoal::NoPuLeft);
    }

    proptest! {
        #[test]
        fn no_goal_leaves_the_original_mask_or_is_empty(
            original in prop::collection::vec(0u32..8, 1..8),
            allowed in prop::collection::vec(0u32..8, 1..8),
            wanted in prop::collection::vec(0u32..8, 0..8),
        ) {
            let pus = |v: Vec<u32>| v.into_iter().map(PuId).collect::<PuSet>();
            let thread = managed(
                &pus(original).to_string(),
                &pus(allowed).to_string(),
                None,
            );
            if let MaskGoal::Pin(pus) = goal(&thread, &ThreadWish::Only(pus(wanted))) {
                let mask = pus.intersection(&thread.allowed.pus);
                prop_assert!(!mask.is_empty());
                prop_assert!(mask.is_subset(&thread.original.effective_pus(&thread.allowed.pus)));
            }
        }
    }
}
