//! Threads that take part: those that want to run, program by program.

use crate::ids::{ProgramId, ThreadId};
use crate::policy::View;
use crate::sample::ThreadObservation;
use crate::signal::Signal;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Share of the interval that a thread must have run or waited for a PU to take part.
const JOINS_FROM: f64 = 0.1;
/// Quanta in succession below that share after which a thread no longer takes part.
const LEAVES_AFTER: u32 = 8;

/// A program with its threads that take part.
#[derive(Clone, Debug)]
pub(super) struct ActiveProgram<'a> {
    pub(super) program: ProgramId,
    pub(super) name: Arc<str>,
    /// Threads of the program that take part, by id.
    pub(super) members: Vec<&'a ThreadObservation>,
}

impl ActiveProgram<'_> {
    /// Sum of a signal over the threads of which it is known; none where it is known of no thread.
    pub(super) fn sum(&self, signal: Signal) -> Option<f64> {
        let known = self.members.iter().filter_map(|t| t.sample.get(signal));
        known.reduce(|a, b| a + b)
    }

    /// Mean of a signal, over the threads that [`ActiveProgram::sum`] is of.
    pub(super) fn mean(&self, signal: Signal) -> Option<f64> {
        let known = self.members.iter().filter_map(|t| t.sample.get(signal));
        crate::stats::mean(&known.collect::<Vec<_>>())
    }
}

/// Programs by name and number, and the threads that do not take part.
#[derive(Clone, Debug, Default)]
pub(super) struct ActivePrograms<'a> {
    pub(super) groups: Vec<ActiveProgram<'a>>,
    /// Threads that do not take part, each with the reason.
    pub(super) left: Vec<(&'a ThreadObservation, Cow<'static, str>)>,
}

impl ActivePrograms<'_> {
    /// Number of threads of each program.
    pub(super) fn thread_counts(&self) -> Vec<usize> {
        self.groups.iter().map(|g| g.members.len()).collect()
    }

    /// Signature by which two loads are the same: the programs by name with their numbers of
    /// threads.
    pub(super) fn signature(&self) -> LoadSignature {
        let one = |group: &ActiveProgram<'_>| (Arc::clone(&group.name), group.members.len());
        self.groups.iter().map(one).collect()
    }
}

/// Programs by name, each with its number of threads.
pub(super) type LoadSignature = Vec<(Arc<str>, usize)>;

/// Memory of the threads that take part, so that one that sleeps for a moment does not come and go.
#[derive(Debug, Default)]
pub(super) struct ParticipationHistory {
    /// Quanta in succession in which each thread was hardly active.
    idle: BTreeMap<ThreadId, u32>,
}

impl ParticipationHistory {
    pub(super) fn collect_programs<'a>(&mut self, view: View<'a>) -> ActivePrograms<'a> {
        let seen = view.observation;
        self.idle.retain(|&id, _| seen.thread(id).is_some());
        let mut crowd = ActivePrograms::default();
        let mut programs: BTreeMap<ProgramId, Vec<&ThreadObservation>> = BTreeMap::new();
        for thread in seen.managed_threads() {
            match self.reason_to_leave(view, thread) {
                Some(why) => crowd.left.push((thread, why)),
                None => programs
                    .entry(seen.program_of(thread.id))
                    .or_default()
                    .push(thread),
            }
        }
        crowd.groups = programs
            .into_iter()
            .filter_map(program_from_threads)
            .collect();
        crowd
            .groups
            .sort_by(|a, b| (&a.name, a.program).cmp(&(&b.name, b.program)));
        crowd
    }

    fn reason_to_leave(
        &mut self,
        view: View<'_>,
        thread: &ThreadObservation,
    ) -> Option<Cow<'static, str>> {
        if !view.topology.pus().is_subset(&thread.original) {
            return Some("it may not run on every PU, and mappings use all".into());
        }
        let Some(why) = view.observation.reason_to_leave(thread, JOINS_FROM) else {
            self.idle.insert(thread.id, 0);
            return None;
        };
        let idle = self.idle.get_mut(&thread.id).map(|quanta| {
            *quanta += 1;
            *quanta
        });
        if idle.is_some_and(|quanta| quanta < LEAVES_AFTER) {
            return None;
        }
        self.idle.remove(&thread.id);
        Some(why)
    }
}

fn program_from_threads(
    (program, members): (ProgramId, Vec<&ThreadObservation>),
) -> Option<ActiveProgram<'_>> {
    let name = Arc::clone(&members.first()?.name);
    Some(ActiveProgram {
        program,
        name,
        members,
    })
}
