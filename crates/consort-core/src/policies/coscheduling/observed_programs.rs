//! The programs of an observation: some take turns, some sleep, and some are left alone.

use crate::ids::ProgramId;
use crate::plan::{Decision, Placement, Reason};
use crate::pu_set::PuSet;
use crate::sample::{Observation, ThreadObservation};
use crate::signal::Signal;
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// A program and its threads.
#[derive(Debug)]
pub(super) struct ProgramThreads<'a> {
    pub(super) id: ProgramId,
    pub(super) threads: Vec<&'a ThreadObservation>,
    /// Number of threads that keep an affinity of their own: they take turns and are not placed.
    pub(super) self_placed: usize,
}

impl ProgramThreads<'_> {
    /// Name of the first thread, with the program's number.
    pub(super) fn name(&self) -> String {
        let name = self.threads.first().map_or("", |thread| &thread.name);
        format!("{name} ({})", self.id)
    }

    /// Restricts every managed thread to those of the CPUs that it may use.
    pub(super) fn place_threads(
        &self,
        pus: &PuSet,
        topology: &Topology,
        reason: &Reason,
        decision: &mut Decision,
    ) {
        for thread in self.threads.iter().filter(|thread| thread.managed) {
            let own = thread.original.intersection(pus);
            let whole = own.is_empty() || pus == topology.pus();
            let placement = if whole {
                Placement::Unrestricted
            } else {
                Placement::Restricted(own)
            };
            decision.place(thread.id, placement, reason.clone());
        }
    }

    pub(super) fn unrestrict_threads(&self, reason: &Reason, decision: &mut Decision) {
        for thread in self.threads.iter().filter(|thread| thread.managed) {
            decision.place(thread.id, Placement::Unrestricted, reason.clone());
        }
    }
}

/// The programs of an observation.
#[derive(Debug, Default)]
pub(super) struct ObservedPrograms<'a> {
    /// Programs that take turns, by id.
    pub(super) members: Vec<ProgramThreads<'a>>,
    /// Programs with a thread that must be left alone, by id. They take no turns, because a pause
    /// would not leave that thread alone.
    pub(super) let_alone: Vec<ProgramThreads<'a>>,
}

impl<'a> ObservedPrograms<'a> {
    /// The programs of each user; `None` owns the programs whose owner the machine does not report.
    pub(super) fn by_owner(seen: &'a Observation) -> BTreeMap<Option<u32>, Self> {
        let mut programs: BTreeMap<ProgramId, Vec<&ThreadObservation>> = BTreeMap::new();
        for thread in &seen.threads {
            let program = seen.program_of(thread.id);
            programs.entry(program).or_default().push(thread);
        }
        let mut rosters: BTreeMap<Option<u32>, Self> = BTreeMap::new();
        for (id, threads) in programs {
            let unmanaged = threads.iter().filter(|t| !t.managed);
            let (unmanaged, self_placed) = unmanaged.fold((0, 0), |(all, own), thread| {
                let places_itself = seen.self_placed.contains(&thread.id);
                (all + 1, own + usize::from(places_itself))
            });
            let program = ProgramThreads {
                id,
                threads,
                self_placed,
            };
            let roster = rosters.entry(seen.owners.get(&id).copied()).or_default();
            if unmanaged == self_placed {
                roster.members.push(program);
            } else {
                roster.let_alone.push(program);
            }
        }
        rosters
    }

    /// Ids of the programs that take turns, in ascending order.
    pub(super) fn ids(&self) -> Vec<ProgramId> {
        self.members.iter().map(|member| member.id).collect()
    }

    fn find(&self, id: ProgramId) -> Option<&ProgramThreads<'a>> {
        let at = self.members.binary_search_by_key(&id, |member| member.id);
        Some(&self.members[at.ok()?])
    }

    /// Name of a program with its id; only the id if the program does not take turns.
    pub(super) fn name(&self, id: ProgramId) -> String {
        self.find(id)
            .map_or_else(|| id.to_string(), ProgramThreads::name)
    }
}

/// Processor time that a program wants, a share of the time on one CPU, below which it sleeps.
const ASLEEP: f64 = 0.02;
/// The same for a program that sleeps, above which it takes turns again. It is greater, so that a
/// program near the bound does not come and go.
const AWAKE: f64 = 0.05;
/// Time for which a program must have been allowed to run before it is judged, ns. The kernel
/// counts processor time at its ticks, and waiting only once it is over, so that shorter times may
/// show nothing of a busy program.
const JUDGED_AFTER_NS: f64 = 1e8;

/// Programs that do not want to run, as seen when they were last allowed to.
///
/// A slot for a program that sleeps would keep all others waiting for nothing. Such a program is
/// not paused either: it costs the others nothing, and only while it may run does it show that it
/// wants to run again.
#[derive(Clone, Debug, Default)]
pub(super) struct SleepingPrograms {
    asleep: BTreeSet<ProgramId>,
    /// Time for which each program could run since it was last judged, and the part of it that it
    /// wanted, ns.
    evidence: BTreeMap<ProgramId, (f64, f64)>,
}

impl SleepingPrograms {
    /// Records an interval in which the programs of `ran` could run; it shows nothing of others. A
    /// program that was not judged yet counts as awake.
    pub(super) fn record_interval(
        &mut self,
        seen: &Observation,
        roster: &ObservedPrograms<'_>,
        ran: &BTreeSet<ProgramId>,
    ) {
        self.asleep.retain(|id| roster.find(*id).is_some());
        self.evidence.retain(|id, _| roster.find(*id).is_some());
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

    pub(super) fn contains(&self, id: ProgramId) -> bool {
        self.asleep.contains(&id)
    }
}

/// Processor time that the threads of a program had or waited for, ns; `None` if it is not known of
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
