//! `spread`: every active thread on a core of its own while there are cores.
//!
//! For hosts that offer only activity and a topology: it knows which CPUs share a core, and nothing
//! of what threads do. Threads are restricted to cores, not to CPUs, so that the OS can still
//! choose among siblings. If there are more active threads than CPUs, the most active ones are
//! placed and the rest is left to the OS, which balances run queues with what it may move. Sources:
//! the first two levels of Linux' own wake-up placement (idle core, then idle CPU), here kept for
//! CPU hogs that never wake up.
//!
//! On a live machine other work may need the same CPUs. A thread that is kept in its place then
//! prevents the kernel from balancing, so `spread` yields (see [`ReleasedThreads`]). With
//! `active=0` it places every thread that runs, whatever other work does.

use crate::ids::ThreadId;
use crate::plan::{Alternative, Decision, Fact, Placement, Reason};
use crate::policy::{
    ALL_USUAL, OptionInfo, Policy, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View, Wishes,
};
use crate::pu_set::PuSet;
use crate::sample::ThreadObservation;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "spread",
    family: "topology",
    source: "none: topology alone, as Linux' wake-up placement",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "gives each active thread an idle core first, then an idle CPU",
    options: &[OptionInfo {
        name: "active",
        default: "0.25",
        meaning: "threads below this share of one CPU are not placed (0 to 1); with 0 every \
                  thread that runs is placed, even while other work waits for its CPU",
    }],
    open,
};

fn open(_: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(SpreadPolicy {
        active: options.share("active")?,
        core_of: BTreeMap::new(),
        released: ReleasedThreads::default(),
    }))
}

/// A thread that has a core stays active down to this part of the threshold, so that a thread near
/// the threshold does not come and go.
const STAYS_ACTIVE: f64 = 0.5;

/// Factor by which a thread that has a core leads one of equal activity that has none, so that
/// equal threads do not take turns if CPUs are short.
const INCUMBENT: f64 = 1.1;
/// Cores that are reported next to the chosen one.
const RIVALS: usize = 3;

struct SpreadPolicy {
    active: f64,
    /// The core of each placed thread, by the core's CPUs, because indices change with hotplug.
    core_of: BTreeMap<ThreadId, PuSet>,
    released: ReleasedThreads,
}

impl Policy for SpreadPolicy {
    fn wishes(&self) -> Wishes {
        Wishes {
            idle: self.active > 0.0,
            ..Wishes::default()
        }
    }

    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        if self.active > 0.0 {
            self.released.record_interval(view, &self.core_of);
        }
        let mut threads = self.active_threads(view);
        let active: BTreeSet<ThreadId> = threads.iter().map(|t| t.id).collect();
        for thread in view.observation.managed_threads() {
            if !active.contains(&thread.id) {
                let why = self.reason_to_leave(view, thread);
                let why = why.unwrap_or("mostly idle".into());
                leave_to_os(view, thread, &why, &mut decision);
            }
        }
        let pus = view.topology.pus().len();
        for thread in threads.split_off(threads.len().min(pus)) {
            let why = "busier threads occupy all CPUs";
            leave_to_os(view, thread, why, &mut decision);
        }
        let mut slots = CoreSlots::new(view.topology, threads.len());
        let given = slots.assign_cores(&threads, &self.core_of);
        let emptiest_first = slots.emptiest_first();
        self.core_of.clear();
        let cores = view.topology.cores();
        for (thread, (core, rule)) in threads.iter().zip(given) {
            let Some(core) = core else {
                continue;
            };
            let whole: PuSet = cores[core].pus.iter().copied().collect();
            let pus = whole.intersection(&thread.original);
            let reason = Reason {
                considered: format!("{} cores", cores.len()),
                chosen: format!("CPU {whole}: {rule}"),
                facts: facts(view, thread),
            };
            let alternatives = slots.alternatives(thread, core, &emptiest_first);
            decision.report.alternatives.insert(thread.id, alternatives);
            self.core_of.insert(thread.id, whole);
            decision.place(thread.id, Placement::Restricted(pus), reason);
        }
        decision
    }
}

