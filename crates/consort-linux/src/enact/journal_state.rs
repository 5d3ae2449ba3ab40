//! The sum of a journal: managed programs, original masks, and the masks that were written. The
//! enactor, the guardian and the recovery of stale journals all restore from it, so that they cannot
//! disagree.

use super::affinity::{OriginalMask, effective_mask};
use super::record::{JournalRecord, ManagedProgram};
use crate::pause::FreezerCgroup;
use consort_core::{PuSet, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// A mask as it is found on a thread of a tree.
pub(crate) struct ObservedMask<'a> {
    /// Pid of the program at the root of the tree.
    pub root: u32,
    /// The mask.
    pub pus: &'a PuSet,
    /// CPUs that the cpuset allows.
    pub allowed: &'a PuSet,
    /// Start of the thread, clock ticks since boot; `None` for one that had its original mask when it was
    /// taken in.
    pub born: Option<u64>,
}

/// The sum of a journal's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JournalState {
    /// Managed programs by pid.
    pub programs: BTreeMap<u32, ManagedProgram>,
    /// Original masks of threads that were restricted at some time.
    pub threads: BTreeMap<ThreadId, OriginalMask>,
    /// Threads whose mask another program has set, so that it is not restored.
    pub left: BTreeSet<ThreadId>,
    /// Masks that were written, by the pid of the program at the root of the tree.
    pub masks: BTreeMap<u32, BTreeSet<PuSet>>,
    /// Stopped programs, as pid and start time.
    pub paused: BTreeSet<(u32, u64)>,
    /// Cgroups made for pausing.
    pub freezers: BTreeSet<FreezerCgroup>,
    /// Numbers of core-scheduling cookies that threads were given; at most one for each core.
    pub cookies: BTreeSet<u64>,
}

impl JournalState {
    /// Sums up records.
    pub(crate) fn new(records: impl IntoIterator<Item = JournalRecord>) -> Self {
        let mut ledger = Self::default();
        records.into_iter().for_each(|r| ledger.add_record(r));
        ledger
    }

    /// Enters one record; later records overrule earlier ones.
    pub(crate) fn add_record(&mut self, record: JournalRecord) {
        match record {
            JournalRecord::Program(program) => {
                self.programs.insert(program.pid, program);
            }
            JournalRecord::Thread(thread, original) => {
                // A thread that was left may be taken in again by the override.
                self.left.remove(&thread);
                self.threads.insert(thread, original);
            }
            JournalRecord::Mask { root, pus } => {
                self.masks.entry(root).or_default().insert(pus);
            }
            JournalRecord::Leave(thread) => {
                self.threads.remove(&thread);
                self.left.insert(thread);
            }
            JournalRecord::Paused { pid, start_ticks } => {
                self.paused.insert((pid, start_ticks));
            }
            JournalRecord::Resumed { pid, start_ticks } => {
                self.paused.remove(&(pid, start_ticks));
            }
            JournalRecord::Freezer(cgroup) => {
                self.freezers.insert(cgroup);
            }
            JournalRecord::FreezerGone(cgroup) => {
                self.freezers.remove(&cgroup);
            }
            JournalRecord::Cookie(id) => {
                self.cookies.insert(id);
            }
        }
    }

    /// Returns true if there is nothing to restore: no mask was written and nothing is paused.
    pub(crate) fn has_nothing_to_restore(&self) -> bool {
        self.threads.is_empty() && self.paused.is_empty() && self.freezers.is_empty()
    }

    /// The same without cgroups made for pausing and without cookies.
    pub(crate) fn without_cgroups_and_cookies(&self) -> Self {
        Self {
            freezers: BTreeSet::new(),
            cookies: BTreeSet::new(),
            ..self.clone()
        }
    }

