//! Several policies on one machine, each for the programs that were assigned to it.

use crate::choose::AUTO;
use crate::ids::ProgramId;
use crate::plan::{Decision, PlanReport};
use crate::policy::{Policy, PolicyRng, View, Wishes};
use crate::sample::{Observation, ThreadObservation};
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes a policy from its text, `name:key=value`; `None` if this machine cannot have it.
pub type PolicyFactory = Box<dyn FnMut(&str, &Topology) -> Option<Box<dyn Policy>>>;

/// Gives each program the policy that it was [assigned](Observation::assigned), and all others a
/// usual one.
///
/// Each policy may place its own threads only. It sees the threads of other policies as unmanaged,
/// so that it knows where they run. The decisions are joined; the shortest wish for a quantum wins.
/// A policy is made when the first program wants it, and keeps its history until the last such
/// program ends. An automatic choice is repeated if the topology changes.
pub struct PerProgramPolicy {
    usual: Box<dyn Policy>,
    others: BTreeMap<Arc<str>, Box<dyn Policy>>,
    make: PolicyFactory,
    /// Topology for which the policies were made; `None` before the first decision.
    made_for: Option<Topology>,
}

impl PerProgramPolicy {
    /// Returns a policy that applies `usual` to programs without an assignment.
    pub fn new(usual: Box<dyn Policy>, make: PolicyFactory) -> Self {
        Self {
            usual,
            others: BTreeMap::new(),
            make,
            made_for: None,
        }
    }

    /// Drops policies that no program uses any more and makes the ones that are missing.
    fn sync_policies(&mut self, topology: &Topology, observation: &Observation) {
        if self.made_for.as_ref() != Some(topology) {
            self.made_for = Some(topology.clone());
            self.others
                .retain(|name, _| name.split(':').next() != Some(AUTO));
        }
        let wanted = |name: &Arc<str>| observation.assigned.values().any(|other| other == name);
        self.others.retain(|name, _| wanted(name));
        for name in observation.assigned.values() {
            if self.others.contains_key(name) {
                continue;
            }
            if let Some(policy) = (self.make)(name, topology) {
                self.others.insert(name.clone(), policy);
            }
        }
    }
}

impl Policy for PerProgramPolicy {
    fn wishes(&self) -> Wishes {
        let usual = self.usual.wishes();
        let any = |of: fn(Wishes) -> bool| {
            let mut others = self.others.values();
            of(usual) || others.any(|policy| of(policy.wishes()))
        };
        Wishes {
            on_activity: any(|wishes| wishes.on_activity),
            calls: any(|wishes| wishes.calls),
            idle: any(|wishes| wishes.idle),
            l1d_accesses: any(|wishes| wishes.l1d_accesses),
            ..usual
        }
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        self.sync_policies(view.topology, view.observation);
        if self.others.is_empty() {
            return self.usual.decide(view, rng);
        }
        let known: Vec<Arc<str>> = self.others.keys().cloned().collect();
        let policy_of = |program| {
            let name = view.observation.assigned.get(&program)?;
            known.contains(name).then(|| name.clone())
        };
        let usual = self.usual.as_mut();
        let mut joined =
            decide_for_programs(usual, view, rng, |program| policy_of(program).is_none());
        for (name, policy) in &mut self.others {
            let is_its = |program| policy_of(program).as_ref() == Some(name);
            let part = decide_for_programs(policy.as_mut(), view, rng, is_its);
            join(&mut joined, part, name);
        }
        joined
    }
}

/// Decides by one policy for the programs that were assigned to it; all others are unmanaged
/// meanwhile.
fn decide_for_programs(
    policy: &mut dyn Policy,
    view: View<'_>,
    rng: &mut PolicyRng,
    is_its: impl Fn(ProgramId) -> bool,
) -> Decision {
    let observation = observation_for_programs(view.observation, &is_its);
    let part = View {
        observation: &observation,
        ..view
    };
    let mut decision = policy.decide(part, rng);
    let all = view.observation;
    decision
        .placements
        .retain(|&id, _| is_its(all.program_of(id)));
    decision
        .report
        .threads
        .retain(|&id, _| is_its(all.program_of(id)));
    decision.paused.retain(|&program| is_its(program));
    decision.teams.retain(|&program, _| is_its(program));
    decision
}

/// The observation in which only these programs are managed.
fn observation_for_programs(all: &Observation, is_its: impl Fn(ProgramId) -> bool) -> Observation {
    let mut part = all.clone();
    let manage = |thread: &mut ThreadObservation| {
        thread.managed &= is_its(all.program_of(thread.id));
    };
    part.threads.iter_mut().for_each(manage);
    part.self_placed.retain(|&id| is_its(all.program_of(id)));
    part
}

