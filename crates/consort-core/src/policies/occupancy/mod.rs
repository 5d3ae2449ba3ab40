//! Policies that rank threads by FPU usage and give them CPUs group by group: `workover` and
//! `aggregate`.
//!
//! Source: Peternier, Ansaloni, Bonetta, Pautasso, Binder, "Improving Execution Unit Occupancy on
//! SMT-based Processors through Hardware-aware Thread Scheduling" (FGCS), sections 3 to 5.
//!
//! Both observe cycles (or CPU time) and FPU usage per thread, by default once per second.
//!
//! `workover` puts FPU-heavy threads on different cores, each next to light ones. Group g holds the
//! next most FPU-heavy threads, as many as there are cores with more than g CPUs. Its members get
//! the g-th CPUs, each on another core, the heaviest next to the lightest. A thread that stays in
//! its group stays on its CPU, and a returning thread gets the CPU that it used most, so threads
//! move only when group membership changes.
//!
//! Beyond the paper: `margin` keeps noise from swapping threads of nearly equal usage (0 is the
//! paper's rule). `numa` assigns threads to nodes first, which the paper leaves to future work. The
//! paper leaves threads that use little FPU to the OS. Here they are placed as long as they share
//! the machine with a heavy one, because they are meant to be its neighbours. If no thread is
//! heavy, none is restricted.
//!
//! `aggregate` puts like with like, the deliberately bad placement of section 5 (`workover
//! --invert`): the most FPU-heavy threads fill the CPUs of the first core, the next most heavy
//! those of the second. It shows what bad luck costs, as a lower bound for studies. While threads
//! only leave, the ones that remain stay where they are: when one class has ended, the other is not
//! spread.

mod assign;
mod ranking;

use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{
    ALL_USUAL, OptionInfo, Policy, PolicyError, PolicyInfo, PolicyOptions, PolicyRng, View,
};
use crate::pu_set::PuSet;
use crate::sample::Observation;
use crate::signal::{Signal, Tier};
use crate::topology::Topology;
use assign::Assigner;
use ranking::{RankedThread, Ranking};
use std::collections::BTreeMap;

#[doc(alias = "WorkOver")]
pub(crate) const WORKOVER: PolicyInfo = PolicyInfo {
    name: "workover",
    family: "unit-occupancy",
    source: "Peternier et al., FGCS, sections 3-4",
    needs: &[Signal::CpuTime, Signal::FpUsage],
    uses: ALL_USUAL,
    tier_min: Tier::Sampling,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "puts FPU-heavy threads on different cores, each next to light ones",
    options: OPTIONS,
    open: |_, _, options| {
        let policy = Occupancy::new(GroupArrangement::AcrossCores, options)?;
        Ok(Box::new(policy))
    },
};

#[doc(alias = "inverted WorkOver")]
pub(crate) const AGGREGATE: PolicyInfo = PolicyInfo {
    name: "aggregate",
    source: "Peternier et al., FGCS, section 5",
    summary: "puts like with like: a lower bound for studies, not for use",
    open: |_, _, options| {
        let policy = Occupancy::new(GroupArrangement::CoreByCore, options)?;
        Ok(Box::new(policy))
    },
    ..WORKOVER
};

const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        name: "active",
        default: "0.1",
        meaning: "threads below this share of one CPU are not placed (0 to 1); up to 0.01, \
                  threads that run briefly between sleeps are placed too",
    },
    OptionInfo {
        name: "heavy",
        default: "0.05",
        meaning: "FPU usage from which a thread counts as FPU-heavy (0 to 1)",
    },
    OptionInfo {
        name: "margin",
        default: "0.05",
        meaning: "FPU usage by which a thread must lead to take another's group (0 to 1)",
    },
    OptionInfo {
        name: "numa",
        default: "true",
        meaning: "deal threads to NUMA nodes first, then to cores inside the node",
    },
];

