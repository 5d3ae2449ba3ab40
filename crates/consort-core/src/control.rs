//! The control loop, and the machines that it observes and changes.

use crate::backoff::{Backoff, BackoffVerdict};
use crate::class::Class;
use crate::ids::ThreadId;
use crate::left_thread_tracker::LeftThreadTracker;
use crate::lint::{LintFinding, lint};
use crate::plan::{Decision, Placement, Plan, PlanReport};
use crate::policy::{Policy, PolicyRng, View, Wishes};
use crate::sample::Observation;
use crate::signal::SignalOffers;
use crate::topology::Topology;
use crate::trial::{Arm, ProgressMeasure, Trial, Verdict};
use crate::unbalanced::{hide_unbalanced, split_places};
use rand::SeedableRng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A machine on which threads can be observed and placed: live, simulated or recorded. A policy
/// cannot distinguish them.
pub trait Machine {
    /// Error of a machine that can no longer be observed or changed.
    type Error: std::error::Error;

    /// The CPUs as they are now.
    fn topology(&self) -> &Topology;

    /// The signals that it offers now, each with its tier.
    fn offers(&self) -> &SignalOffers;

    /// Receives the policy's wishes: before the first observation, and again whenever they change.
    fn grant_wishes(&mut self, wishes: Wishes) {
        let _ = wishes;
    }

    /// Waits for the end of the quantum and returns what each thread did in it; `None` when the run
    /// is over.
    ///
    /// # Errors
    /// If the machine can no longer be observed.
    fn observe(&mut self) -> Result<Option<Observation>, Self::Error>;

    /// Carries a plan out. Threads that have exited meanwhile are no error.
    ///
    /// # Errors
    /// If the machine can no longer be changed.
    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, Self::Error>;
}

/// Effects of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnactmentReport {
    /// Threads whose place changed.
    pub moved: Vec<ThreadId>,
    /// Threads that were nudged: because their place changed, or because they had drifted from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nudged: Vec<ThreadId>,
    /// Threads that a lasting mask keeps in place now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<ThreadId>,
    /// Threads that are no longer managed, because another program changed their affinity.
    pub released: Vec<ThreadId>,
    /// Failures, and anything else that the user should know since the last plan, one sentence
    /// each.
    pub warnings: Vec<String>,
}

/// Loop that runs one policy on one machine.
pub struct ControlLoop<M: Machine> {
    machine: M,
    policy: Box<dyn Policy>,
    rng: PolicyRng,
    backoff: Backoff,
    /// Stretches without management; `None` if every quantum is managed.
    trial: Option<Trial>,
    leaver: LeftThreadTracker,
    classes: BTreeMap<ThreadId, Class>,
    generation: u64,
    current: BTreeMap<ThreadId, Placement>,
    /// True if the last plan set a quantum of its own.
    probing: bool,
    /// Wishes that were sent to the machine last.
    granted: Wishes,
}

/// Record of one turn of the loop.
#[derive(Clone, Debug)]
pub struct ControlTurn {
    /// Observation from which the plan was made.
    pub observation: Observation,
    /// Plan of the turn.
    pub plan: Plan,
    /// Threads whose placement the plan changes.
    pub changed: Vec<ThreadId>,
    /// Findings of the linter; a fatal one means that the plan was not enacted.
    pub findings: Vec<LintFinding>,
    /// Result of the plan.
    pub enacted: EnactmentReport,
    /// Arm of the quantum that follows: unmanaged only in a trial.
    pub arm: Arm,
}

impl ControlTurn {
    /// Returns true if the plan passed the linter and was enacted.
    pub fn was_enacted(&self) -> bool {
        !self.findings.iter().any(LintFinding::is_fatal)
    }
}

impl<M: Machine> ControlLoop<M> {
    /// Returns a loop that draws all its randomness from `seed`.
    pub fn new(mut machine: M, policy: Box<dyn Policy>, backoff: Backoff, seed: u64) -> Self {
        let granted = policy.wishes();
        machine.grant_wishes(granted);
        Self {
            granted,
            machine,
            policy,
            rng: PolicyRng::seed_from_u64(seed),
            backoff,
            trial: None,
            leaver: LeftThreadTracker::default(),
            classes: BTreeMap::new(),
            generation: 0,
            current: BTreeMap::new(),
            probing: false,
        }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine, for commands that are not part of a plan.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Alternates managed and unmanaged stretches from now on, or no more. While it does, the trial
    /// decides whether the policy does harm.
    pub fn set_trial(&mut self, trial: Option<Trial>) {
        self.trial = trial;
    }

    /// The trial, if there is one.
    pub fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }

    /// The trial, for readings of the user's number.
    pub fn trial_mut(&mut self) -> Option<&mut Trial> {
        self.trial.as_mut()
    }