impl SpreadPolicy {
    /// Active threads, the most active first. A thread that has a core precedes others that are
    /// about as active.
    fn active_threads<'a>(&self, view: View<'a>) -> Vec<&'a ThreadObservation> {
        let is_active = |t: &&ThreadObservation| {
            view.observation.wanted_share(t) > 0.0 && self.reason_to_leave(view, t).is_none()
        };
        let all = view.observation.managed_threads();
        let mut threads: Vec<_> = all.filter(is_active).collect();
        let busy = |t: &ThreadObservation| {
            let placed = self.core_of.contains_key(&t.id);
            t.sample.cpu_time_ns() * if placed { INCUMBENT } else { 1.0 }
        };
        threads.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then(a.id.cmp(&b.id)));
        threads
    }

    fn reason_to_leave(
        &self,
        view: View<'_>,
        thread: &ThreadObservation,
    ) -> Option<Cow<'static, str>> {
        let placed = self.core_of.contains_key(&thread.id);
        let threshold = self.active * if placed { STAYS_ACTIVE } else { 1.0 };
        let why = view.observation.reason_to_leave(thread, threshold);
        let balanced = is_balanced(view.topology, thread);
        why.or_else(|| {
            self.released
                .reason_to_leave(thread.id)
                .filter(|_| balanced)
        })
    }
}

/// Returns true if the kernel balances any of the CPUs that a thread may use.
fn is_balanced(topology: &Topology, thread: &ThreadObservation) -> bool {
    !thread.original.is_subset(topology.unbalanced_pus())
}

fn leave_to_os(view: View<'_>, thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: format!("{} cores", view.topology.cores().len()),
        chosen: format!("not placed: {why}"),
        facts: facts(view, thread),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

fn facts(view: View<'_>, thread: &ThreadObservation) -> Vec<Fact> {
    vec![Fact {
        name: "share of a CPU".into(),
        value: view.observation.cpu_share(thread),
        unit: "".into(),
    }]
}

/// Number of threads that each core has, and that it may have.
struct CoreSlots<'a> {
    topology: &'a Topology,
    taken: Vec<usize>,
    /// Threads that every core takes before any takes one more.
    level: usize,
    /// Cores that may have one thread more than `level`.
    extras: usize,
}

impl<'a> CoreSlots<'a> {
    fn new(topology: &'a Topology, threads: usize) -> Self {
        let cores = topology.cores();
        let slots_at = |level: usize| cores.iter().map(|c| c.pus.len().min(level)).sum::<usize>();
        let mut level = 0;
        while level < topology.smt() && slots_at(level + 1) <= threads {
            level += 1;
        }
        Self {
            topology,
            taken: vec![0; cores.len()],
            level,
            extras: threads - slots_at(level).min(threads),
        }
    }

