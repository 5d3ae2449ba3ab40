//! Ranking threads by FPU usage and giving them PUs, group by group.
//!
//! [`super::workover`] and [`super::aggregate`] differ only in which PUs make a group
//! ([`GroupArrangement`]); everything else is here: `ranking` orders the threads that take part, `nodes`
//! deals threads to NUMA nodes, `assign` gives each group's members their PUs, `history` remembers
//! their places.

mod assign;
mod history;
mod nodes;
mod ranking;

use crate::ids::PuId;
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{OptionInfo, Policy, PolicyError, PolicyOptions, PolicyRng, View};
use crate::pu_set::PuSet;
use crate::topology::Topology;
use assign::Assigner;
use history::PlaceHistory;
use ranking::{RankedThread, Ranking};

pub(super) const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        name: "active",
        default: "0.1",
        meaning: "threads below this share of one PU are left to the OS (0 to 1); up to 0.01, those \
                  that run briefly between sleeps are placed too",
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

/// Arrangement of PUs into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupArrangement {
    /// Group g: the g-th PU of every core, so that a group's members never share a core.
    AcrossCores,
    /// Group g: all PUs of the g-th core, so that they always do.
    CoreByCore,
}

impl GroupArrangement {
    /// The groups of the PUs in `domain`, most FPU-heavy first.
    fn groups(self, topology: &Topology, domain: &PuSet) -> Vec<Vec<PuId>> {
        let inside = |&pu: &PuId| domain.contains(pu);
        let cores = topology.cores().iter();
        let cores: Vec<Vec<PuId>> = cores
            .map(|core| core.pus.iter().copied().filter(inside).collect())
            .filter(|pus: &Vec<PuId>| !pus.is_empty())
            .collect();
        match self {
            Self::CoreByCore => cores,
            Self::AcrossCores => groups_by_way(&cores),
        }
    }
}

fn groups_by_way(cores: &[Vec<PuId>]) -> Vec<Vec<PuId>> {
    let ways = cores.iter().map(Vec::len).max().unwrap_or(0);
    (0..ways)
        .map(|way| {
            cores
                .iter()
                .filter_map(|core| core.get(way).copied())
                .collect()
        })
        .collect()
}

/// A thread's group: the node it was dealt to and the group's index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OccupancyGroup {
    node: usize,
    index: usize,
}

/// The policy behind `workover` and `aggregate`.
pub(super) struct Occupancy {
    arrangement: GroupArrangement,
    active: f64,
    heavy: f64,
    margin: f64,
    numa: bool,
    history: PlaceHistory,
    /// Threads that were given places when places were last given.
    seated: usize,
}

impl Occupancy {
    pub(super) fn new(
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

    /// The parts of the machine that are filled one by one: nodes, or everything at once.
    fn domains(&self, topology: &Topology) -> Vec<PuSet> {
        if self.numa {
            topology.nodes().iter().map(|n| n.pus.clone()).collect()
        } else {
            vec![topology.pus().clone()]
        }
    }

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
                let reason = reason(member, index, groups.len(), pu, rule);
                decision.place(member.id(), Placement::Restricted(pu.into()), reason);
                self.history.record(member.id(), pu, group);
            }
        }
        for left in queue {
            leave_to_os(&left, "no PU of its mask is left in any group", decision);
            self.history.leave_group(left.id());
        }
    }
}

impl Policy for Occupancy {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        self.history.retain_observed(view.observation);
        let mut decision = Decision::default();
        let ranking = Ranking::new(view, self.active, self.margin, &self.history);
        for (candidate, why) in &ranking.left {
            leave_to_os(candidate, why, &mut decision);
            self.history.leave_group(candidate.id());
        }
        if self.keeps_places(&ranking) {
            self.retain_places(&ranking, &mut decision);
            return decision;
        }
        self.seated = ranking.ranked.len();
        if !ranking.ranked.iter().any(|c| c.fp_usage >= self.heavy) {
            return self.leave_all_to_os(&ranking, decision);
        }
        let domains = self.domains(view.topology);
        let queues = nodes::divide_by_node(
            view.topology,
            &domains,
            ranking.ranked,
            self.heavy,
            &self.history,
        );
        for (node, (domain, queue)) in domains.iter().zip(queues).enumerate() {
            self.fill_domain(view, node, domain, queue, &mut decision);
        }
        decision
    }
}

impl Occupancy {
    /// Returns true where like stays with like because threads have only left since places were
    /// given: those that remain are not dealt out again, or one class would spread when the other
    /// has ended.
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
                chosen: format!("PU {pu}: others have left, so it keeps its place"),
                facts: candidate.facts(),
            };
            decision.place(candidate.id(), Placement::Restricted(pu.into()), reason);
            self.history.record(candidate.id(), pu, group);
        }
    }

    fn leave_all_to_os(&mut self, ranking: &Ranking<'_>, mut decision: Decision) -> Decision {
        let note = format!(
            "no active thread has an FPU usage of {} or more: nothing to spread",
            self.heavy
        );
        decision.report.notes.push(note);
        for candidate in &ranking.ranked {
            leave_to_os(candidate, "no thread is FPU-heavy", &mut decision);
            self.history.leave_group(candidate.id());
        }
        decision
    }
}

fn leave_to_os(candidate: &RankedThread<'_>, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: candidate.rank_text(),
        chosen: format!("left to the OS: {why}"),
        facts: candidate.facts(),
    };
    decision.place(candidate.id(), Placement::Unrestricted, reason);
}

fn reason(member: &RankedThread<'_>, group: usize, groups: usize, pu: PuId, rule: &str) -> Reason {
    Reason {
        considered: format!("{}, so group {} of {groups}", member.rank_text(), group + 1),
        chosen: format!("PU {pu}: {rule}"),
        facts: member.facts(),
    }
}

#[cfg(test)]
mod tests;