    /// The shortest journal with the same sum.
    pub(crate) fn records(&self) -> Vec<JournalRecord> {
        let programs = self.programs.values().cloned().map(JournalRecord::Program);
        let threads = self
            .threads
            .iter()
            .map(|(&t, o)| JournalRecord::Thread(t, o.clone()));
        let masks = self.masks.iter().flat_map(|(&root, masks)| {
            let record = move |pus: &PuSet| JournalRecord::Mask {
                root,
                pus: pus.clone(),
            };
            masks.iter().map(record)
        });
        let left = self.left.iter().copied().map(JournalRecord::Leave);
        let paused = self.paused.iter();
        let paused = paused.map(|&(pid, start_ticks)| JournalRecord::Paused { pid, start_ticks });
        let freezers = self.freezers.iter().cloned().map(JournalRecord::Freezer);
        let cookies = self.cookies.iter().copied().map(JournalRecord::Cookie);
        programs
            .chain(threads)
            .chain(masks)
            .chain(left)
            .chain(paused)
            .chain(freezers)
            .chain(cookies)
            .collect()
    }

    /// Drops threads that are gone, programs that are no longer needed, and trees without programs.
    pub(crate) fn retain(
        &mut self,
        is_there: impl Fn(ThreadId) -> bool,
        is_needed: impl Fn(&ManagedProgram) -> bool,
    ) {
        self.threads.retain(|&thread, _| is_there(thread));
        self.left.retain(|&thread| is_there(thread));
        let needed = self.programs.values().filter(|p| is_needed(p));
        // A root is needed as long as its tree, because masks are recorded by root.
        let needed: BTreeSet<u32> = needed.flat_map(|p| [p.pid, p.root]).collect();
        self.programs.retain(|pid, _| needed.contains(pid));
        self.masks.retain(|root, _| needed.contains(root));
    }

    /// Returns true if a mask is the effect of some written mask of a tree under the CPUs that are
    /// allowed now. A journal does not show when masks were in force, so this may take a thread's
    /// own choice for Consort's.
    pub(crate) fn may_have_written(&self, seen: &ObservedMask<'_>) -> bool {
        let masks = self.masks.get(&seen.root).into_iter().flatten();
        masks
            .into_iter()
            .any(|mask| effective_mask(mask, seen.allowed) == *seen.pus)
    }

    /// Returns true if this very mask was announced for a tree.
    pub(crate) fn has_mask_record(&self, root: u32, pus: &PuSet) -> bool {
        self.masks
            .get(&root)
            .is_some_and(|masks| masks.contains(pus))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use proptest::prelude::*;

    const THREAD: ThreadId = ThreadId {
        pid: 1,
        tid: 2,
        start_ticks: 3,
    };

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_thread_that_was_left_is_not_restored() {
        let original = OriginalMask::new(set("0-1"), &set("0-1"));
        let thread = JournalRecord::Thread(THREAD, original);
        let mut ledger = JournalState::new([thread.clone(), JournalRecord::Leave(THREAD)]);
        assert!(ledger.threads.is_empty() && ledger.left.contains(&THREAD));
        ledger.add_record(thread);
        assert!(ledger.left.is_empty() && ledger.threads.contains_key(&THREAD));
    }

    #[test]
    fn written_masks_are_known_under_a_smaller_cpuset() {
        let ledger = JournalState::new([JournalRecord::Mask {
            root: 1,
            pus: set("2-3"),
        }]);
        let wrote = |root, pus: &str, allowed: &str| {
            ledger.may_have_written(&ObservedMask {
                root,
                pus: &set(pus),
                allowed: &set(allowed),
                born: None,
            })
        };
        assert!(wrote(1, "2", "0-2"));
        assert!(wrote(1, "0-1", "0-1"));
        assert!(!wrote(1, "0", "0-2"));
        assert!(!wrote(9, "2", "0-2"));
    }

    proptest! {
        #[test]
        fn the_shortest_journal_has_the_same_sum(records in prop::collection::vec(record(), 0..40)) {
            let ledger = JournalState::new(records);
            prop_assert_eq!(JournalState::new(ledger.records()), ledger);
        }
    }
}
