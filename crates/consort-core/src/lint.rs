//! The plan linter.
//!
//! A policy may be wrong, and a wrong plan must not reach a live machine. The linter ignores the
//! policy's reasons: it checks the plan against the topology and the observation alone.

use crate::ids::{PuId, ThreadId};
use crate::plan::{Placement, Plan};
use crate::pu_set::PuSet;
use crate::sample::Observation;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintFinding {
    /// The generation does not follow the last one.
    Stale {
        /// The plan's generation.
        generation: u64,
        /// The last one that was enacted.
        last: u64,
    },
    /// A thread is placed that was not observed.
    UnknownThread(ThreadId),
    /// An unmanaged thread is restricted.
    Unmanaged(ThreadId),
    /// A thread has no CPU left to run on.
    Nowhere(ThreadId),
    /// A thread is placed on CPUs that it may not use.
    OutsideMask {
        /// The thread.
        thread: ThreadId,
        /// The CPUs outside its mask.
        pus: PuSet,
    },
    /// A CPU is the only one of several threads while another CPU that one of them may use has
    /// none.
    BookedTwice {
        /// The CPU.
        pu: PuId,
        /// The threads that have no other.
        threads: Vec<ThreadId>,
    },
    /// A thread is restricted without a reason in the report.
    Unexplained(ThreadId),
}

impl LintFinding {
    /// Returns true if the plan must not be enacted.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::BookedTwice { .. } | Self::Unexplained(_))
    }
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { generation, last } => {
                write!(f, "plan {generation} is not newer than plan {last}")
            }
            Self::UnknownThread(thread) => write!(f, "thread {thread} was not observed"),
            Self::Unmanaged(thread) => write!(f, "thread {thread} must not be managed"),
            Self::Nowhere(thread) => write!(f, "thread {thread} could run nowhere"),
            Self::OutsideMask { thread, pus } => {
                write!(f, "thread {thread} may not run on CPU {pus}")
            }
            Self::BookedTwice { pu, threads } => {
                write!(
                    f,
                    "CPU {pu} is booked by {} threads while another is free",
                    threads.len()
                )
            }
            Self::Unexplained(thread) => {
                write!(f, "thread {thread} is restricted without a reason")
            }
        }
    }
}

/// Checks a plan against the machine and the observation; empty if the plan is sound.
pub fn lint(topology: &Topology, seen: &Observation, last: u64, plan: &Plan) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    if plan.generation <= last {
        findings.push(LintFinding::Stale {
            generation: plan.generation,
            last,
        });
    }
    for (&thread, placement) in &plan.placements {
        findings.extend(lint_thread(topology, seen, thread, placement));
        let explained = plan.report.threads.contains_key(&thread);
        if !explained && *placement != Placement::Unrestricted {
            findings.push(LintFinding::Unexplained(thread));
        }
    }
    findings.extend(lint_bookings(topology, seen, plan));
    findings
}

fn lint_thread(
    topology: &Topology,
    seen: &Observation,
    thread: ThreadId,
    placement: &Placement,
) -> Option<LintFinding> {
    let Some(observed) = seen.thread(thread) else {
        return Some(LintFinding::UnknownThread(thread));
    };
    let Placement::Restricted(pus) = placement else {
        return None;
    };
    if !observed.managed {
        return Some(LintFinding::Unmanaged(thread));
    }
    let outside = pus
        .difference(&observed.original)
        .union(&pus.difference(topology.pus()));
    if pus.is_empty() {
        return Some(LintFinding::Nowhere(thread));
    }
    (!outside.is_empty()).then_some(LintFinding::OutsideMask {
        thread,
        pus: outside,
    })
}

/// Finds CPUs that are the only choice of several threads while one of these threads could use a
/// CPU to which no thread is restricted.
fn lint_bookings(topology: &Topology, seen: &Observation, plan: &Plan) -> Vec<LintFinding> {
    let mut booked: BTreeMap<PuId, Vec<ThreadId>> = BTreeMap::new();
    let mut used = PuSet::new();
    for (&thread, placement) in &plan.placements {
        if let Placement::Restricted(pus) = placement {
            used = used.union(pus);
            if let (1, Some(pu)) = (pus.len(), pus.first()) {
                booked.entry(pu).or_default().push(thread);
            }
        }
    }
    let free = topology.pus().difference(&used);
    let could_move = |thread: &ThreadId| {
        let observed = seen.thread(*thread);
        observed.is_some_and(|t| !t.original.intersection(&free).is_empty())
    };
    booked
        .into_iter()
        .filter(|(_, threads)| threads.len() > 1 && threads.iter().any(could_move))
        .map(|(pu, threads)| LintFinding::BookedTwice { pu, threads })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Decision, Reason};
    use crate::testing::{observation, thread_id};

    fn plan(placements: &[(u32, &str)]) -> Plan {
        let mut decision = Decision::default();
        for (tid, pus) in placements {
            let pus = Placement::Restricted(pus.parse().unwrap());
            decision.place(thread_id(*tid), pus, Reason::default());
        }
        Plan {
            generation: 1,
            quantum_ns: None,
            placements: decision.placements,
            report: decision.report,
            ..Plan::default()
        }
    }

    fn check(plan: &Plan, expect: &[LintFinding]) {
        let topology = Topology::uniform(2, 2).unwrap();
        let seen = observation(&topology, &[(1, 0.5), (2, 0.1)]);
        assert_eq!(lint(&topology, &seen, 0, plan), expect);
    }

    #[test]
    fn sound_plan_has_no_findings() {
        check(&plan(&[(1, "0"), (2, "1-2")]), &[]);
    }

    #[test]
    fn each_fault_is_found() {
        check(&plan(&[(1, "")]), &[LintFinding::Nowhere(thread_id(1))]);
        check(
            &plan(&[(9, "0")]),
            &[LintFinding::UnknownThread(thread_id(9))],
        );
        let outside = LintFinding::OutsideMask {
            thread: thread_id(1),
            pus: "7".parse().unwrap(),
        };
        check(&plan(&[(1, "0,7")]), &[outside]);
        let twice = LintFinding::BookedTwice {
            pu: PuId(0),
            threads: vec![thread_id(1), thread_id(2)],
        };
        check(&plan(&[(1, "0"), (2, "0")]), &[twice]);
    }

    #[test]
    fn restricted_unmanaged_thread_is_found() {
        let topology = Topology::uniform(2, 2).unwrap();
        let mut seen = observation(&topology, &[(1, 0.5)]);
        seen.threads[0].managed = false;
        let findings = lint(&topology, &seen, 0, &plan(&[(1, "0")]));
        assert_eq!(findings, [LintFinding::Unmanaged(thread_id(1))]);
    }

    #[test]
    fn stale_and_unexplained_plans_are_found() {
        let mut stale = plan(&[(1, "0")]);
        stale.generation = 0;
        stale.report.threads.clear();
        let findings = [
            LintFinding::Stale {
                generation: 0,
                last: 0,
            },
            LintFinding::Unexplained(thread_id(1)),
        ];
        check(&stale, &findings);
        assert!(findings[0].is_fatal() && !findings[1].is_fatal());
    }
}
