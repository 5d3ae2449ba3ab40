//! One rotation for each user: programs of different users never wait for each other's turns.
//!
//! The rotations run side by side. The programs of one user's slot share the machine with those of
//! the others' slots as the operating system divides it, so that no user can slow another one down
//! by programs in the same list.

use super::driver::{CoschedulingSettings, Driver, PARTS};
use super::observed_programs::ObservedPrograms;
use crate::coscheduling::Chooser;
use crate::plan::Decision;
use crate::policy::{Policy, PolicyRng, View, Wishes};
use std::collections::BTreeMap;

/// A driver for each owner of programs.
pub(super) struct Rotations<C> {
    settings: CoschedulingSettings,
    /// The chooser that a new rotation begins with.
    chooser: C,
    drivers: BTreeMap<Option<u32>, Driver>,
}

impl<C: Chooser + Clone + 'static> Rotations<C> {
    pub(super) fn new(settings: CoschedulingSettings, chooser: C) -> Self {
        Self {
            settings,
            chooser,
            drivers: BTreeMap::new(),
        }
    }
}

impl<C: Chooser + Clone + 'static> Policy for Rotations<C> {
    fn wishes(&self) -> Wishes {
        let quantum_ms = self.settings.quantum_ns / PARTS / 1_000_000;
        Wishes {
            quantum_ms: Some(quantum_ms.max(1)),
            ..Wishes::default()
        }
    }

    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let rosters = ObservedPrograms::by_owner(view.observation);
        self.drivers.retain(|owner, _| rosters.contains_key(owner));
        let several = rosters.values().filter(|r| !r.members.is_empty()).count() > 1;
        let mut decision = Decision::default();
        for (owner, roster) in &rosters {
            let (settings, chooser) = (self.settings, &self.chooser);
            let driver = self.drivers.entry(*owner);
            let driver = driver.or_insert_with(|| Driver::new(settings, Box::new(chooser.clone())));
            driver.observe_interval(view.topology, roster, view.observation);
            let notes = driver.add_to_decision(view.topology, roster, &mut decision);
            driver.record_runnable(roster, &decision);
            match owner {
                // Notes are shown to every user.
                Some(uid) if several => {
                    let programs = roster.members.len();
                    let note = format!("programs of user {uid} take turns: {programs}");
                    decision.report.notes.extend((programs > 0).then_some(note));
                }
                _ => decision.report.notes.extend(notes),
            }
        }
        decision
    }
}
