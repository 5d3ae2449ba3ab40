//! The masks that Consort had in force in trees of programs, each with the times.
//!
//! A new thread has inherited a mask of Consort's only if that mask was in force when the thread was
//! started. So its start, which is known to one clock tick (10 ms), shows whether it has chosen the
//! same mask itself: nudges are in force for microseconds.

use super::affinity::effective_mask;
use consort_core::PuSet;
use std::collections::{BTreeMap, VecDeque};

/// Uncertainty of times, clock ticks: the kernel rounds starts down to whole ticks, and so is the
/// present rounded.
const SLACK_TICKS: u64 = 1;
/// Most spells that are kept per mask; beyond that, the two oldest are joined, with the time
/// between.
const MOST_SPELLS: usize = 32;

/// The spells of every mask, by the root of the tree that it was written in.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenMaskHistory(BTreeMap<(u32, PuSet), MaskSpells>);

/// Spells in which one mask was in force, in clock ticks since boot.
#[derive(Clone, Debug, Default)]
struct MaskSpells {
    /// Number of threads that have the mask now.
    holders: usize,
    /// Tick from which on some thread has had it without a break; means nothing while none has it.
    since: u64,
    /// Spells that are over: first and last tick, the oldest first.
    spells: VecDeque<(u64, u64)>,
}

impl WrittenMaskHistory {
    /// Notes that a thread of the tree is about to get this mask.
    pub(crate) fn add_holder(&mut self, root: u32, pus: &PuSet, now: u64) {
        let history = self.0.entry((root, pus.clone())).or_default();
        if history.holders == 0 {
            history.since = now;
        }
        history.holders += 1;
    }

    /// Notes that a thread of the tree no longer has this mask.
    pub(crate) fn remove_holder(&mut self, root: u32, pus: &PuSet, now: u64) {
        if let Some(history) = self.0.get_mut(&(root, pus.clone())) {
            history.holders = history.holders.saturating_sub(1);
            if history.holders == 0 {
                history.add(history.since, now);
            }
        }
    }

    /// Notes a thread that was found to have had this mask from its birth until now.
    pub(crate) fn add_past_holder(&mut self, root: u32, pus: &PuSet, born: u64, now: u64) {
        self.0
            .entry((root, pus.clone()))
            .or_default()
            .add(born, now);
    }

    /// Returns true if a thread born at this tick can have inherited the mask that it shows under
    /// the CPUs allowed now.
    pub(crate) fn covers(&self, root: u32, seen: &PuSet, allowed: &PuSet, born: u64) -> bool {
        let in_tree = self.0.iter().filter(|((r, _), _)| *r == root);
        in_tree
            .filter(|((_, mask), _)| effective_mask(mask, allowed) == *seen)
            .any(|(_, history)| history.includes(born))
    }

    /// Forgets trees that are gone.
    pub(crate) fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.0.retain(|(root, _), _| is_there(*root));
    }
}

impl MaskSpells {
    fn add(&mut self, from: u64, until: u64) {
        match self.spells.back_mut() {
            Some(last) if from <= last.1 + SLACK_TICKS => {
                last.0 = last.0.min(from);
                last.1 = last.1.max(until);
            }
            _ => self.spells.push_back((from, until)),
        }
        // The two oldest are joined, which may take a thread's own choice for an inherited mask,
        // never the reverse.
        if self.spells.len() > MOST_SPELLS
            && let Some((from, _)) = self.spells.pop_front()
            && let Some(second) = self.spells.front_mut()
        {
            second.0 = second.0.min(from);
        }
    }

    fn includes(&self, born: u64) -> bool {
        let present = self.holders > 0 && born + SLACK_TICKS >= self.since;
        let past = |&(from, until): &(u64, u64)| {
            (from.saturating_sub(SLACK_TICKS)..=until + SLACK_TICKS).contains(&born)
        };
        present || self.spells.iter().any(past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    fn heir(known: &WrittenMaskHistory, seen: &str, born: u64) -> bool {
        known.covers(1, &set(seen), &set("0-3"), born)
    }

    #[test]
    fn heir_started_while_mask_was_in_force() {
        let mut known = WrittenMaskHistory::default();
        known.add_holder(1, &set("0"), 100);
        assert!(heir(&known, "0", 150) && !heir(&known, "0", 50));
        known.remove_holder(1, &set("0"), 200);
        assert!(heir(&known, "0", 200) && !heir(&known, "0", 202));
        assert!(!heir(&known, "1", 150));
        assert!(!known.covers(2, &set("0"), &set("0-3"), 150));
    }

    #[test]
    fn mask_lasts_until_last_holder() {
        let mut known = WrittenMaskHistory::default();
        known.add_holder(1, &set("0"), 100);
        known.add_holder(1, &set("0"), 120);
        known.remove_holder(1, &set("0"), 130);
        assert!(heir(&known, "0", 500));
        known.remove_holder(1, &set("0"), 140);
        assert!(!heir(&known, "0", 500));
    }

    #[test]
    fn a_mask_is_known_under_a_smaller_cpuset() {
        let mut known = WrittenMaskHistory::default();
        known.add_holder(1, &set("2-3"), 100);
        assert!(known.covers(1, &set("2"), &set("0-2"), 100));
        assert!(known.covers(1, &set("0-1"), &set("0-1"), 100));
        assert!(!known.covers(1, &set("0"), &set("0-2"), 100));
    }

    proptest! {
        #[test]
        fn no_birth_within_a_spell_is_missed(
            spells in prop::collection::vec((1u64..50, 0u64..50), 1..80),
            which: prop::sample::Index,
            share in 0.0..1.0f64,
        ) {
            let mut known = WrittenMaskHistory::default();
            let mut now = 0;
            let mut held = Vec::new();
            for (gap, length) in spells {
                let from = now + gap;
                now = from + length;
                known.add_holder(1, &set("0"), from);
                known.remove_holder(1, &set("0"), now);
                held.push((from, now));
            }
            let (from, until) = held[which.index(held.len())];
            let born = from + ((until - from) as f64 * share) as u64;
            prop_assert!(heir(&known, "0", born));
        }
    }
}
