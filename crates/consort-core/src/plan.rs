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
    /// Wherever it could run without Consort.
    Unrestricted,
    /// On these PUs only; a subset of its original mask.
    Restricted(PuSet),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrestricted => f.write_str("unrestricted"),
            Self::Restricted(pus) => write!(f, "PU {pus}"),
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
    /// Alternatives that were considered.
    pub considered: String,
    /// Choice, and the rule that made it.
    pub chosen: String,
    /// The numbers that decided.
    pub facts: Vec<Fact>,
}

/// The explanation of a whole plan; it travels inside the plan and is only rendered later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// Remarks on the plan as a whole, one sentence each.
    pub notes: Vec<String>,
    /// Per thread: what was considered, what was chosen, the numbers that decided.
    pub threads: BTreeMap<ThreadId, Reason>,
}

/// Decision of a policy; the control loop makes it a [`Plan`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Threads that are not named are unrestricted.
    pub placements: BTreeMap<ThreadId, Placement>,
    /// Length of the next quantum, ns, where it is to differ from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_ns: Option<u64>,
    /// Programs that are not to run for now; others run, and those that were paused go on.
    /// Simulated machines with a hardware scheduler do not do this.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub paused: BTreeSet<ProgramId>,
    /// Number of threads that malleable programs are to have; those that are not named keep theirs.
    /// Live machines cannot choose that, nor simulated ones with a hardware scheduler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<ProgramId, u32>,
    /// Reasons.
    pub report: PlanReport,
}

impl Decision {
    /// Places a thread and says why.
    pub fn place(&mut self, thread: ThreadId, placement: Placement, reason: Reason) {
        self.placements.insert(thread, placement);
        self.report.threads.insert(thread, reason);
    }
}

/// An immutable decision for one quantum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Counts up by one per plan; a machine refuses a plan that is not newer than its last.
    pub generation: u64,
    /// Placement of each observed thread.
    pub placements: BTreeMap<ThreadId, Placement>,
    /// Length of the next quantum, ns, where it is to differ from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum_ns: Option<u64>,
    /// Programs that are not to run for now; others run, and those that were paused go on.
    /// Simulated machines with a hardware scheduler do not do this.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub paused: BTreeSet<ProgramId>,
    /// Number of threads that malleable programs are to have; those that are not named keep theirs.
    /// Live machines cannot choose that, nor simulated ones with a hardware scheduler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<ProgramId, u32>,
    /// Reasons.
    pub report: PlanReport,
}

impl Plan {
    /// The threads whose placement differs from an earlier one, with the new placement.
    /// A thread that the earlier placements do not name was unrestricted.
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