/// Arrangement of CPUs into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupArrangement {
    /// Group g: the g-th CPU of every core, so that a group's members never share a core.
    AcrossCores,
    /// Group g: all CPUs of the g-th core, so that they always do.
    CoreByCore,
}

impl GroupArrangement {
    /// The groups of the CPUs in `domain`, most FPU-heavy first.
    fn groups(self, topology: &Topology, domain: &PuSet) -> Vec<Vec<PuId>> {
        let mut cores: Vec<Vec<PuId>> = Vec::new();
        for core in topology.cores() {
            let inside = core.pus.iter().copied().filter(|&pu| domain.contains(pu));
            cores.push(inside.collect());
        }
        cores.retain(|pus| !pus.is_empty());
        match self {
            Self::CoreByCore => cores,
            Self::AcrossCores => {
                let ways = cores.iter().map(Vec::len).max().unwrap_or(0);
                (0..ways)
                    .map(|way| {
                        let pus = cores.iter().filter_map(|core| core.get(way));
                        pus.copied().collect()
                    })
                    .collect()
            }
        }
    }
}

/// A thread's group: the node that it was assigned to, and the group's index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OccupancyGroup {
    node: usize,
    index: usize,
}

/// The policy behind `workover` and `aggregate`.
struct Occupancy {
    arrangement: GroupArrangement,
    active: f64,
    heavy: f64,
    margin: f64,
    numa: bool,
    history: PlaceHistory,
    /// Number of threads when CPUs were last given.
    seated: usize,
}

impl Occupancy {
    fn new(
        arrangement: GroupArrangement,
        options: &PolicyOptions<'_>,
    ) -> Result<Self, PolicyError> {
        Ok(Self {
            arrangement,
            active: options.share("active")?,
            heavy: options.share("heavy")?,
            margin: options.share("margin")?,
            numa: options.flag("numa")?,
            history: PlaceHistory::default(),
            seated: 0,
        })
    }

    /// Gives the CPUs of a domain to its queue of threads.
    fn fill_domain(
        &mut self,
        view: View<'_>,
        node: usize,
        domain: &PuSet,
        mut queue: Vec<RankedThread<'_>>,
        decision: &mut Decision,
    ) {
        let groups = self.arrangement.groups(view.topology, domain);
        let mut assigner = Assigner::new(view.topology);
        for (index, slots) in groups.iter().enumerate() {
            let group = OccupancyGroup { node, index };
            let members = assign::take_members(&mut queue, slots);
            let given = assigner.assign(group, slots, &members, &self.history);
            for (member, (pu, rule)) in members.iter().zip(given) {
                let (number, all) = (index + 1, groups.len());
                let reason = Reason {
                    considered: format!("{}, so group {number} of {all}", member.rank_text()),
                    chosen: format!("CPU {pu}: {rule}"),
                    facts: member.facts(),
                };
                decision.place(member.id(), Placement::Restricted(pu.into()), reason);
                self.history.record(member.id(), pu, group);
            }
        }
        for left in queue {
            self.leave_to_os(&left, "no CPU of its mask is left in any group", decision);
        }
    }

    /// Returns true if like stays with like because threads have only left since CPUs were given.
    /// The threads that remain keep their places, because otherwise one class would spread when the
    /// other has ended.
    fn keeps_places(&self, ranking: &Ranking<'_>) -> bool {
        let has_place = |c: &RankedThread<'_>| {
            let place = self.history.place(c.id());
            place.is_some_and(|(_, pu)| c.thread.original.contains(pu))
        };
        self.arrangement == GroupArrangement::CoreByCore
            && ranking.ranked.len() < self.seated
            && ranking.ranked.iter().all(has_place)
    }

    fn retain_places(&mut self, ranking: &Ranking<'_>, decision: &mut Decision) {
        for candidate in &ranking.ranked {
            let Some((group, pu)) = self.history.place(candidate.id()) else {
                continue;
            };
            let reason = Reason {
                considered: candidate.rank_text(),
                chosen: format!("CPU {pu}: others have left, so it keeps its place"),
                facts: candidate.facts(),
            };
            decision.place(candidate.id(), Placement::Restricted(pu.into()), reason);
            self.history.record(candidate.id(), pu, group);
        }
    }

    fn leave_to_os(&mut self, candidate: &RankedThread<'_>, why: &str, decision: &mut Decision) {
        let reason = Reason {
            considered: candidate.rank_text(),
            chosen: format!("not placed: {why}"),
            facts: candidate.facts(),
        };
        decision.place(candidate.id(), Placement::Unrestricted, reason);
        self.history.leave_group(candidate.id());
    }
}

