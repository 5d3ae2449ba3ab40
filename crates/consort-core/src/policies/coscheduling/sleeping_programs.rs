//! Programs that do not want to run, and so take no turns.
//!
//! A slot for a program that sleeps would keep all others waiting for nothing. Such a program is not
//! paused either: it costs the others nothing, and whether it wants to run again shows only while it
//! may.

use super::observed_programs::{ObservedPrograms, ProgramThreads};
use crate::ids::ProgramId;
use crate::sample::Observation;
use crate::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};

/// Processor time that a program wants, a share of the time on one PU, below which it sleeps.
const ASLEEP: f64 = 0.02;
/// The same for a program that sleeps, above which it takes turns again. It is greater, so that a
/// program near the bound does not come and go.
const AWAKE: f64 = 0.05;
/// Time for which a program must have been allowed to run before it is judged, ns. The kernel counts
/// processor time at its ticks, and waiting only once it is over, so that shorter times may show
/// nothing of a busy program.
const JUDGED_AFTER_NS: f64 = 1e8;

/// Programs that sleep, by what was seen of them when they were last allowed to run.
#[derive(Clone, Debug, Default)]
pub(super) struct SleepingPrograms {
    asleep: BTreeSet<ProgramId>,
    /// Time for which each program could run since it was last judged, and the time that it wanted
    /// of it, ns.
    evidence: BTreeMap<ProgramId, (f64, f64)>,
}

impl SleepingPrograms {
    /// Takes in an interval in which these programs could run; nothing is learned of others. A
    /// program that was not judged yet counts as awake.
    pub(super) fn record_interval(
        &mut self,
        seen: &Observation,
        roster: &ObservedPrograms<'_>,
        ran: &BTreeSet<ProgramId>,
    ) {
        self.asleep.retain(|id| roster.has(*id));
        self.evidence.retain(|id, _| roster.has(*id));
        for member in roster.members.iter().filter(|m| ran.contains(&m.id)) {
            let Some(wanted_ns) = wanted_ns(seen, member) else {
                self.asleep.remove(&member.id);
                self.evidence.remove(&member.id);
                continue;
            };
            let (time, wanted) = self.evidence.entry(member.id).or_default();
            *time += seen.interval_ns as f64;
            *wanted += wanted_ns;
            if *time < JUDGED_AFTER_NS {
                continue;
            }
            let was_asleep = self.asleep.contains(&member.id);
            if *wanted < *time * if was_asleep { AWAKE } else { ASLEEP } {
                self.asleep.insert(member.id);
            } else {
                self.asleep.remove(&member.id);
            }
            self.evidence.remove(&member.id);
        }
    }

    /// Returns true if a program sleeps.
    pub(super) fn contains(&self, id: ProgramId) -> bool {
        self.asleep.contains(&id)
    }
}

/// Processor time that the threads of a program had or waited for, ns. `None` if it is not known of
/// some thread.
fn wanted_ns(seen: &Observation, member: &ProgramThreads<'_>) -> Option<f64> {
    let mut known = member.threads.iter().map(|thread| &thread.sample);
    if !known.all(|sample| sample.get(Signal::CpuTime).is_some()) {
        return None;
    }
    let exited = seen.exited.iter();
    let exited = exited.filter(|thread| seen.program_of(thread.id) == member.id);
    let all = member.threads.iter().copied().chain(exited);
    let share: f64 = all.map(|thread| seen.wanted_share(thread)).sum();
    Some(share * seen.interval_ns as f64)
}
