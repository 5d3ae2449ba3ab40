//! Planning of groups of events for wanted signals: pure, the same for the same input.
//!
//! # Purpose
//!
//! Every group holds cycles and instructions, so that each event has them counted over the very
//! same time; no group exceeds the PMU's counters; events that need a leader come with it. The
//! events of one formula share a group where they can. Events that do not fit at once take several
//! groups, which the kernel multiplexes; it tells the time that each ran.
//!
//! # Pitfalls
//!
//! A PMU that serves others too may still refuse a group that fits on paper; the
//! reader notices by a running time of 0.

use super::assign;
use super::budget::CounterBudget;
use crate::events::{EventDefinition, EventUnit, PmuEvents, SignalFormula};
use consort_core::Signal;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// One group of events that are counted at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedGroup {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// Event names; the first leads.
    pub events: Vec<String>,
}

/// A signal that is not counted on a PMU, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnplannedSignal {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// The signal.
    pub signal: Signal,
    /// The reason, one sentence.
    pub reason: String,
}

/// The groups of all PMUs, and the fate of each wanted signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CounterPlan {
    /// The groups, by PMU.
    pub groups: Vec<PlannedGroup>,
    /// Signals that will be computed, each with its PMU.
    pub planned: Vec<(String, Signal)>,
    /// Signals that will not be computed, each with its PMU and the reason.
    pub unplanned: Vec<UnplannedSignal>,
}

/// A PMU of this host with its events.
#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// Events that the event file has for it.
    pub events: &'a PmuEvents,
    /// Counters that may be planned with.
    pub budget: CounterBudget,
}

/// Plans groups for the wanted signals on each PMU.
pub fn plan(wanted: &[Signal], pmus: &[PlanInput<'_>]) -> CounterPlan {
    let wanted: BTreeSet<Signal> = wanted.iter().copied().collect();
    let mut plan = CounterPlan::default();
    for input in pmus {
        plan_pmu(&wanted, input, &mut plan);
    }
    plan
}

fn plan_pmu(wanted: &BTreeSet<Signal>, input: &PlanInput<'_>, plan: &mut CounterPlan) {
    let mut groups = GroupPlanner::new(input);
    for formula in sort_by_need(wanted, input, plan) {
        match groups.add(formula) {
            Ok(()) => plan.planned.push((input.pmu.clone(), formula.signal)),
            Err(reason) => refuse(plan, input, formula.signal, reason),
        }
    }
    let planned = |events: Vec<&EventDefinition>| PlannedGroup {
        pmu: input.pmu.clone(),
        events: events.iter().map(|e| e.name.clone()).collect(),
    };
    let groups = groups.into_groups().into_iter().map(planned);
    plan.groups.extend(groups);
}

fn refuse(plan: &mut CounterPlan, input: &PlanInput<'_>, signal: Signal, reason: String) {
    plan.unplanned.push(UnplannedSignal {
        pmu: input.pmu.clone(),
        signal,
        reason,
    });
}

/// The wanted formulas, those with most events first; wanted signals without a formula are refused.
fn sort_by_need<'a>(
    wanted: &BTreeSet<Signal>,
    input: &PlanInput<'a>,
    plan: &mut CounterPlan,
) -> Vec<&'a SignalFormula> {
    let mut formulas = Vec::new();
    for &signal in wanted {
        match input.events.formula(signal) {
            Some(formula) => formulas.push(formula),
            None => {
                let reason = format!("the event file has no formula for {signal} on this PMU");
                refuse(plan, input, signal, reason);
            }
        }
    }
    formulas.sort_by_key(|f| (Reverse(names(f).len()), f.signal));
    formulas
}

fn names(formula: &SignalFormula) -> BTreeSet<&str> {
    formula.parts.iter().flat_map(|p| p.value.names()).collect()
}

/// The groups of one PMU while they are filled. Each begins with the anchors.
struct GroupPlanner<'a> {
    events: &'a PmuEvents,
    budget: CounterBudget,
    anchors: Vec<&'a EventDefinition>,
    groups: Vec<Vec<&'a EventDefinition>>,
}

impl<'a> GroupPlanner<'a> {
    fn new(input: &PlanInput<'a>) -> Self {
        let units = [EventUnit::Cycles, EventUnit::Instructions];
        let anchors = units.iter().filter_map(|&u| input.events.event_of(u));
        Self {
            events: input.events,
            budget: input.budget,
            anchors: anchors.collect(),
            groups: Vec::new(),
        }
    }

    /// Adds a formula's events, together where they fit, else spread.
    fn add(&mut self, formula: &SignalFormula) -> Result<(), String> {
        let bundles = self.bundles(formula);
        let before = self.groups.clone();
        if self.place(&bundles.concat()) {
            return Ok(());
        }
        for bundle in &bundles {
            if !self.place(bundle) {
                self.groups = before;
                return Err(self.too_big_reason(bundle));
            }
        }
        Ok(())
    }

    /// The formula's events in sets that must not be parted: a leader with its
    /// members, or one event.
    fn bundles(&self, formula: &SignalFormula) -> Vec<Vec<&'a EventDefinition>> {
        let mut bundles: Vec<Vec<&'a EventDefinition>> = Vec::new();
        let wanted = names(formula);
        let events = self.events.events.iter();
        for event in events.filter(|e| wanted.contains(e.name.as_str())) {
            let leader = event.leader.as_deref().and_then(|l| self.events.event(l));
            let leads = |b: &&mut Vec<&'a EventDefinition>| {
                leader.is_some() && b.first().copied() == leader
            };
            match bundles.iter_mut().find(leads) {
                Some(bundle) => bundle.push(event),
                None => bundles.push(leader.into_iter().chain([event]).collect()),
            }
        }
        bundles
    }

    /// Puts events into the first group that can take them, else into a new one.
    fn place(&mut self, events: &[&'a EventDefinition]) -> bool {
        let fresh = [self.anchors.clone()];
        let candidates = self.groups.iter().chain(&fresh);
        let merged = candidates.map(|group| union(group, events));
        let found = merged.enumerate().find(|(_, g)| self.fits(g));
        let Some((index, group)) = found else {
            return false;
        };
        match self.groups.get_mut(index) {
            Some(slot) => *slot = group,
            None => self.groups.push(group),
        }
        true
    }

    /// Returns true if a group fits into the counters and has at most one leader.
    fn fits(&self, group: &[&EventDefinition]) -> bool {
        let leaders: BTreeSet<&str> = group.iter().filter_map(|e| e.leader.as_deref()).collect();
        leaders.len() <= 1 && assign::fits(group, self.budget)
    }

    fn too_big_reason(&self, bundle: &[&EventDefinition]) -> String {
        let list = |events: &[&EventDefinition]| {
            let names: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
            names.join(", ")
        };
        format!(
            "{} do not fit beside {} into {} programmable counters, {} of them left to others",
            list(bundle),
            list(&self.anchors),
            self.budget.programmable,
            self.budget.reserved
        )
    }

    /// The groups with each leader first.
    fn into_groups(self) -> Vec<Vec<&'a EventDefinition>> {
        let mut groups = self.groups;
        for group in &mut groups {
            let leader = group.iter().find_map(|e| e.leader.clone());
            group.sort_by_key(|e| Some(&e.name) != leader.as_ref());
        }
        groups
    }
}

fn union<'a>(
    group: &[&'a EventDefinition],
    more: &[&'a EventDefinition],
) -> Vec<&'a EventDefinition> {
    let mut all = group.to_vec();
    for event in more {
        if !all.contains(event) {
            all.push(event);
        }
    }
    all
}