impl Policy for Occupancy {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        self.history.retain_observed(view.observation);
        let mut decision = Decision::default();
        let ranking = Ranking::new(view, self.active, self.margin, &self.history);
        for (candidate, why) in &ranking.left {
            self.leave_to_os(candidate, why, &mut decision);
        }
        if self.keeps_places(&ranking) {
            self.retain_places(&ranking, &mut decision);
            return decision;
        }
        self.seated = ranking.ranked.len();
        if !ranking.ranked.iter().any(|c| c.fp_usage >= self.heavy) {
            let note = format!(
                "no active thread has an FPU usage of {} or more: nothing to spread",
                self.heavy
            );
            decision.report.notes.push(note);
            for candidate in &ranking.ranked {
                self.leave_to_os(candidate, "no thread is FPU-heavy", &mut decision);
            }
            return decision;
        }
        let domains: Vec<PuSet> = if self.numa {
            let nodes = view.topology.nodes().iter();
            nodes.map(|node| node.pus.clone()).collect()
        } else {
            vec![view.topology.pus().clone()]
        };
        let (ranked, history) = (ranking.ranked, &self.history);
        let queues = assign::divide_by_node(view.topology, &domains, ranked, self.heavy, history);
        for (node, (domain, queue)) in domains.iter().zip(queues).enumerate() {
            self.fill_domain(view, node, domain, queue, &mut decision);
        }
        decision
    }
}

/// Each thread's last group and CPU, and the number of quanta on each CPU.
#[derive(Debug, Default)]
struct PlaceHistory(BTreeMap<ThreadId, PlaceRecord>);

#[derive(Debug, Default)]
struct PlaceRecord {
    last: Option<(OccupancyGroup, PuId)>,
    /// Quanta spent on each CPU.
    used: BTreeMap<PuId, u64>,
}

impl PlaceHistory {
    fn retain_observed(&mut self, observation: &Observation) {
        self.0.retain(|&id, _| observation.thread(id).is_some());
    }

    fn record(&mut self, thread: ThreadId, pu: PuId, group: OccupancyGroup) {
        let entry = self.0.entry(thread).or_default();
        entry.last = Some((group, pu));
        *entry.used.entry(pu).or_default() += 1;
    }

    /// Records that the thread is in no group now. Its CPUs stay known, for when it comes back.
    fn leave_group(&mut self, thread: ThreadId) {
        if let Some(entry) = self.0.get_mut(&thread) {
            entry.last = None;
        }
    }

    /// The thread's group in the last quantum.
    fn group(&self, thread: ThreadId) -> Option<OccupancyGroup> {
        Some(self.place(thread)?.0)
    }

    /// The thread's group and CPU in the last quantum.
    fn place(&self, thread: ThreadId) -> Option<(OccupancyGroup, PuId)> {
        self.0.get(&thread)?.last
    }

    /// CPUs that the thread has had, most used first.
    fn most_used_pus(&self, thread: ThreadId) -> Vec<PuId> {
        let Some(entry) = self.0.get(&thread) else {
            return Vec::new();
        };
        let mut pus: Vec<(PuId, u64)> = entry.used.iter().map(|(&p, &n)| (p, n)).collect();
        pus.sort_by_key(|&(pu, quanta)| (std::cmp::Reverse(quanta), pu));
        pus.into_iter().map(|(pu, _)| pu).collect()
    }
}

#[cfg(test)]
mod tests;
