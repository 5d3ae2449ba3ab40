//! Plans: where each thread may run next, and why.

use crate::ids::{ProgramId, ThreadId};
use crate::pu_set::PuSet;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Places where a thread may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Anywhere that the thread could run without Consort.
    Unrestricted,
    /// On these CPUs only; a subset of its original mask.
    Restricted(PuSet),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrestricted => f.write_str("unrestricted"),
            Self::Restricted(pus) => write!(f, "CPU {pus}"),
        }
    }
}

/// A number that decided, with its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Name of the fact, for example `fp usage`.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: f64,
    /// Its unit; empty for a share or a count.
    pub unit: Cow<'static, str>,
}

/// Reason for a thread's place in the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Alternatives.
    pub considered: String,
    /// Choice, and the rule that made it.
    pub chosen: String,
    /// The numbers that decided.
    pub facts: Vec<Fact>,
}

/// A place that a policy could have chosen for a thread, and the predicted cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The place, for example a co-runner or a core.
    pub place: String,
    /// Cost by which the policy compared it; the least is best.
    pub cost: f64,
    /// Name of the cost, with its unit.
    pub measure: Cow<'static, str>,
    /// True for the place that was chosen.
    pub is_chosen: bool,
}

/// Explanation of a whole plan, rendered only when it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// Remarks on the plan as a whole, one sentence each.
    pub notes: Vec<String>,
    /// Reason for the place of each thread.
    pub threads: BTreeMap<ThreadId, Reason>,
    /// Places that were compared for each thread, the chosen one and its closest rivals. A thread is
    /// missing if the policy places it by a rule, without comparing costs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alternatives: BTreeMap<ThreadId, Vec<Alternative>>,
}

/// Decision of a policy, from which the control loop makes a [`Plan`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Placements; threads without one are unrestricted.
    pub placements: BTreeMap<ThreadId, Placement>,
    /// Length of the next quantum, ns, if it differs from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_ns: Option<u64>,
    /// Programs to pause; paused programs that are missing here continue. Simulated machines with a
    /// hardware scheduler do not pause programs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub paused: BTreeSet<ProgramId>,
    /// Number of threads for malleable programs; others keep theirs. Live machines cannot change
    /// it, nor can simulated machines with a hardware scheduler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<ProgramId, u32>,
    /// Reasons for the placements.
    pub report: PlanReport,
}

impl Decision {
    /// Places a thread and records the reason.
    pub fn place(&mut self, thread: ThreadId, placement: Placement, reason: Reason) {
        self.placements.insert(thread, placement);
        self.report.threads.insert(thread, reason);
    }
}

/// An immutable decision for one quantum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Number that grows by one per plan. A machine refuses a plan that is not newer than its last.
    pub generation: u64,
    /// Placement of each observed thread.
    pub placements: BTreeMap<ThreadId, Placement>,
    /// Length of the next quantum, ns, if it differs from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_ns: Option<u64>,
    /// Programs to pause; paused programs that are missing here continue. Simulated machines with a
    /// hardware scheduler do not pause programs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub paused: BTreeSet<ProgramId>,
    /// Number of threads for malleable programs; others keep theirs. Live machines cannot change
    /// it, nor can simulated machines with a hardware scheduler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<ProgramId, u32>,
    /// Reasons for the placements.
    pub report: PlanReport,
}

impl Plan {
    /// Threads whose placement differs from an earlier one, with the new placement. Threads without
    /// an earlier placement were unrestricted.
    pub fn changes<'a>(
        &'a self,
        earlier: &'a BTreeMap<ThreadId, Placement>,
    ) -> impl Iterator<Item = (ThreadId, &'a Placement)> {
        self.placements.iter().filter_map(|(&thread, placement)| {
            let before = earlier.get(&thread).unwrap_or(&Placement::Unrestricted);
            (before != placement).then_some((thread, placement))
        })
    }
}