    /// Continues with another policy. Threads stay in place until it decides. Progress under the
    /// old policy is forgotten, because it is no measure for the new one.
    pub fn change_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
        self.grant_wishes();
        self.backoff.reset_progress();
        if let Some(trial) = &mut self.trial {
            trial.reset();
        }
        self.probing = false;
    }

    fn grant_wishes(&mut self) {
        self.granted = self.policy.wishes();
        self.machine.grant_wishes(self.granted);
    }

    /// Number of plans that were undone because progress fell after them.
    pub fn undone_plans(&self) -> u64 {
        self.backoff.undone_plans()
    }

    /// Largest fall of progress after a plan that was undone, 0 to 1; 0 if none was.
    pub fn largest_fall(&self) -> f64 {
        self.backoff.largest_fall()
    }

    /// Effect of the policy by the trial that back-off makes after progress fell; `None` if there was
    /// none, or too few pairs of stretches for an interval.
    pub fn back_off_verdict(&self) -> Option<Verdict> {
        self.backoff.verdict()
    }

    /// Number of plans without a conclusion, because threads did not stay on their CPUs.
    pub fn inconclusive_plans(&self) -> u64 {
        self.backoff.inconclusive_plans()
    }

    /// Ends the loop and returns the machine.
    pub fn into_machine(self) -> M {
        self.machine
    }

    /// Observes, decides and enacts once; `None` when the run is over.
    ///
    /// # Errors
    /// If the machine can no longer be observed or changed.
    pub fn run_turn(&mut self) -> Result<Option<ControlTurn>, M::Error> {
        let Some(mut observation) = self.machine.observe()? else {
            return Ok(None);
        };
        hide_unbalanced(self.machine.topology(), &mut observation);
        self.leaver.mark(&mut observation);
        observation.add_classes(&self.classes);
        self.classes.clone_from(&observation.classes);
        let probed = std::mem::take(&mut self.probing);
        if let Some(trial) = &mut self.trial {
            trial.add_quantum(&observation);
        }
        let plan = self.make_plan(&observation, probed);
        let findings = lint(
            self.machine.topology(),
            &observation,
            self.generation,
            &plan,
        );
        self.current
            .retain(|&id, _| observation.thread(id).is_some());
        let changed = plan.changes(&self.current).map(|(id, _)| id).collect();
        let mut turn = ControlTurn {
            observation,
            plan,
            changed,
            findings,
            enacted: EnactmentReport::default(),
            arm: self.trial.as_ref().map_or(Arm::Managed, Trial::arm),
        };
        if turn.was_enacted() {
            self.enact(&mut turn, probed)?;
        }
        // A policy that adds others later may have more wishes than before.
        if self.policy.wishes() != self.granted {
            self.grant_wishes();
        }
        Ok(Some(turn))
    }

    fn enact(&mut self, turn: &mut ControlTurn, probed: bool) -> Result<(), M::Error> {
        turn.enacted = self.machine.enact(&turn.plan)?;
        self.generation = turn.plan.generation;
        self.current = turn.plan.placements.clone();
        // A quantum that the plan sets serves measurement, so its progress says nothing about the
        // plan.
        self.probing = turn.plan.quantum_ns.is_some();
        if !self.probing && !probed && self.trial.is_none() {
            self.backoff
                .record_enactment(&turn.observation, !turn.changed.is_empty());
        }
        Ok(())
    }

    fn make_plan(&mut self, observation: &Observation, probed: bool) -> Plan {
        let view = View {
            topology: self.machine.topology(),
            observation,
        };
        let verdict = match &self.trial {
            Some(trial) if trial.is_switched_off() => {
                BackoffVerdict::HoldOff("the trial found the policy to be slower".to_owned())
            }
            Some(trial) if trial.arm() == Arm::Unmanaged => {
                BackoffVerdict::HoldOff("unmanaged stretch of the trial".to_owned())
            }
            Some(_) => BackoffVerdict::GoOn,
            None if probed => BackoffVerdict::GoOn,
            None => {
                let measure = ProgressMeasure::from_offers(self.machine.offers());
                self.backoff.judge(observation, measure)
            }
        };
        let decision = match verdict {
            BackoffVerdict::GoOn => self.policy.decide(view, &mut self.rng),
            BackoffVerdict::HoldOff(why) => back_off_decision(why),
        };
        let mut decision = complete(decision, observation);
        let topology = self.machine.topology();
        split_places(topology, observation, &self.current, &mut decision);
        self.plan_from_decision(decision)
    }

    fn plan_from_decision(&self, decision: Decision) -> Plan {
        Plan {
            generation: self.generation + 1,
            placements: decision.placements,
            quantum_ns: decision.quantum_ns,
            paused: decision.paused,
            teams: decision.teams,
            report: decision.report,
        }
    }
}

fn back_off_decision(why: String) -> Decision {
    Decision {
        report: PlanReport {
            notes: vec![why],
            ..PlanReport::default()
        },
        ..Decision::default()
    }
}

