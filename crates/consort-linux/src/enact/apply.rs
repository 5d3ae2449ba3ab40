//! Carrying out a plan: minimal writes, each journalled before it happens.

use super::affinity;
use super::checked_write::{Outcome, write};
use super::enactor::{Enactor, Left, Managed};
use super::guardian::Health;
use super::host::AllowedPus;
use super::original::effective;
use super::record::Record;
use super::report::{ApplyReport, Refusal, Wanted};
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;

/// How a thread is found before it is written.
enum Look {
    /// As it was left.
    Steady,
    /// The kernel moved its mask, for a cpuset or a PU that went offline or came.
    Shifted {
        allowed: PuSet,
    },
    /// Somebody else wrote this mask.
    Changed(PuSet),
    Gone,
}

/// What a wish comes to within the original mask and the cpuset.
#[derive(Debug, PartialEq, Eq)]
enum Goal {
    Free,
    Only(PuSet),
    NoPuLeft,
}

impl Enactor {
    /// Gives each thread the PUs wanted for it, as far as its original mask and
    /// its cpuset have them. Only changes are written. Threads that somebody
    /// else has moved are let go, those that have exited are forgotten.
    pub fn apply(&mut self, plan: &[(ThreadId, Wanted)]) -> ApplyReport {
        let mut report = ApplyReport {
            guardian: self.ensure_guardian(),
            ..ApplyReport::default()
        };
        for (thread, wanted) in plan {
            self.apply_one(*thread, wanted, &mut report);
        }
        self.rewrite_if_grown();
        report
    }

    fn apply_one(&mut self, thread: ThreadId, wanted: &Wanted, report: &mut ApplyReport) {
        let Some(managed) = self.threads.get(&thread) else {
            report.refused.push((thread, Refusal::NotManaged));
            return;
        };
        match self.look(thread, managed) {
            Look::Gone => self.count_gone(thread, report),
            Look::Changed(now) => {
                self.let_go(thread);
                report.released.push((thread, now));
            }
            Look::Shifted { allowed } => {
                if let Some(managed) = self.threads.get_mut(&thread) {
                    managed.allowed = allowed;
                }
                report.shifted.push(thread);
                self.pursue(thread, wanted, true, report);
            }
            Look::Steady => self.pursue(thread, wanted, false, report),
        }
    }

    /// Tells the kernel's own changes of a mask from those of somebody else.
    fn look(&self, thread: ThreadId, managed: &Managed) -> Look {
        let now = match affinity::get(thread.tid) {
            Ok(now) if now == managed.seen => return Look::Steady,
            Ok(now) => now,
            Err(_) => return Look::Gone,
        };
        let Some(stat) = self.host.same(thread) else {
            return Look::Gone;
        };
        let allowed = AllowedPus::new(&self.host).of(thread.pid, thread.tid);
        let moved_cpuset = allowed != managed.allowed && is_shift(managed, &now, &allowed);
        // An exec by another thread of the program passes that thread's mask,
        // which Consort wrote, to the leader's number.
        let moved_exec = stat.start_stack != managed.start_stack
            && self.ledger.wrote(self.root_of(thread), &now, &allowed);
        if moved_cpuset || moved_exec {
            Look::Shifted { allowed }
        } else {
            Look::Changed(now)
        }
    }

    fn root_of(&self, thread: ThreadId) -> u32 {
        let program = self.ledger.programs.get(&thread.pid);
        program.map_or(thread.pid, |program| program.root)
    }

    fn pursue(&mut self, id: ThreadId, wanted: &Wanted, force: bool, report: &mut ApplyReport) {
        let Some(managed) = self.threads.get(&id) else {
            return;
        };
        match goal(managed, wanted) {
            Goal::Free if managed.wanted.is_none() && !force => report.unchanged += 1,
            Goal::Only(pus) if managed.wanted.as_ref() == Some(&pus) && !force => {
                report.unchanged += 1;
            }
            Goal::Free => self.set_free(id, report),
            Goal::Only(pus) => self.restrict(id, pus, report),
            Goal::NoPuLeft => {
                report.refused.push((id, Refusal::NoPuLeft));
                if managed.wanted.is_some() {
                    self.set_free(id, report);
                }
            }
        }
    }

    fn restrict(&mut self, thread: ThreadId, pus: PuSet, report: &mut ApplyReport) {
        if let Err(refusal) = self.write_ahead(thread, &pus, &report.guardian) {
            report.refused.push((thread, refusal));
            return;
        }
        let mask = affinity::Mask::Only(pus.clone());
        match write(&self.host, thread, &mask) {
            // The cpuset has shrunk since it was looked at.
            Outcome::Failed(Errno::EINVAL) => {
                report.refused.push((thread, Refusal::NoPuLeft));
                self.set_free(thread, report);
            }
            outcome => self.account(thread, Some(pus), outcome, report),
        }
    }

    fn set_free(&mut self, thread: ThreadId, report: &mut ApplyReport) {
        let Some(managed) = self.threads.get(&thread) else {
            return;
        };
        let mut outcome = write(&self.host, thread, &managed.original.mask());
        if outcome == Outcome::Failed(Errno::EINVAL) {
            outcome = write(&self.host, thread, &affinity::Mask::Open);
        }
        self.account(thread, None, outcome, report);
    }