fn join(joined: &mut Decision, part: Decision, name: &str) {
    let quanta = joined.quantum_ns.into_iter().chain(part.quantum_ns);
    joined.quantum_ns = quanta.min();
    joined.placements.extend(part.placements);
    joined.paused.extend(part.paused);
    joined.teams.extend(part.teams);
    let PlanReport {
        notes,
        threads,
        alternatives,
    } = part.report;
    let notes = notes.into_iter().map(|note| format!("{name}: {note}"));
    joined.report.notes.extend(notes);
    joined.report.threads.extend(threads);
    joined.report.alternatives.extend(alternatives);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadId;
    use crate::plan::{Placement, Reason};
    use crate::testing::{observation, thread_id};
    use crate::topology::Topology;
    use rand::SeedableRng;

    /// Sends all managed threads to one CPU and pauses every program.
    struct To(&'static str);

    impl Policy for To {
        fn wishes(&self) -> Wishes {
            Wishes {
                on_activity: self.0 == "1",
                ..Wishes::default()
            }
        }

        fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
            let mut decision = Decision::default();
            for thread in view.observation.managed_threads() {
                let pus = Placement::Restricted(self.0.parse().unwrap());
                decision.place(thread.id, pus, Reason::default());
            }
            let programs = view.observation.threads.iter();
            decision.paused = programs
                .map(|t| view.observation.program_of(t.id))
                .collect();
            decision.report.notes.push(format!("to {}", self.0));
            decision
        }
    }

    /// A thread that is a program by itself.
    fn id(n: u32) -> ThreadId {
        let id = thread_id(n);
        ThreadId { pid: id.tid, ..id }
    }

    fn policies() -> PerProgramPolicy {
        let make = |text: &str, topology: &Topology| -> Option<Box<dyn Policy>> {
            match text {
                "one" => Some(Box::new(To("1"))),
                AUTO if topology.smt() > 1 => Some(Box::new(To("1"))),
                AUTO => Some(Box::new(To("0"))),
                _ => None,
            }
        };
        PerProgramPolicy::new(Box::new(To("0")), Box::new(make))
    }

    fn decide(policy: &mut PerProgramPolicy, assigned: &[(u32, &str)]) -> Decision {
        decide_on(&Topology::uniform(2, 1).unwrap(), policy, assigned)
    }

    fn decide_on(
        topology: &Topology,
        policy: &mut PerProgramPolicy,
        assigned: &[(u32, &str)],
    ) -> Decision {
        let mut seen = observation(topology, &[(1, 0.5), (2, 0.0)]);
        for thread in &mut seen.threads {
            thread.id.pid = thread.id.tid;
        }
        seen.assigned = assigned
            .iter()
            .map(|&(n, name)| (id(n).program(), Arc::from(name)))
            .collect();
        let view = View {
            topology,
            observation: &seen,
        };
        policy.decide(view, &mut PolicyRng::seed_from_u64(0))
    }

    fn pu(decision: &Decision, n: u32) -> String {
        decision.placements[&id(n)].to_string()
    }

    #[test]
    fn policies_affect_their_own_programs_only() {
        let decision = decide(&mut policies(), &[(2, "one")]);
        assert_eq!([pu(&decision, 1), pu(&decision, 2)], ["CPU 0", "CPU 1"]);
        assert_eq!(decision.paused.len(), 2);
        assert_eq!(decision.report.notes, ["to 0", "one: to 1"]);
    }

    #[test]
    fn unavailable_policy_falls_back_to_the_usual() {
        let decision = decide(&mut policies(), &[(2, "absent")]);
        assert_eq!([pu(&decision, 1), pu(&decision, 2)], ["CPU 0", "CPU 0"]);
    }

    #[test]
    fn wishes_of_all_policies_are_joined() {
        let mut policy = policies();
        decide(&mut policy, &[]);
        assert!(!policy.wishes().on_activity);
        decide(&mut policy, &[(2, "one")]);
        assert!(policy.wishes().on_activity);
    }

    #[test]
    fn policy_is_dropped_with_its_last_program() {
        let mut policy = policies();
        decide(&mut policy, &[(2, "one")]);
        assert_eq!(policy.others.len(), 1);
        decide(&mut policy, &[]);
        assert!(policy.others.is_empty());
    }

    #[test]
    fn new_topology_repeats_the_automatic_choice() {
        let mut policy = policies();
        let on = |policy: &mut PerProgramPolicy, ways| {
            let topology = Topology::uniform(2, ways).unwrap();
            pu(&decide_on(&topology, policy, &[(2, AUTO)]), 2)
        };
        assert_eq!(on(&mut policy, 1), "CPU 0");
        assert_eq!(on(&mut policy, 2), "CPU 1");
    }
}