/// Adds every observed thread that the policy did not name, as unrestricted.
fn complete(mut decision: Decision, observation: &Observation) -> Decision {
    for thread in observation.managed_threads() {
        let placement = decision.placements.entry(thread.id);
        placement.or_insert(Placement::Unrestricted);
    }
    decision
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Reason;
    use crate::signal::SignalOffers;
    use crate::testing::{observation, thread_id};
    use crate::topology::Topology;
    use std::convert::Infallible;

    /// Shows the same two threads for a number of quanta and remembers the plans.
    struct Script {
        topology: Topology,
        offers: SignalOffers,
        quanta: u32,
        plans: Vec<Plan>,
        granted: Vec<Wishes>,
    }

    impl Machine for Script {
        type Error = Infallible;

        fn topology(&self) -> &Topology {
            &self.topology
        }

        fn offers(&self) -> &SignalOffers {
            &self.offers
        }

        fn grant_wishes(&mut self, wishes: Wishes) {
            self.granted.push(wishes);
        }

        fn observe(&mut self) -> Result<Option<Observation>, Infallible> {
            let seen = observation(&self.topology, &[(1, 0.5), (2, 0.0)]);
            let more = self.quanta > 0;
            self.quanta = self.quanta.saturating_sub(1);
            Ok(more.then_some(seen))
        }

        fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, Infallible> {
            self.plans.push(plan.clone());
            Ok(EnactmentReport::default())
        }
    }

    struct Fixed(&'static str);

    impl Policy for Fixed {
        fn decide(&mut self, _: View<'_>, _: &mut PolicyRng) -> Decision {
            let mut decision = Decision::default();
            let pus = Placement::Restricted(self.0.parse().unwrap());
            decision.place(thread_id(1), pus, Reason::default());
            decision
        }
    }

    /// Asks for calls from its second decision on.
    struct Growing(u32);

    impl Policy for Growing {
        fn wishes(&self) -> Wishes {
            Wishes {
                calls: self.0 >= 2,
                ..Wishes::default()
            }
        }

        fn decide(&mut self, _: View<'_>, _: &mut PolicyRng) -> Decision {
            self.0 += 1;
            Decision::default()
        }
    }

    fn script(quanta: u32) -> Script {
        Script {
            topology: Topology::uniform(2, 1).unwrap(),
            offers: SignalOffers::default(),
            quanta,
            plans: Vec::new(),
            granted: Vec::new(),
        }
    }

    fn run(pus: &'static str, quanta: u32) -> (Vec<ControlTurn>, Vec<Plan>) {
        let machine = script(quanta);
        let mut wheel = ControlLoop::new(machine, Box::new(Fixed(pus)), Backoff::off(), 0);
        let turns = std::iter::from_fn(|| wheel.run_turn().unwrap()).collect();
        (turns, wheel.into_machine().plans)
    }

    #[test]
    fn plans_are_numbered_complete_and_enacted() {
        let (turns, plans) = run("0", 3);
        let generations: Vec<u64> = plans.iter().map(|p| p.generation).collect();
        assert_eq!(generations, [1, 2, 3]);
        assert_eq!(plans[0].placements[&thread_id(2)], Placement::Unrestricted);
        assert_eq!(turns[0].changed, [thread_id(1)]);
        assert!(turns[1].changed.is_empty());
    }

    #[test]
    fn place_without_balancing_is_one_pu() {
        let mut machine = script(2);
        machine.topology = Topology::uniform(1, 2).unwrap();
        machine.topology = machine.topology.with_unbalanced(&"0-1".parse().unwrap());
        let mut wheel = ControlLoop::new(machine, Box::new(Fixed("0-1")), Backoff::off(), 0);
        while wheel.run_turn().unwrap().is_some() {}
        let plans = wheel.into_machine().plans;
        let place = |plan: &Plan| plan.placements[&thread_id(1)].clone();
        assert!(matches!(place(&plans[0]), Placement::Restricted(pus) if pus.len() == 1));
        assert_eq!(place(&plans[0]), place(&plans[1]));
        let why = &plans[0].report.threads[&thread_id(1)].chosen;
        assert!(
            why.contains("alone, because the OS moves no thread"),
            "{why}"
        );
    }

    #[test]
    fn new_policy_continues_generation_numbers() {
        let mut wheel = ControlLoop::new(script(3), Box::new(Fixed("0")), Backoff::off(), 0);
        wheel.run_turn().unwrap();
        wheel.change_policy(Box::new(Fixed("1")));
        let second = wheel.run_turn().unwrap().unwrap();
        assert_eq!(second.changed, [thread_id(1)]);
        let plans = wheel.into_machine().plans;
        let generations: Vec<u64> = plans.iter().map(|p| p.generation).collect();
        assert_eq!(generations, [1, 2]);
        let placed = &plans[1].placements[&thread_id(1)];
        assert_eq!(*placed, Placement::Restricted("1".parse().unwrap()));
    }

    #[test]
    fn additional_wishes_are_granted_once() {
        let mut wheel = ControlLoop::new(script(4), Box::new(Growing(0)), Backoff::off(), 0);
        while wheel.run_turn().unwrap().is_some() {}
        let granted = wheel.into_machine().granted.into_iter();
        assert_eq!(granted.map(|w| w.calls).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn plan_with_fatal_finding_is_not_enacted() {
        let (turns, plans) = run("7", 2);
        assert!(plans.is_empty());
        assert!(turns.iter().all(|turn| !turn.was_enacted()));
    }
}
