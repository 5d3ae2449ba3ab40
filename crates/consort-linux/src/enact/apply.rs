//! Carrying out of plans: minimal writes, each journalled before it happens.

use super::affinity;
use super::checked_write::{MaskWriteOutcome, write_mask};
use super::enactor::{Enactor, ManagedThread, UnmanagedReason};
use super::guardian::GuardianHealth;
use super::mask_check::MaskCheck;
use super::nudge::{Nudge, NudgeOutcome};
use super::record::JournalRecord;
use super::report::{ApplyReport, Refusal, ThreadWish};
use super::stat_file_cache::LiveThreadStat;
use crate::proc::now_ticks;
use consort_core::{PuId, PuSet, ThreadId};
use nix::errno::Errno;
use nix::sched::sched_getcpu;
use std::time::Instant;

/// Attempts to be on the PU of a thread, with time for a nudge, before it is nudged all the same.
const TRIES: usize = 3;

/// The part of a wish that the original mask and the cpuset leave possible.
#[derive(Debug, PartialEq, Eq)]
enum MaskGoal {
    /// The original mask, for good.
    Free,
    /// The original mask, once the thread is on these PUs.
    Nudge(PuSet),
    /// A lasting mask.
    Pin(PuSet),
    NoPuLeft,
}

impl Enactor {
    /// Gives each thread the PUs wanted for it, as far as its original mask and
    /// its cpuset have them. Only changes are written. Threads that somebody
    /// else has moved are let go, those that have exited are forgotten.
    pub fn apply(&mut self, plan: &[(ThreadId, ThreadWish)]) -> ApplyReport {
        // Before any look at a mask: what the guardian has restored is not a stranger's doing.
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
            // The guardian announces a restoration before its first write, so it is known by now.
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
        self.narrowings.add_holder(root, &pus, now_ticks());
        let mask = affinity::Mask::Only(pus.clone());
        let outcome = write_mask(&self.host, thread, &mask);
        if !matches!(outcome, MaskWriteOutcome::Done(..)) {
            self.narrowings.remove_holder(root, &pus, now_ticks());
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

    /// Nudges threads that the journal has, PU by PU, so that Consort's own thread moves seldom. It
    /// begins with the PU that it is on.
    fn nudge_threads(&mut self, nudges: Vec<(ThreadId, PuSet)>, report: &mut ApplyReport) {
        let own = sched_getcpu().ok().and_then(|pu| u32::try_from(pu).ok());
        let mut located = Vec::with_capacity(nudges.len());
        for (thread, pus) in nudges {
            match self.grips.read_thread(&self.host, thread) {
                Ok(Some(there)) => located.push((own != Some(there.pu.0), there.pu, thread, pus)),
                Ok(None) => self.count_nudged_away(thread, &pus, report),
                Err(error) => report.refused.push((thread, Refusal::Unseen(error))),
            }
        }
        located.sort_unstable_by_key(|(elsewhere, pu, thread, _)| (*elsewhere, *pu, *thread));
        for (_, pu, thread, pus) in located {
            self.nudge(thread, pu, pus, report);
        }
        self.stance.restore_own_mask();
    }

    fn nudge(&mut self, thread: ThreadId, pu: PuId, pus: PuSet, report: &mut ApplyReport) {
        let Some(managed) = self.threads.get(&thread) else {
            return;
        };
        let (seen, original) = (managed.seen.clone(), managed.original.mask());
        let root = self.root_of(thread);
        self.narrowings.add_holder(root, &pus, now_ticks());
        let nudge = Nudge::new(thread, pus, seen, &original);
        let (host, grips) = (&self.host, &mut self.grips);
        let (mut at, mut there) = (pu, Ok(None));
        for _ in 0..TRIES {
            self.stance.move_to_pu(host, at);
            there = grips.read_thread(host, thread);
            match there {
                // It may have gone elsewhere while Consort came, or Consort took long.
                Ok(Some(now)) if now.pu != at || !self.stance.has_fresh_slice() => at = now.pu,
                _ => break,
            }
        }
        let nudged = match there {
            Ok(Some(before)) => nudge.move_thread(host, before, || grips.read_thread(host, thread)),
            Ok(None) => NudgeOutcome::Gone,
            Err(error) => NudgeOutcome::Refused(error.errno()),
        };
        if !matches!(nudged, NudgeOutcome::Stuck(_)) {
            self.narrowings.remove_holder(root, &nudge.pus, now_ticks());
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
        self.left.insert(thread, UnmanagedReason::Released);
        if let Err(error) = self.record(&[JournalRecord::Leave(thread)]) {
            tracing::warn!(%thread, %error, "a thread that was let go may yet be restored");
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
    use super::super::host::AllowedPuSet;
    use super::super::original_mask::OriginalMask;
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