    /// Makes sure that guardian and journal can undo what is about to be done.
    fn write_ahead(
        &mut self,
        thread: ThreadId,
        pus: &PuSet,
        guardian: &Health,
    ) -> Result<(), Refusal> {
        if matches!(guardian, Health::Missing(_)) {
            return Err(Refusal::NoGuardian);
        }
        let root = self.root_of(thread);
        let mut records = Vec::new();
        if let Some(managed) = self.threads.get(&thread)
            && !self.ledger.threads.contains_key(&thread)
        {
            records.push(Record::Thread(thread, managed.original.clone()));
        }
        if !self.ledger.announced(root, pus) {
            let pus = pus.clone();
            records.push(Record::Mask { root, pus });
        }
        if records.is_empty() {
            return Ok(());
        }
        let written = self.record(&records);
        written.map_err(|error| Refusal::NotJournalled(error.to_string()))
    }

    fn account(
        &mut self,
        thread: ThreadId,
        wanted: Option<PuSet>,
        outcome: Outcome,
        report: &mut ApplyReport,
    ) {
        match outcome {
            Outcome::Gone => self.count_gone(thread, report),
            Outcome::Failed(errno) => report.refused.push((thread, Refusal::Kernel(errno))),
            Outcome::Done(now, stat) => {
                if let Some(managed) = self.threads.get_mut(&thread) {
                    managed.wanted = wanted;
                    managed.seen = now.clone();
                    managed.start_stack = stat.start_stack;
                }
                report.written.push((thread, now));
            }
        }
    }

    fn count_gone(&mut self, thread: ThreadId, report: &mut ApplyReport) {
        self.forget(thread);
        report.gone += 1;
    }

    fn let_go(&mut self, thread: ThreadId) {
        self.threads.remove(&thread);
        self.left.insert(thread, Left::Released);
        if let Err(error) = self.record(&[Record::Leave(thread)]) {
            tracing::warn!(%thread, %error, "a thread that was let go may yet be restored");
        }
    }
}

/// Whether the kernel alone can have made this mask of the one left behind:
/// it intersects with a new cpuset what was asked for (since Linux 6.2), or
/// gives the whole cpuset (before, and where nothing is common).
fn is_shift(managed: &Managed, now: &PuSet, allowed: &PuSet) -> bool {
    let kept = match &managed.wanted {
        Some(wanted) => effective(wanted, allowed),
        None => managed.original.target(allowed),
    };
    *now == kept || now == allowed
}

fn goal(managed: &Managed, wanted: &Wanted) -> Goal {
    let Wanted::Only(wanted) = wanted else {
        return Goal::Free;
    };
    let within = managed.original.within(wanted);
    if within.intersection(&managed.allowed).is_empty() {
        Goal::NoPuLeft
    } else if managed.original.target(&managed.allowed).is_subset(&within) {
        Goal::Free
    } else {
        Goal::Only(within)
    }
}

#[cfg(test)]
mod tests {
    use super::super::original::Original;
    use super::*;
    use consort_core::PuId;
    use proptest::prelude::*;

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    fn managed(original: &str, allowed: &str, wanted: Option<&str>) -> Managed {
        let allowed = set(allowed);
        let original = Original::new(set(original), &allowed);
        Managed {
            seen: original.target(&allowed),
            original,
            wanted: wanted.map(set),
            allowed,
            start_stack: 0,
        }
    }

    fn check_goal(original: &str, allowed: &str, wanted: &str, expect: &Goal) {
        let thread = managed(original, allowed, None);
        assert_eq!(goal(&thread, &Wanted::Only(set(wanted))), *expect);
    }

    #[test]
    fn a_goal_lies_within_original_and_cpuset() {
        check_goal("0-3", "0-3", "2", &Goal::Only(set("2")));
        check_goal("0-1", "0-3", "1-2", &Goal::Only(set("1")));
        check_goal("0-1", "0-3", "2-3", &Goal::NoPuLeft);
        check_goal("0-3", "0-3", "0-7", &Goal::Free);
        check_goal("0-1", "0-3", "0-1", &Goal::Free);
        check_goal("0-3", "0-3", "", &Goal::NoPuLeft);
    }

    #[test]
    fn the_kernels_own_changes_are_told_from_others() {
        let thread = managed("0-3", "0-3", Some("0-1"));
        assert!(is_shift(&thread, &set("0"), &set("0,2")));
        assert!(is_shift(&thread, &set("0,2"), &set("0,2")));
        assert!(!is_shift(&thread, &set("2"), &set("0,2")));
        let free = managed("0-1", "0-3", None);
        assert!(is_shift(&free, &set("1"), &set("1-3")));
        assert!(!is_shift(&free, &set("2"), &set("1-3")));
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
            if let Goal::Only(pus) = goal(&thread, &Wanted::Only(pus(wanted))) {
                let mask = pus.intersection(&thread.allowed);
                prop_assert!(!mask.is_empty());
                prop_assert!(mask.is_subset(&thread.original.target(&thread.allowed)));
            }
        }
    }
}
