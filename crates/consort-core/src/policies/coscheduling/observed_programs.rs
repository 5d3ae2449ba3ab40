//! Programs that take turns, and those that are let alone.

use crate::ids::ProgramId;
use crate::sample::{Observation, ThreadObservation};
use std::collections::BTreeMap;

/// A program and its threads.
#[derive(Debug)]
pub(super) struct ProgramThreads<'a> {
    pub(super) id: ProgramId,
    pub(super) threads: Vec<&'a ThreadObservation>,
    /// Number of those threads that keep an affinity of their own: they take turns and are not
    /// placed.
    pub(super) self_placed: usize,
}

impl ProgramThreads<'_> {
    /// Its first thread's name, with its number.
    pub(super) fn name(&self) -> String {
        let name = self.threads.first().map_or("", |thread| &thread.name);
        format!("{name} ({})", self.id)
    }
}

/// The programs of an observation.
#[derive(Debug, Default)]
pub(super) struct ObservedPrograms<'a> {
    /// Programs that take turns, by id.
    pub(super) members: Vec<ProgramThreads<'a>>,
    /// Programs of which some thread must be let alone, by id: pausing them would not let it alone.
    pub(super) let_alone: Vec<ProgramThreads<'a>>,
}

impl<'a> ObservedPrograms<'a> {
    /// The programs of each user; `None` is the owner of those for which the machine names none.
    pub(super) fn by_owner(seen: &'a Observation) -> BTreeMap<Option<u32>, Self> {
        let all = Self::from_observation(seen);
        let owner_of = |member: &ProgramThreads<'_>| seen.owners.get(&member.id).copied();
        let mut rosters: BTreeMap<Option<u32>, Self> = BTreeMap::new();
        for member in all.members {
            let roster = rosters.entry(owner_of(&member)).or_default();
            roster.members.push(member);
        }
        for member in all.let_alone {
            let roster = rosters.entry(owner_of(&member)).or_default();
            roster.let_alone.push(member);
        }
        rosters
    }

    /// Sorts threads by program.
    fn from_observation(seen: &'a Observation) -> Self {
        let mut programs: BTreeMap<ProgramId, Vec<&ThreadObservation>> = BTreeMap::new();
        for thread in &seen.threads {
            let program = seen.program_of(thread.id);
            programs.entry(program).or_default().push(thread);
        }
        let is_self_placed =
            |t: &&ThreadObservation| !t.managed && seen.self_placed.contains(&t.id);
        let member = |(id, threads): (ProgramId, Vec<&'a ThreadObservation>)| {
            let self_placed = threads.iter().copied().filter(is_self_placed).count();
            ProgramThreads {
                id,
                threads,
                self_placed,
            }
        };
        let takes_turns = |member: &ProgramThreads<'_>| {
            let managed = member.threads.iter().filter(|t| t.managed).count();
            managed + member.self_placed == member.threads.len()
        };
        let (members, let_alone) = programs.into_iter().map(member).partition(takes_turns);
        Self { members, let_alone }
    }

    /// Ids of the programs that take turns, in ascending order.
    pub(super) fn ids(&self) -> Vec<ProgramId> {
        self.members.iter().map(|member| member.id).collect()
    }

    /// Returns true if a program takes turns.
    pub(super) fn has(&self, id: ProgramId) -> bool {
        let at = self.members.binary_search_by_key(&id, |member| member.id);
        at.is_ok()
    }

    /// Name of a program with its id; the id alone of one that does not take turns.
    pub(super) fn name(&self, id: ProgramId) -> String {
        let at = self.members.binary_search_by_key(&id, |member| member.id);
        at.map_or_else(|_| id.to_string(), |at| self.members[at].name())
    }
}
