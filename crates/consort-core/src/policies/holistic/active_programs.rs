//! Threads that take part because they want to run, program by program.

use crate::ids::{ProgramId, ThreadId};
use crate::policy::View;
use crate::sample::ThreadObservation;
use crate::signal::Signal;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Share of the interval that a thread must have run or waited for a CPU to take part.
const JOINS_FROM: f64 = 0.1;
/// Quanta in succession below that share after which a thread no longer takes part.
const LEAVES_AFTER: u32 = 8;

/// A program with its threads that take part.
#[derive(Clone, Debug)]
pub(super) struct ActiveProgram<'a> {
    program: ProgramId,
    pub(super) name: Arc<str>,
    /// Threads of the program that take part, by id.
    pub(super) members: Vec<&'a ThreadObservation>,
}

impl ActiveProgram<'_> {
    /// Sum of a signal over the threads for which it is known; `None` if it is known for none.
    pub(super) fn sum(&self, signal: Signal) -> Option<f64> {
        let known = self.members.iter().filter_map(|t| t.sample.get(signal));
        known.reduce(|a, b| a + b)
    }

    /// Mean of a signal over the same threads as [`ActiveProgram::sum`].
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

    /// Two loads are the same if their signatures are.
    pub(super) fn signature(&self) -> LoadSignature {
        let groups = self.groups.iter();
        groups
            .map(|group| (Arc::clone(&group.name), group.members.len()))
            .collect()
    }
}

/// Programs by name, each with its number of threads.
pub(super) type LoadSignature = Vec<(Arc<str>, usize)>;

/// Remembers the threads that take part, so that one that sleeps for a moment does not leave.
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
        let mut programs: BTreeMap<ProgramId, ActiveProgram<'a>> = BTreeMap::new();
        for thread in seen.managed_threads() {
            if let Some(why) = self.reason_to_leave(view, thread) {
                crowd.left.push((thread, why));
                continue;
            }
            let program = seen.program_of(thread.id);
            let group = programs.entry(program).or_insert_with(|| ActiveProgram {
                program,
                name: Arc::clone(&thread.name),
                members: Vec::new(),
            });
            group.members.push(thread);
        }
        crowd.groups = programs.into_values().collect();
        // By name first, so that a program that is started again has the same place.
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
            return Some("it may not run on every CPU, and mappings use all".into());
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