    /// A core and the rule that gave it, for each thread. First, threads that have a core keep it.
    fn assign_cores(
        &mut self,
        threads: &[&ThreadObservation],
        earlier: &BTreeMap<ThreadId, PuSet>,
    ) -> Vec<(Option<usize>, &'static str)> {
        let mut given: Vec<(Option<usize>, &'static str)> = threads
            .iter()
            .map(|t| (self.keep_core(t, earlier.get(&t.id)), "unchanged"))
            .collect();
        for (slot, thread) in given.iter_mut().zip(threads) {
            if slot.0.is_none() {
                *slot = (
                    self.take_emptiest(thread),
                    "least loaded of those it may use",
                );
            }
        }
        given
    }

    fn keep_core(&mut self, thread: &ThreadObservation, core: Option<&PuSet>) -> Option<usize> {
        let first = core?.first()?;
        let core = self.topology.core_of(first)?;
        let within_level = self.taken[core] < self.level.min(self.topology.cores()[core].pus.len());
        let as_extra = !within_level && self.taken[core] == self.level && self.extras > 0;
        if !self.has_free_pu(core, thread) || !(within_level || as_extra) {
            return None;
        }
        if as_extra {
            self.extras -= 1;
        }
        self.taken[core] += 1;
        Some(core)
    }

    /// Takes the core with the fewest threads; among equals the largest, the one where the thread
    /// runs now, the one in the emptiest LLC domain.
    fn take_emptiest(&mut self, thread: &ThreadObservation) -> Option<usize> {
        let usable = (0..self.taken.len()).filter(|&core| self.has_free_pu(core, thread));
        let best = usable.min_by_key(|&core| {
            let facts = &self.topology.cores()[core];
            let capacity = self.topology.core_types()[facts.core_type].capacity;
            let elsewhere = thread.last_pu.is_none_or(|pu| !facts.pus.contains(&pu));
            let siblings = self.topology.llcs()[facts.llc].cores.iter();
            (
                self.taken[core],
                std::cmp::Reverse(capacity),
                elsewhere,
                siblings.map(|&core| self.taken[core]).sum::<usize>(),
                core,
            )
        })?;
        self.taken[best] += 1;
        Some(best)
    }

    /// Cores by the number of threads that they have, the emptiest first.
    fn emptiest_first(&self) -> Vec<usize> {
        let mut cores: Vec<usize> = (0..self.taken.len()).collect();
        cores.sort_by_key(|&core| self.taken[core]);
        cores
    }

    /// The core of a placed thread, and the first others that it may use, by the number of other
    /// placed threads there.
    fn alternatives(
        &self,
        thread: &ThreadObservation,
        chosen: usize,
        cores: &[usize],
    ) -> Vec<Alternative> {
        let pus_of = |core: usize| -> PuSet {
            let pus = self.topology.cores()[core].pus.iter();
            pus.copied().collect()
        };
        let is_rival = |&core: &usize| {
            let mut pus = self.topology.cores()[core].pus.iter();
            core != chosen && pus.any(|&pu| thread.original.contains(pu))
        };
        let rivals = cores.iter().copied().filter(is_rival).take(RIVALS);
        let alternative = |core: usize| Alternative {
            place: format!("core of CPU {}", pus_of(core)),
            cost: (self.taken[core] - usize::from(core == chosen)) as f64,
            measure: "other placed threads".into(),
            is_chosen: core == chosen,
        };
        std::iter::once(chosen)
            .chain(rivals)
            .map(alternative)
            .collect()
    }

    fn has_free_pu(&self, core: usize, thread: &ThreadObservation) -> bool {
        let pus = self.topology.cores()[core].pus.iter();
        let usable = pus.filter(|pu| thread.original.contains(**pu)).count();
        self.taken[core] < usable
    }
}

/// Share of the time that a thread could run from which on waiting shows that other work runs on
/// its CPU. A tick of the kernel, Consort itself and short system services stay below.
const WAITS_FROM: f64 = 0.2;
/// A thread counts from this share of a CPU on.
const WANTS_FROM: f64 = 0.05;
/// Idle time of all CPUs, in CPUs, below which there is no room for a thread that waits.
const FULL_BELOW: f64 = 0.5;
/// Decisions for which a thread is left to the kernel after it waited last.
const LEFT_FOR: u32 = 5;

/// Threads that are released to the kernel while other work needs their CPUs, and for how long.
///
/// A thread that waits although it has a core of its own shares that core with work that the plan
/// does not know. The kernel would move one of the two, but if the thread is moved back each time,
/// both wait. Waiting alone is no reason: a thread without a place may wait because two share a CPU
/// while another CPU is idle, and then a place helps.
#[derive(Debug, Default)]
struct ReleasedThreads {
    /// Decisions for which all threads are left.
    all: u32,
    /// Decisions for which single threads are.
    single: BTreeMap<ThreadId, u32>,
}

impl ReleasedThreads {
    /// Records an interval in which these threads had places. Nothing changes if the idle time of
    /// the CPUs is not measured, as on simulated machines, where there is no other work.
    fn record_interval(&mut self, view: View<'_>, places: &BTreeMap<ThreadId, PuSet>) {
        let seen = view.observation;
        self.all = self.all.saturating_sub(1);
        self.single.retain(|&id, left| {
            *left -= 1;
            *left > 0 && seen.thread(id).is_some()
        });
        let Some(idle_pus) = seen.idle_pus else {
            return;
        };
        for thread in seen.managed_threads() {
            let waits = seen.waiting_share(thread).unwrap_or(0.0) >= WAITS_FROM;
            let counts = waits && seen.wanted_share(thread) >= WANTS_FROM;
            if !counts || !is_balanced(view.topology, thread) {
                continue;
            }
            // One more, because the decision of this interval counts too.
            if idle_pus < FULL_BELOW {
                self.all = LEFT_FOR + 1;
            }
            if places.contains_key(&thread.id) {
                self.single.insert(thread.id, LEFT_FOR + 1);
            }
        }
    }

    /// Returns the reason for leaving a thread to the kernel, if any.
    fn reason_to_leave(&self, id: ThreadId) -> Option<Cow<'static, str>> {
        let why = if self.all > 0 {
            "work waits for CPUs and none is idle, so that the kernel balances"
        } else if self.single.contains_key(&id) {
            "other work runs on the CPU that it had"
        } else {
            return None;
        };
        Some(why.into())
    }
}

#[cfg(test)]
mod tests;
